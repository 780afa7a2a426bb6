package gemm

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/gfnem/gfnem/engine/internal/cpu"
)

// shape is a product to be measured. Batch is 1 for a single one.
type shape struct {
	batch, m, k, n int
	ta, tb         bool // A, B are given transposed
	bias           bool // with bias and ReLU
	max            bool // of maxima
}

func (s shape) String() string {
	name := fmt.Sprintf("%dx%dx%d", s.m, s.k, s.n)
	if s.batch > 1 {
		name = fmt.Sprintf("%d*%s", s.batch, name)
	}
	if s.ta {
		name += "/At"
	}
	if s.tb {
		name += "/Bt"
	}
	if s.bias {
		name += "/relu"
	}
	if s.max {
		name += "/max"
	}
	return name
}

var shapes = []shape{
	{batch: 1, m: 1024, k: 1024, n: 1024},
	{batch: 1, m: 1024, k: 1024, n: 1024, ta: true, tb: true},
	{batch: 1, m: 608 * 20, k: 512, n: 512},
	{batch: 1, m: 608 * 20, k: 512, n: 512, tb: true},
	{batch: 1, m: 512, k: 608 * 20, n: 512, ta: true},
	{batch: 1, m: 128 * 49, k: 1152, n: 128},
	{batch: 1, m: 640, k: 512, n: 512, bias: true},
	{batch: 1, m: 256, k: 256, n: 256},
	{batch: 1, m: 64, k: 64, n: 64},
	{batch: 1, m: 4000, k: 10, n: 32, bias: true},
	{batch: 1, m: 4000, k: 32, n: 32},
	{batch: 1, m: 4000, k: 32, n: 9},
	{batch: 1, m: 4000, k: 9, n: 32, tb: true},
	{batch: 1, m: 10, k: 4000, n: 32, ta: true},
	{batch: 1, m: 32, k: 4000, n: 9, ta: true},
	{batch: 1, m: 32, k: 64000, n: 32, ta: true},
	{batch: 32, m: 20, k: 128, n: 20},
	{batch: 32, m: 20, k: 128, n: 20, tb: true},
	{batch: 256, m: 20, k: 64, n: 20, tb: true},
	{batch: 256, m: 20, k: 20, n: 64},
	{batch: 640, m: 4, k: 4, n: 4},
	{batch: 640, m: 4, k: 4, n: 4, tb: true},
	{batch: 640, m: 8, k: 8, n: 8},
	{batch: 1, m: 16, k: 512, n: 512},
	{batch: 1, m: 4, k: 512, n: 512},
	{batch: 1, m: 1, k: 512, n: 512},
	{batch: 1, m: 1, k: 512, n: 512, tb: true},
	{batch: 1, m: 1024, k: 1024, n: 1},
	{batch: 1, m: 1024, k: 1024, n: 1, ta: true},
	{batch: 1, m: 4000, k: 32, n: 1},
	{batch: 1, m: 1000, k: 1, n: 1000},
	{batch: 1, m: 1, k: 4096, n: 1},
	{batch: 1, m: 1, k: 1, n: 1},
	{batch: 1, m: 4, k: 4, n: 4},
	{batch: 1, m: 16, k: 16, n: 16},
	{batch: 1, m: 608, k: 60, n: 1800, max: true},
	{batch: 1, m: 480, k: 900, n: 30, tb: true, max: true},
	{batch: 32, m: 19, k: 90, n: 90, tb: true, max: true},
	{batch: 576, m: 30, k: 5, n: 30, ta: true, max: true},
}

