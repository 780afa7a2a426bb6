package gemm

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/gfnem/gfnem/engine/internal/cpu"
	"pgregory.net/rapid"
)

// batchOf makes a random batch: axes whose steps for A and B may be 0, and the matrices of the first product, in data
// that holds all. Matrices of different products interleave if mixed: as heads do in attention.
func batchOf[T Float](r *rand.Rand, counts []int, m, n, k int, la, lb layout, mixed bool) (dims []Dim, c, a, b Matrix[T]) {
	a, b = operandOf[T](r, m, k, la), operandOf[T](r, k, n, lb)
	c = Matrix[T]{Rows: m, Cols: n, RowStride: n + r.IntN(3), ColStride: 1}
	total := 1
	for _, x := range counts {
		total *= x
	}
	if mixed {
		c.RowStride = n * max(total, 1)
	}
	stepA, stepB, stepC := len(a.Data), len(b.Data)+r.IntN(3), max(m, 1)*c.RowStride
	if mixed {
		stepC = n
	}
	dims = make([]Dim, len(counts))
	for i := len(counts) - 1; i >= 0; i-- {
		dims[i] = Dim{N: counts[i], A: stepA, B: stepB, C: stepC}
		stepA, stepB, stepC = stepA*counts[i], stepB*counts[i], stepC*counts[i]
		switch r.IntN(5) {
		case 0:
			dims[i].A = 0
		case 1:
			dims[i].B = 0
		}
	}
	fill := func(n int) []T {
		d := make([]T, n)
		for i := range d {
			d[i] = T(r.NormFloat64())
		}
		return d
	}
	a.Data, b.Data = fill(stepA+1), fill(stepB+1)
	c.Data = fill(max(m, 1)*max(n*max(total, 1), stepC) + 1)
	return dims, c, a, b
}

// places lists the steps from the first product to each.
func places(dims []Dim) []Dim {
	all := []Dim{{}}
	for _, d := range dims {
		var next []Dim
		for _, at := range all {
			for x := range d.N {
				next = append(next, Dim{A: at.A + x*d.A, B: at.B + x*d.B, C: at.C + x*d.C})
			}
		}
		all = next
	}
	return all
}

func moved[T Float](m Matrix[T], step int) Matrix[T] {
	m.Data = m.Data[step:]
	return m
}

func checkBatch[T Float](t rapid.TB, seed uint64, counts []int, m, n, k, which int, la, lb layout, mixed bool) {
	t.Helper()
	for _, level := range levels() {
		r := rand.New(rand.NewPCG(seed, 1))
		dims, c, a, b := batchOf[T](r, counts, m, n, k, la, lb, mixed)
		o := options[T](r, m, n, which)
		type expected struct{ want, slack []float64 }
		var all []expected
		for _, at := range places(dims) {
			want, slack := expect(moved(c, at.C), moved(a, at.A), moved(b, at.B), o)
			all = append(all, expected{want, slack})
		}
		before := append([]T(nil), c.Data...)
		batchAt(level, dims, c, a, b, o)
		for x, at := range places(dims) {
			for i := range m {
				for j := range n {
					y := at.C + i*c.RowStride + j
					e := i*n + j
					if got := float64(c.Data[y]); !(math.Abs(got-all[x].want[e]) <= all[x].slack[e]) {
						t.Fatalf("%T %v %v of [%d,%d]x[%d,%d] options %d: product %d, c[%d,%d] = %g, want %g",
							T(0), level, dims, m, k, k, n, which, x, i, j, got, all[x].want[e])
					}
					c.Data[y] = before[y]
				}
			}
		}
		for y := range before {
			if c.Data[y] != before[y] {
				t.Fatalf("%T %v %v of [%d,%d]x[%d,%d]: element %d overwritten", T(0), level, dims, m, k, k, n, y)
			}
		}
	}
}

