package gemm

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"github.com/gfnem/gfnem/engine/internal/cpu"
	"pgregory.net/rapid"
)

// levels are those this machine can run.
func levels() []cpu.Level { return cpu.Levels() }

const guard = 1e30

// layout is how a test lays out a matrix.
type layout int

const (
	dense layout = iota
	padded
	transposed
	transposedPadded
	spread   // neither rows nor columns are contiguous
	repeated // all rows are the same one
	layouts
)

// operandOf makes a random matrix.
func operandOf[T Float](r *rand.Rand, rows, cols int, l layout) Matrix[T] {
	m := Matrix[T]{Rows: rows, Cols: cols}
	switch l {
	case dense:
		m.RowStride, m.ColStride = cols, 1
	case padded:
		m.RowStride, m.ColStride = cols+1+r.IntN(5), 1
	case transposed:
		m.RowStride, m.ColStride = 1, rows
	case transposedPadded:
		m.RowStride, m.ColStride = 1, rows+1+r.IntN(5)
	case spread:
		m.ColStride = 2 + r.IntN(2)
		m.RowStride = m.ColStride*cols + r.IntN(3)
	case repeated:
		m.RowStride, m.ColStride = 0, 1
	}
	m.Data = make([]T, max(0, rows-1)*m.RowStride+max(0, cols-1)*m.ColStride+1)
	for i := range m.Data {
		m.Data[i] = T(r.NormFloat64())
	}
	return m
}

// result makes a random C of rows that are not adjacent, between guards.
func result[T Float](r *rand.Rand, rows, cols int) (c Matrix[T], all []T) {
	const margin = 70
	ld := cols + r.IntN(4)
	n := (max(rows, 1)-1)*ld + cols
	all = make([]T, n+2*margin)
	for i := range all {
		all[i] = guard
	}
	c = Matrix[T]{Data: all[margin : margin+n], Rows: rows, Cols: cols, RowStride: ld, ColStride: 1}
	for i := range rows {
		for j := range cols {
			c.Data[i*ld+j] = T(r.NormFloat64())
		}
	}
	return c, all
}

// naive is the oracle: element (i,j) before the epilogue, and the sum of the sizes of its terms.
func naive[T Float](a, b Matrix[T], i, j int) (sum, size float64) {
	for k := range a.Cols {
		x := float64(a.Data[i*a.RowStride+k*a.ColStride]) * float64(b.Data[k*b.RowStride+j*b.ColStride])
		sum += x
		size += math.Abs(x)
	}
	return sum, size
}

func eps[T Float]() float64 {
	if _, ok := any(T(0)).(float32); ok {
		return 0x1p-24
	}
	return 0x1p-53
}

// expect computes what C should be and how far from it it may be.
func expect[T Float](c, a, b Matrix[T], o Options[T]) (want, slack []float64) {
	for i := range c.Rows {
		for j := range c.Cols {
			x, size := naive(a, b, i, j)
			old := 0.0
			if o.Add {
				old = float64(c.Data[i*c.RowStride+j])
			}
			x += old
			size += math.Abs(old)
			if o.Bias != nil {
				x += float64(o.Bias[j])
				size += math.Abs(float64(o.Bias[j]))
			}
			if o.RowBias != nil {
				x += float64(o.RowBias[i])
				size += math.Abs(float64(o.RowBias[i]))
			}
			switch {
			case o.Act == ReLU && x < 0:
				x = 0
			case o.Act == Leaky && x < 0:
				x *= float64(o.Slope)
			}
			if o.Func != nil {
				x = 2*x + 1
				size = 2*size + 1
			}
			want = append(want, x)
			slack = append(slack, (float64(a.Cols)+6)*eps[T]()*size)
		}
	}
	return want, slack
}

// compare fails unless C is as expected and nothing around it has changed.
func compare[T Float](t rapid.TB, name string, c Matrix[T], all []T, want, slack []float64) {
	t.Helper()
	for i := range c.Rows {
		for j := range c.Cols {
			got := float64(c.Data[i*c.RowStride+j])
			if n := i*c.Cols + j; !(math.Abs(got-want[n]) <= slack[n]) {
				t.Fatalf("%s: c[%d,%d] = %g, want %g +- %g", name, i, j, got, want[n], slack[n])
			}
			c.Data[i*c.RowStride+j] = guard
		}
	}
	for i, x := range all {
		if x != guard {
			t.Fatalf("%s: element %d of the buffer was overwritten with %g", name, i, x)
		}
	}
}

