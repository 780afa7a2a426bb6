//go:build amd64 || arm64

package vec

import (
	"math"
	"sync"
)

const powStrip = 256

// installPow makes powers of float32 as e^(y log x) in float64, which leaves at most one wrong last bit. What is not a
// positive finite base with a finite exponent goes to math.Pow.
func installPow(t *Table[float32], wide *Table[float64]) {
	pool := sync.Pool{New: func() any { return new([2 * powStrip]float64) }}
	strip := func(w *[2 * powStrip]float64, dst, a, b []float32, as, bs int) {
		x, y := w[:len(dst)], w[powStrip:powStrip+len(dst)]
		for i := range x {
			x[i], y[i] = math.Abs(float64(a[i*as])), float64(b[i*bs])
		}
		wide.Unary[Log](x, x)
		wide.Binary[Mul](x, x, y)
		wide.Unary[Exp](x, x)
		for i := range dst {
			p, q := a[i*as], b[i*bs]
			if p > 0 && p-p == 0 && q-q == 0 {
				dst[i] = float32(x[i])
			} else {
				dst[i] = float32(math.Pow(float64(p), float64(q)))
			}
		}
	}
	t.Binary[Pow] = func(dst, a, b []float32) {
		check(len(dst), len(a))
		check(len(dst), len(b))
		w := pool.Get().(*[2 * powStrip]float64)
		defer pool.Put(w)
		for i := 0; i < len(dst); i += powStrip {
			j := min(i+powStrip, len(dst))
			strip(w, dst[i:j], a[i:j], b[i:j], 1, 1)
		}
	}
	simple := t.BinaryVS[Pow]
	t.BinaryVS[Pow] = func(dst, a []float32, s float32) {
		switch s {
		case 2, 1, -1:
			simple(dst, a, s)
			return
		}
		check(len(dst), len(a))
		w := pool.Get().(*[2 * powStrip]float64)
		defer pool.Put(w)
		b := [1]float32{s}
		for i := 0; i < len(dst); i += powStrip {
			j := min(i+powStrip, len(dst))
			strip(w, dst[i:j], a[i:j], b[:], 1, 0)
		}
	}
	t.BinarySV[Pow] = func(dst []float32, s float32, b []float32) {
		check(len(dst), len(b))
		w := pool.Get().(*[2 * powStrip]float64)
		defer pool.Put(w)
		a := [1]float32{s}
		for i := 0; i < len(dst); i += powStrip {
			j := min(i+powStrip, len(dst))
			strip(w, dst[i:j], a[:], b[i:j], 0, 1)
		}
	}
}