func TestBatch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		counts := rapid.SliceOfN(rapid.IntRange(0, 9), 0, 3).Draw(t, "counts")
		size := rapid.OneOf(rapid.IntRange(0, 40), rapid.IntRange(1, 5))
		m, n, k := size.Draw(t, "m"), size.Draw(t, "n"), size.Draw(t, "k")
		which := rapid.IntRange(0, 63).Draw(t, "options")
		form := rapid.IntRange(0, int(layouts)-1)
		la, lb := layout(form.Draw(t, "layout of A")), layout(form.Draw(t, "layout of B"))
		mixed := rapid.Bool().Draw(t, "mixed")
		seed := rapid.Uint64().Draw(t, "seed")
		checkBatch[float32](t, seed, counts, m, n, k, which, la, lb, mixed)
		checkBatch[float64](t, seed, counts, m, n, k, which, la, lb, mixed)
	})
}

// TestLargeBatches are cut among threads: by products, or each product.
func TestLargeBatches(t *testing.T) {
	checkBatch[float32](t, 1, []int{32, 8}, 20, 20, 64, 0, padded, transposedPadded, true)
	checkBatch[float32](t, 2, []int{700}, 4, 4, 4, 11, dense, dense, false)
	checkBatch[float32](t, 3, []int{700}, 5, 7, 3, 6, dense, transposed, false)
	checkBatch[float64](t, 4, []int{3}, 150, 160, 200, 3, dense, dense, false)
	checkBatch[float32](t, 5, []int{300}, 1, 70, 30, 3, dense, dense, false)
	checkBatch[float32](t, 6, []int{300}, 70, 1, 30, 3, dense, dense, false)
}

func TestBatchSameBits(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, level := range levels() {
		for _, s := range [][4]int{{256, 20, 20, 64}, {700, 4, 4, 4}, {3, 200, 200, 200}} {
			if raceEnabled && level == cpu.Off {
				continue
			}
			var first []float32
			for _, threads := range []int{1, 2, 4} {
				runtime.GOMAXPROCS(threads)
				r := rand.New(rand.NewPCG(1, 3))
				dims, c, a, b := batchOf[float32](r, s[:1], s[1], s[2], s[3], dense, transposed, false)
				batchAt(level, dims, c, a, b, options[float32](r, s[1], s[2], 3))
				if first == nil {
					first = c.Data
				}
				for x := range first {
					if math.Float32bits(c.Data[x]) != math.Float32bits(first[x]) {
						t.Fatalf("%v %v: element %d on %d threads", level, s, x, threads)
					}
				}
			}
		}
	}
}

func FuzzShapes(f *testing.F) {
	f.Add(uint64(1), uint16(3), uint16(4), uint16(5), uint8(0), uint8(0), uint8(1))
	f.Add(uint64(2), uint16(1), uint16(400), uint16(500), uint8(9), uint8(2), uint8(2))
	f.Add(uint64(3), uint16(33), uint16(65), uint16(600), uint8(63), uint8(4), uint8(3))
	f.Fuzz(func(t *testing.T, seed uint64, m, n, k uint16, which, la, lb uint8) {
		m, n, k = m%700, n%700, k%2000
		if int(m)*int(n)*int(k) > 1<<21 {
			t.Skip("too much work")
		}
		checkOne[float32](t, seed, int(m), int(n), int(k), int(which%64), layout(la)%layouts, layout(lb)%layouts)
		checkBatch[float64](t, seed, []int{2}, int(m%40), int(n%40), int(k%40), int(which%64),
			layout(la)%layouts, layout(lb)%layouts, seed%2 == 0)
	})
}

func ExampleGemm() {
	a := Dense([]float32{1, 2, 3, 4, 5, 6}, 2, 3)
	c := Dense(make([]float32, 4), 2, 2)
	Gemm(c, a, a.T(), Options[float32]{Bias: []float32{0, -40}, Act: ReLU})
	fmt.Println(c.Data)
	// Output: [14 0 32 37]
}

func ExampleBatch() {
	// Two heads of two positions and one feature: scores of all pairs of positions, [head, position, position].
	q := []float64{1, 10, 2, 20} // [position, head]
	scores := make([]float64, 8)
	head := Matrix[float64]{Data: q, Rows: 2, Cols: 1, RowStride: 2, ColStride: 1}
	Batch([]Dim{{N: 2, A: 1, B: 1, C: 4}}, Dense(scores, 2, 2), head, head.T(), Options[float64]{})
	fmt.Println(scores)
	// Output: [1 2 2 4 100 200 200 400]
}