// options makes random ones; bit by bit of which.
func options[T Float](r *rand.Rand, m, n, which int) (o Options[T]) {
	vector := func(n int) (v []T) {
		for range n {
			v = append(v, T(r.NormFloat64()))
		}
		return v
	}
	o.Add = which&1 != 0
	if which&2 != 0 {
		o.Bias = vector(n)
	}
	if which&4 != 0 {
		o.RowBias = vector(m)
	}
	o.Act = Activation(which >> 3 & 3 % 3)
	o.Slope = 0.25
	if which&32 != 0 {
		o.Func = func(s []T) {
			for i := range s {
				s[i] = 2*s[i] + 1
			}
		}
	}
	return o
}

func checkOne[T Float](t rapid.TB, seed uint64, m, n, k, which int, la, lb layout) {
	t.Helper()
	for _, level := range levels() {
		r := rand.New(rand.NewPCG(seed, 1))
		a, b := operandOf[T](r, m, k, la), operandOf[T](r, k, n, lb)
		c, all := result[T](r, m, n)
		o := options[T](r, m, n, which)
		want, slack := expect(c, a, b, o)
		gemmAt(level, c, a, b, o)
		compare(t, fmt.Sprintf("%T %v [%d,%d]x[%d,%d] layouts %d, %d options %d", T(0), level, m, k, k, n, la, lb, which),
			c, all, want, slack)
	}
}

// TestSmallShapes goes through all shapes up to a limit, each with one type, layouts and options drawn at random.
func TestSmallShapes(t *testing.T) {
	limit := 40
	switch {
	case raceEnabled:
		limit = 6
	case testing.Short():
		limit = 12
	}
	r := rand.New(rand.NewPCG(1, 2))
	for m := 1; m <= limit; m++ {
		for n := 1; n <= limit; n++ {
			for k := 1; k <= limit; k++ {
				la, lb := layout(r.IntN(int(layouts))), layout(r.IntN(int(layouts)))
				if r.IntN(2) == 0 {
					checkOne[float32](t, r.Uint64(), m, n, k, r.IntN(64), la, lb)
				} else {
					checkOne[float64](t, r.Uint64(), m, n, k, r.IntN(64), la, lb)
				}
			}
		}
	}
}

func TestRandomShapes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sizes := []*rapid.Generator[int]{rapid.IntRange(0, 70), rapid.IntRange(0, 8), rapid.IntRange(60, 300)}
		if raceEnabled {
			sizes = sizes[:2]
		}
		size := rapid.OneOf(sizes...)
		m, n, k := size.Draw(t, "m"), size.Draw(t, "n"), size.Draw(t, "k")
		which := rapid.IntRange(0, 63).Draw(t, "options")
		form := rapid.IntRange(0, int(layouts)-1)
		la, lb := layout(form.Draw(t, "layout of A")), layout(form.Draw(t, "layout of B"))
		seed := rapid.Uint64().Draw(t, "seed")
		checkOne[float32](t, seed, m, n, k, which, la, lb)
		checkOne[float64](t, seed, m, n, k, which, la, lb)
	})
}

// edges are shapes that take each path, with many blocks and threads.
var edges = [][3]int{ // m, n, k
	{1, 3000, 700}, {3000, 1, 700}, {5, 1500, 900}, {3, 900, 2000}, {900, 3, 2000}, {20, 2000, 300},
	{2000, 32, 40}, {4000, 9, 32}, {10, 32, 9000}, {100, 100, 3000}, {32, 32, 20000}, {1, 1, 50000}, {1, 2, 300000},
	{300, 300, 300}, {500, 70, 600}, {70, 500, 600}, {700, 600, 1}, {600, 500, 13},
}

func TestLargeShapes(t *testing.T) {
	for i, e := range edges {
		if (testing.Short() || raceEnabled) && e[0]*e[1]*e[2] > 1<<22 {
			continue
		}
		la, lb := []layout{dense, transposed, spread}[i%3], []layout{dense, padded, transposed}[i/3%3]
		checkOne[float32](t, uint64(i), e[0], e[1], e[2], i*5%64, la, lb)
		checkOne[float64](t, uint64(i), e[0], e[1], e[2], i*7%64, lb, la)
	}
}

// TestManyPanels packs B in several parts.
func TestManyPanels(t *testing.T) {
	if raceEnabled {
		t.Skip("too slow with the race detector")
	}
	checkOne[float32](t, 1, 30, 40, 70000, 7, dense, transposed)
	if !testing.Short() {
		checkOne[float32](t, 1, 26, 6000, 400, 7, dense, dense)
		checkOne[float64](t, 2, 60, 700, 2500, 7, transposed, dense)
	}
}

