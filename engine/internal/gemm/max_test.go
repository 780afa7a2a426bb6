package gemm

import (
	"math"
	"math/rand/v2"
	"runtime"
	"testing"

	"pgregory.net/rapid"
)

// sameFloat says whether two numbers have the same bits, or both are NaN.
func sameFloat[T Float](a, b T) bool {
	return a != a && b != b || a == b && math.Signbit(float64(a)) == math.Signbit(float64(b))
}

// greatestSums is the oracle of maxima.
func greatestSums[T Float](c, a, b Matrix[T], add bool) (want []T) {
	for i := range c.Rows {
		for j := range c.Cols {
			most := T(math.Inf(-1))
			if add {
				most = c.Data[i*c.RowStride+j]
			}
			for k := range a.Cols {
				most = max(most, a.Data[i*a.RowStride+k*a.ColStride]+b.Data[k*b.RowStride+j*b.ColStride])
			}
			want = append(want, most)
		}
	}
	return want
}

// sprinkle puts numbers that are hard to compare among others: zeros of both signs, or infinities and NaN as well.
func sprinkle[T Float](r *rand.Rand, data []T, odd bool) {
	all := []float64{0, math.Copysign(0, -1), 0, math.Copysign(0, -1)}
	if odd {
		all = append(all, math.Inf(-1), math.Inf(-1), math.Inf(1), math.NaN(), math.Copysign(math.NaN(), -1))
	}
	for i := range data {
		if !odd || r.IntN(20) == 0 {
			data[i] = T(all[r.IntN(len(all))])
		}
	}
}

func checkMax[T Float](t rapid.TB, seed uint64, m, n, k int, add bool, kind int, la, lb layout) {
	t.Helper()
	for _, level := range levels() {
		r := rand.New(rand.NewPCG(seed, 5))
		a, b := operandOf[T](r, m, k, la), operandOf[T](r, k, n, lb)
		c, all := result[T](r, m, n)
		if kind > 0 {
			for _, x := range []Matrix[T]{a, b} {
				sprinkle(r, x.Data, kind > 1)
			}
		}
		want := greatestSums(c, a, b, add)
		gemmAt(level, c, a, b, Options[T]{Max: true, Add: add})
		for i := range m {
			for j := range n {
				if got, want := c.Data[i*c.RowStride+j], want[i*n+j]; !sameFloat(got, want) {
					t.Fatalf("%T %v [%d,%d]x[%d,%d] layouts %d, %d kind %d add %v: c[%d,%d] = %g, want %g",
						T(0), level, m, k, k, n, la, lb, kind, add, i, j, got, want)
				}
				c.Data[i*c.RowStride+j] = guard
			}
		}
		for i, x := range all {
			if x != guard {
				t.Fatalf("%T %v [%d,%d]x[%d,%d]: element %d of the buffer was overwritten with %g", T(0), level, m, k, k, n, i, x)
			}
		}
	}
}

// TestMaxima compares products of maxima with the plain loop, bit by bit.
func TestMaxima(t *testing.T) {
	limit := 36
	switch {
	case raceEnabled:
		limit = 6
	case testing.Short():
		limit = 12
	}
	r := rand.New(rand.NewPCG(1, 6))
	for m := 1; m <= limit; m++ {
		for n := 1; n <= limit; n++ {
			k := r.IntN(limit)
			la, lb := layout(r.IntN(int(layouts))), layout(r.IntN(int(layouts)))
			checkMax[float32](t, r.Uint64(), m, n, k, r.IntN(2) == 0, r.IntN(3), la, lb)
			checkMax[float64](t, r.Uint64(), m, n, k, r.IntN(2) == 0, r.IntN(3), lb, la)
		}
	}
	for i, e := range edges {
		if work := e[0] * e[1] * e[2]; work > 1<<22 && (testing.Short() || raceEnabled) || work > 1<<25 {
			continue
		}
		la, lb := []layout{dense, transposed, spread}[i%3], []layout{dense, padded, transposed}[i/3%3]
		checkMax[float32](t, uint64(i), e[0], e[1], e[2], i%2 == 0, i%3, la, lb)
	}
}

// TestMaximaOfBatches compares batches of products of maxima with single ones.
func TestMaximaOfBatches(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 40)
		m, n, k := size.Draw(t, "m"), size.Draw(t, "n"), size.Draw(t, "k")
		counts := rapid.SliceOfN(rapid.IntRange(1, 6), 1, 3).Draw(t, "counts")
		form := rapid.IntRange(0, int(layouts)-1)
		la, lb := layout(form.Draw(t, "A")), layout(form.Draw(t, "B"))
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		dims, c, a, b := batchOf[float32](r, counts, m, n, k, la, lb, rapid.Bool().Draw(t, "mixed"))
		for _, level := range levels() {
			batchAt(level, dims, c, a, b, Options[float32]{Max: true})
			for _, at := range places(dims) {
				one := moved(c, at.C)
				want := greatestSums(one, moved(a, at.A), moved(b, at.B), false)
				for i := range m {
					for j := range n {
						if got := one.Data[i*one.RowStride+j]; !sameFloat(got, want[i*n+j]) {
							t.Fatalf("%v: c[%d,%d] of product %+v is %g, want %g", level, i, j, at, got, want[i*n+j])
						}
					}
				}
			}
		}
	})
}

func TestMaximaOnAnyThreads(t *testing.T) {
	if raceEnabled {
		t.Skip("too slow with the race detector")
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, threads := range []int{1, 2, 3, 8} {
		runtime.GOMAXPROCS(threads)
		for i, s := range [][3]int{{600, 300, 90}, {16, 20, 30000}, {40, 2000, 60}} {
			checkMax[float32](t, uint64(i), s[0], s[1], s[2], i == 1, 2, dense, transposed)
		}
	}
}