// program makes the call to be measured.
func program[T Float](level cpu.Level, s shape) func() {
	r := rand.New(rand.NewPCG(1, 2))
	form := func(rows, cols int, t bool) Matrix[T] {
		data := grow([]T(nil), s.batch*rows*cols)
		for i := range data {
			data[i] = T(r.NormFloat64())
		}
		if t {
			return Dense(data, cols, rows).T()
		}
		return Dense(data, rows, cols)
	}
	a, b, c := form(s.m, s.k, s.ta), form(s.k, s.n, s.tb), form(s.m, s.n, false)
	o := Options[T]{Max: s.max}
	if s.bias {
		o = Options[T]{Bias: make([]T, s.n), Act: ReLU}
	}
	if s.batch > 1 {
		dims := []Dim{{N: s.batch, A: s.m * s.k, B: s.k * s.n, C: s.m * s.n}}
		return func() { batchAt(level, dims, c, a, b, o) }
	}
	return func() { gemmAt(level, c, a, b, o) }
}

func (s shape) flops() float64 {
	return 2 * float64(s.batch) * float64(s.m) * float64(s.k) * float64(s.n)
}

// BenchmarkGemm reports billions of operations a second; -cpu 1,2 gives the numbers of threads.
func BenchmarkGemm(b *testing.B) {
	for _, s := range shapes {
		b.Run(s.String(), func(b *testing.B) {
			f := program[float32](cpu.Use, s)
			f()
			for b.Loop() {
				f()
			}
			b.ReportMetric(s.flops()*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "GFLOP/s")
		})
	}
}

func BenchmarkPeak(b *testing.B) {
	for b.Loop() {
		b.ReportMetric(Peak32(runtime.GOMAXPROCS(0)), "GFLOP/s")
	}
}

// fastest is the least time of one call, of many within the given time and at least five. One thread with long calls is
// timed by its own clock, which is coarser but does not count the time others had the core.
func fastest(f func(), d time.Duration, threads int) time.Duration {
	begin := wallTime()
	f()
	clock := wallTime
	if threads == 1 && wallTime()-begin > time.Millisecond {
		clock = threadTime
	}
	best, calls := time.Duration(1<<62), 1
	end := time.Now().Add(d)
	for i := 0; i < 5 || time.Now().Before(end); i++ {
		begin := clock()
		for range calls {
			f()
		}
		t := clock() - begin
		best = min(best, t/time.Duration(calls))
		if t < 20*time.Microsecond {
			calls *= 2
		}
	}
	return best
}

func wallTime() time.Duration { return time.Duration(time.Now().UnixNano()) }

// TestTable prints the best speed of each shape next to the peak measured around it, which is more telling than a
// benchmark on a busy machine. It runs if GEMM_TABLE is set: to the milliseconds for each line.
func TestTable(t *testing.T) {
	each, err := time.ParseDuration(os.Getenv("GEMM_TABLE"))
	if err != nil {
		t.Skip("set GEMM_TABLE=300ms to measure")
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	table(os.Stdout, "float32", each, program[float32], peakAt[float32])
	table(os.Stdout, "float64", each, program[float64], peakAt[float64])
}

func table(out *os.File, name string, each time.Duration, program func(cpu.Level, shape) func(),
	peak func(cpu.Level, int) float64) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "%s %v\tus\tGFLOP/s\tof peak\t2 threads: us\tGFLOP/s\tof peak\t\n", name, cpu.Use)
	peaks := map[int]float64{}
	type row [2]time.Duration
	times := make([]row, len(shapes))
	for i, s := range shapes {
		f := program(cpu.Use, s)
		for threads := 1; threads <= 2; threads++ {
			runtime.GOMAXPROCS(threads)
			peaks[threads] = max(peaks[threads], peak(cpu.Use, threads))
			times[i][threads-1] = fastest(f, each, threads)
		}
	}
	for i, s := range shapes {
		fmt.Fprintf(w, "%v\t", s)
		for x, d := range times[i] {
			speed := s.flops() / float64(d.Nanoseconds())
			fmt.Fprintf(w, "%.2f\t%.1f\t%.0f %%\t", float64(d.Nanoseconds())/1000, speed, 100*speed/peaks[x+1])
		}
		fmt.Fprintln(w)
	}
	w.Flush()
	fmt.Fprintf(out, "peak: %.1f on one thread, %.1f on two\n", peaks[1], peaks[2])
}