func TestSameBitsOnAnyThreads(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, level := range levels() {
		for i, e := range edges {
			if work := e[0] * e[1] * e[2]; level == cpu.Off && work > 1<<23 || raceEnabled && (level == cpu.Off || work > 1<<24) {
				continue
			}
			var first []float32
			for _, threads := range []int{1, 2, 4, 2, 1} {
				runtime.GOMAXPROCS(threads)
				r := rand.New(rand.NewPCG(uint64(i), 3))
				a := operandOf[float32](r, e[0], e[2], layout(i%2)*transposed)
				b := operandOf[float32](r, e[2], e[1], layout(i/2%2)*transposed)
				c, all := result[float32](r, e[0], e[1])
				gemmAt(level, c, a, b, options[float32](r, e[0], e[1], i))
				if first == nil {
					first = all
				}
				for x := range all {
					if math.Float32bits(all[x]) != math.Float32bits(first[x]) {
						t.Fatalf("%v %v: element %d is %g on %d threads, %g before", level, e, x, all[x], threads, first[x])
					}
				}
			}
		}
	}
}

func TestNotANumber(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for _, level := range levels() {
		for _, s := range [][3]int{{1, 1, 5}, {1, 40, 20}, {40, 1, 20}, {13, 33, 70}, {60, 70, 300}} {
			m, n, k := s[0], s[1], s[2]
			for _, x := range []float32{inf, -inf, nan} {
				a, b, c := make([]float32, m*k), make([]float32, k*n), make([]float32, m*n)
				for i := range b {
					b[i] = 1
				}
				a[(m-1)*k+k-1] = 0 // 0 times x is not a number, so is all of column n-1
				b[(k-1)*n+n-1] = x
				gemmAt(level, Dense(c, m, n), Dense(a, m, k), Dense(b, k, n), Options[float32]{Act: ReLU})
				for i := range m {
					for j := range n {
						if got := c[i*n+j]; (got != got) != (j == n-1) || j < n-1 && got != 0 {
							t.Fatalf("%v %v times %v: c[%d,%d] = %v", level, s, x, i, j, got)
						}
					}
				}
			}
		}
	}
}

func TestManyCallers(t *testing.T) {
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 10 {
				checkOne[float32](t, uint64(i), 20+i, 30+j, 40, 3, dense, transposed)
				checkOne[float64](t, uint64(i), 3+i, 3+j, 40, 3, dense, dense)
			}
		})
	}
	wg.Wait()
}

func TestPanics(t *testing.T) {
	ok := Dense(make([]float32, 6), 2, 3)
	square := Dense(make([]float32, 4), 2, 2)
	cases := map[string]func(){
		"shape":      func() { Gemm(ok, square, Dense(make([]float32, 4), 2, 2), Options[float32]{}) },
		"short C":    func() { Gemm(Dense(make([]float32, 5), 2, 3), square, ok, Options[float32]{}) },
		"short A":    func() { Gemm(ok, Dense(make([]float32, 3), 2, 2), ok, Options[float32]{}) },
		"short B":    func() { Gemm(ok, square, Dense(make([]float32, 5), 2, 3), Options[float32]{}) },
		"columns":    func() { Gemm(Dense(make([]float32, 6), 3, 2).T(), square, ok, Options[float32]{}) },
		"overlap":    func() { Gemm(Matrix[float32]{ok.Data, 2, 3, 2, 1}, square, ok, Options[float32]{}) },
		"bias":       func() { Gemm(ok, square, ok, Options[float32]{Bias: make([]float32, 2)}) },
		"row bias":   func() { Gemm(ok, square, ok, Options[float32]{RowBias: make([]float32, 3)}) },
		"activation": func() { Gemm(ok, square, ok, Options[float32]{Act: 9}) },
		"negative":   func() { Gemm(ok, Matrix[float32]{square.Data, 2, 2, -1, 1}, ok, Options[float32]{}) },
		"huge":       func() { Gemm(ok, Matrix[float32]{square.Data, 2, 2, math.MaxInt, 1}, ok, Options[float32]{}) },
		"batch":      func() { Batch([]Dim{{N: 2, C: 1}}, ok, square, ok, Options[float32]{}) },
	}
	for name, f := range cases {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if s, ok := recover().(string); !ok {
					t.Errorf("no panic of this package: %v", s)
				}
			}()
			f()
		})
	}
}

func TestNoAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector empties pools")
	}
	r := rand.New(rand.NewPCG(1, 1))
	for _, s := range [][3]int{{4, 4, 4}, {100, 1, 40}, {40, 200, 70}, {20, 20, 128}} {
		a, b := operandOf[float32](r, s[0], s[2], dense), operandOf[float32](r, s[2], s[1], transposed)
		c, _ := result[float32](r, s[0], s[1])
		if n := testing.AllocsPerRun(100, func() { Gemm(c, a, b, Options[float32]{Act: ReLU}) }); n > 0 {
			t.Errorf("%v: %v allocations", s, n)
		}
		dims := []Dim{{N: 1}}
		if n := testing.AllocsPerRun(100, func() { Batch(dims, c, a, b, Options[float32]{Act: ReLU}) }); n > 0 {
			t.Errorf("batch of %v: %v allocations", s, n)
		}
	}
}
