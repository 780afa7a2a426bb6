package engine

import (
	"fmt"
	"runtime"
	"time"

	"github.com/gfnem/gfnem/engine/internal/cpu"
	"github.com/gfnem/gfnem/engine/internal/gemm"
	"github.com/gfnem/gfnem/engine/internal/par"
	"github.com/gfnem/gfnem/engine/internal/vec"
)

// Peaks is what the machine can do at most, on all threads: float32 multiply-adds in registers (two operations each),
// and reading and writing of memory beyond the caches.
type Peaks struct{ Flops, Bytes float64 } // per second

// MeasurePeaks takes a part of a second.
func MeasurePeaks() Peaks {
	threads := runtime.GOMAXPROCS(0)
	p := Peaks{Flops: 1e9 * gemm.Peak32(threads)}
	copied, bytes := copying()
	for range 6 {
		begin := time.Now()
		copied()
		p.Bytes = max(p.Bytes, bytes/time.Since(begin).Seconds())
	}
	return p
}

// copying is a copy that no cache holds, on all threads, and the bytes that it reads and writes.
func copying() (do func(), bytes float64) {
	const n = 64 << 20
	from, to := make([]byte, n), make([]byte, n)
	grain := n / (4 * runtime.GOMAXPROCS(0))
	return func() { par.For(n, grain, func(lo, hi int) { copy(to[lo:hi], from[lo:hi]) }) }, 2 * n
}

// Speeds is what kernels do on this machine.
type Speeds struct {
	Arch         string  `json:"arch"`
	Instructions string  `json:"instructions"` // of the kernels
	Threads      int     `json:"threads"`
	Kernels      []Speed `json:"kernels"`
}

// Speed is that of one kernel, the best of several tries, in billions of units a second.
type Speed struct {
	Kernel     string  `json:"kernel"`
	Unit       string  `json:"unit"`
	OneThread  float64 `json:"one_thread"`
	AllThreads float64 `json:"all_threads"`
}

// MeasureSpeeds tries each kernel for a time on one thread, and for that time on all. No other work may run meanwhile.
func MeasureSpeeds(each time.Duration) Speeds {
	threads := runtime.GOMAXPROCS(0)
	s := Speeds{Arch: runtime.GOARCH, Instructions: cpu.Use.String(), Threads: threads}
	add := func(kernel, unit string, rate func() float64) {
		runtime.GOMAXPROCS(1)
		one := rate()
		runtime.GOMAXPROCS(threads)
		s.Kernels = append(s.Kernels, Speed{kernel, unit, one, rate()})
	}
	run := func(kernel, unit string, units float64, do func()) {
		add(kernel, unit, func() float64 { return units / float64(fastest(each, do)) })
	}
	add("multiply-adds in registers, float32", "flop", func() float64 { return gemm.Peak32(runtime.GOMAXPROCS(0)) })
	add("multiply-adds in registers, float64", "flop", func() float64 { return gemm.Peak64(runtime.GOMAXPROCS(0)) })
	const large, small, batch = 1024, 32, 512
	do := productOf[float32](1, large)
	run(fmt.Sprintf("product %d x %d x %d, float32", large, large, large), "flop", 2*large*large*large, do)
	do = productOf[float64](1, large/2)
	run(fmt.Sprintf("product %d x %d x %d, float64", large/2, large/2, large/2), "flop", 2*large*large*large/8, do)
	do = productOf[float32](batch, small)
	run(fmt.Sprintf("%d products %d x %d x %d", batch, small, small, small), "flop", 2*batch*small*small*small, do)
	a, b, c := square[float32](1, large/2), square[float32](1, large/2), square[float32](1, large/2)
	run(fmt.Sprintf("maxima of sums %d x %d x %d", large/2, large/2, large/2), "term", large*large*large/8,
		func() { gemm.Gemm(c, a, b, gemm.Options[float32]{Max: true}) })

	t := vec.F32
	for _, k := range []struct {
		name string
		do   func(dst, a []float32)
	}{
		{"x + x", func(dst, a []float32) { t.Binary[vec.Add](dst, a, a) }},
		{"exp", t.Unary[vec.Exp]}, {"log", t.Unary[vec.Log]}, {"tanh", t.Unary[vec.Tanh]},
		{"softmax of rows of 64", func(dst, a []float32) { t.Softmax(dst, a, 64) }},
		{"sums of rows of 64", func(dst, a []float32) { t.RowSum(dst[:len(a)/64], a, 64) }},
	} {
		do, elements := elementwise(k.do)
		run(k.name+", float32", "element", elements, do)
	}
	copied, bytes := copying()
	run("copy beyond the caches", "byte", bytes, copied)
	return s
}

// fastest is the least time of a call, in nanoseconds as units are billions a second.
func fastest(each time.Duration, do func()) time.Duration {
	do()
	best := time.Duration(1 << 62)
	for begin := time.Now(); ; {
		from := time.Now()
		do()
		best = max(1, min(best, time.Since(from)))
		if time.Since(begin) > each {
			return best
		}
	}
}

// square is the first of n square matrices that follow each other.
func square[T gemm.Float](n, size int) gemm.Matrix[T] {
	m := gemm.Dense(make([]T, n*size*size), size*n, size)
	m.Rows = size
	for i := range m.Data {
		m.Data[i] = T(i%7) / 8
	}
	return m
}

// productOf is n products of square matrices.
func productOf[T gemm.Float](n, size int) func() {
	a, b, c := square[T](n, size), square[T](n, size), square[T](n, size)
	step := size * size
	return func() { gemm.Batch([]gemm.Dim{{N: n, A: step, B: step, C: step}}, c, a, b, gemm.Options[T]{}) }
}

// elementwise applies a kernel again and again to parts that stay in the first cache, on all threads.
func elementwise(do func(dst, a []float32)) (all func(), elements float64) {
	const part, times = 2048, 128
	parts := 4 * runtime.NumCPU()
	a, dst := make([]float32, parts*part), make([]float32, parts*part)
	for i := range a {
		a[i] = float32(i%100)/10 + 0.5
	}
	return func() {
		par.For(len(a), part, func(lo, hi int) {
			for range times {
				do(dst[lo:hi], a[lo:hi])
			}
		})
	}, float64(len(a) * times)
}
