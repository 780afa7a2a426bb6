//go:build amd64 || arm64

package vec

import "sync"

// Short rows are slow one by one: a reduction uses a few lanes and waits for itself. The kernels here transpose strips of
// rows, work on whole columns, and transpose back.

const (
	tallWidth = 16  // longest row
	tallStrip = 256 // rows at a time
)

// tall is the scratch of a strip.
type tall[T Float] struct {
	cols      [tallWidth * tallStrip]T
	best, sum [tallStrip]T
	tmp       [tallStrip]T
}

// installTall replaces the kernels of softmax and its like for rows of the lengths where that was measured to be
// quicker; softRows and logRows say which for softmax and for the others.
func installTall[T Float](t *Table[T], softRows, logRows func(n int) bool) {
	pool := sync.Pool{New: func() any { return new(tall[T]) }}
	lse, soft, logs := t.LogSumExp, t.Softmax, t.LogSoftmax
	t.LogSumExp = func(dst, a []T, n int) {
		if n > tallWidth || !logRows(n) || len(dst) < tallStrip/8 {
			lse(dst, a, n)
			return
		}
		checkRows(len(dst), len(a), n)
		w := pool.Get().(*tall[T])
		defer pool.Put(w)
		for i := 0; i < len(dst); i += tallStrip {
			k := min(tallStrip, len(dst)-i)
			w.sums(t, a[i*n:(i+k)*n], k, n, false, true)
			t.Unary[Log](w.sum[:k], w.sum[:k])
			t.Binary[Add](dst[i:i+k], w.sum[:k], w.best[:k])
		}
	}
	rows := func(old func(dst, a []T, n int), when func(n int) bool, log bool) func(dst, a []T, n int) {
		return func(dst, a []T, n int) {
			if n > tallWidth || !when(n) || len(a) < tallStrip/8*n {
				old(dst, a, n)
				return
			}
			check(len(dst), len(a))
			checkRows(len(a)/n, len(a), n)
			w := pool.Get().(*tall[T])
			defer pool.Put(w)
			for i := 0; i < len(a); i += tallStrip * n {
				part := a[i:min(i+tallStrip*n, len(a))]
				k := len(part) / n
				w.sums(t, part, k, n, !log, false)
				op := Mul
				if log {
					op = Sub
					t.Unary[Log](w.sum[:k], w.sum[:k])
				} else {
					t.Unary[Reciprocal](w.sum[:k], w.sum[:k])
				}
				for j := range n {
					c := w.cols[j*k : (j+1)*k]
					t.Binary[op](c, c, w.sum[:k])
				}
				t.Transpose(dst[i:i+len(part)], w.cols[:k*n], n, k)
			}
		}
	}
	t.Softmax, t.LogSoftmax = rows(soft, softRows, false), rows(logs, logRows, true)
}

// sums leaves the columns less the rows' maxima (or the exponentials of that, if keep) in cols, the maxima in best and
// the sums of exponentials in sum. Where finite is set, an infinite maximum is taken as 0.
func (w *tall[T]) sums(t *Table[T], a []T, k, n int, keep, finite bool) {
	t.Transpose(w.cols[:k*n], a, k, n)
	best, sum, tmp := w.best[:k], w.sum[:k], w.tmp[:k]
	copy(best, w.cols[:k])
	for j := 1; j < n; j++ {
		t.Binary[Max](best, best, w.cols[j*k:(j+1)*k])
	}
	if finite {
		for i, m := range best {
			best[i] = shift(m)
		}
	}
	for j := range n {
		c := w.cols[j*k : (j+1)*k]
		t.Binary[Sub](c, c, best)
		e := tmp
		if keep {
			e = c
		}
		if j == 0 {
			t.Unary[Exp](sum, c)
			if keep {
				copy(c, sum)
			}
			continue
		}
		t.Unary[Exp](e, c)
		t.Binary[Add](sum, sum, e)
	}
}
