package vec

import (
	"flag"
	"math"
	"testing"
)

var every = flag.Uint64("every", 255, "test accuracy on every so many float32 values; 1 is all of them")

// ordered maps the bits of floats to integers in order, so that neighbours differ by one.
func ordered32(x float32) int64 {
	if i := int32(math.Float32bits(x)); i < 0 {
		return -int64(i & math.MaxInt32)
	} else {
		return int64(i)
	}
}

func ordered64(x float64) int64 {
	if i := int64(math.Float64bits(x)); i < 0 {
		return -(i & math.MaxInt64)
	} else {
		return i
	}
}

// distance is how many floats apart two floats are.
func distance[T Number](x, y T) float64 {
	switch x := any(x).(type) {
	case float32:
		return math.Abs(float64(ordered32(x) - ordered32(any(y).(float32))))
	case float64:
		i, j := ordered64(x), ordered64(any(y).(float64))
		if (i < 0) == (j < 0) {
			return math.Abs(float64(i - j))
		}
		return math.Abs(float64(i)) + math.Abs(float64(j))
	}
	return math.Inf(1)
}

// ulps32 is the error of got in units of the last place of the true value.
func ulps32(want float64, got float32) float64 {
	w := float32(want)
	switch {
	case want != want || got != got:
		if (want != want) == (got != got) {
			return 0
		}
		return math.Inf(1)
	case w == got:
		return 0
	case math.IsInf(float64(w), 0) || math.IsInf(float64(got), 0):
		if math.Abs(want) > math.MaxFloat32*(1-0x1p-24) {
			return distance(w, got) // near the threshold
		}
		return math.Inf(1)
	}
	_, e := math.Frexp(want)
	ulp := math.Ldexp(1, max(e-24, -149))
	return math.Abs(want-float64(got)) / ulp
}

var accurate = []struct {
	op  UnaryOp
	f   func(float64) float64
	max float64
}{
	{Exp, exp, 1.5},
	{Expm1, math.Expm1, 1.99},
	{Log, log, 1.5},
	{Log1p, math.Log1p, 1.99},
	{Tanh, tanh, 1.99},
	{Logistic, logistic, 1.99},
	{Erf, math.Erf, 1.5},
	{Sin, math.Sin, 1.99},
	{Cos, math.Cos, 1.99},
	{Rsqrt, func(x float64) float64 { return 1 / math.Sqrt(x) }, 1.51},
}

// TestAccuracy32 goes over the bit patterns of float32: one in -every, fewer with -short.
func TestAccuracy32(t *testing.T) {
	step := *every
	if testing.Short() {
		step = 4095
	}
	for _, l := range levels()[1:] {
		tab := newF32(l)
		for _, c := range accurate {
			worst, at := 0.0, float32(0)
			const n = 4096
			a, dst := make([]float32, n), make([]float32, n)
			for p := uint64(0); p < 1<<32; p += n * step {
				for i := range a {
					a[i] = math.Float32frombits(uint32(p + uint64(i)*step))
				}
				tab.Unary[c.op](dst, a)
				for i, x := range a {
					want := c.f(float64(x))
					if u := ulps32(want, dst[i]); u > worst {
						worst, at = u, x
					}
					if want == 0 && math.Signbit(want) != math.Signbit(float64(dst[i])) {
						t.Fatalf("%s at %s: %v gives %v", c.op, l, x, dst[i])
					}
				}
			}
			t.Logf("%-9s %-6s %.3f ulp at %v", c.op, l, worst, at)
			if worst > c.max {
				t.Errorf("%s at %s: %.3f ulp at %v", c.op, l, worst, at)
			}
		}
	}
}
