package vec

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// The references below work with 400 bits, by series alone.

const prec = 400

func bigOf(x float64) *big.Float { return new(big.Float).SetPrec(prec).SetFloat64(x) }

func bigNew() *big.Float { return new(big.Float).SetPrec(prec) }

// bigExp is e^x: the series at x/2^k, squared k times.
func bigExp(x *big.Float) *big.Float {
	k := max(0, x.MantExp(nil)+8)
	r := bigNew().SetMantExp(x, -k)
	sum, term := bigOf(1), bigOf(1)
	for i := 1; i < 60; i++ {
		term.Mul(term, r)
		term.Quo(term, bigOf(float64(i)))
		sum.Add(sum, term)
	}
	for range k {
		sum.Mul(sum, sum)
	}
	return sum
}

// bigLog is log(x): Newton's method on e^y = m for the mantissa, and log(2) by that for 1/2.
func bigLog(x *big.Float) *big.Float {
	m := bigNew()
	e := x.MantExp(m)
	y := bigLogMantissa(m)
	return y.Sub(y, bigNew().Mul(bigLogMantissa(bigOf(0.5)), bigOf(float64(e))))
}

func bigLogMantissa(m *big.Float) *big.Float {
	f, _ := m.Float64()
	y := bigOf(math.Log(f))
	for range 3 { // y += 2 (m - e^y) / (m + e^y)
		ey := bigExp(y)
		d := bigNew().Quo(bigNew().Sub(m, ey), bigNew().Add(m, ey))
		y.Add(y, d.Mul(d, bigOf(2)))
	}
	return y
}

// bigErf is 2/sqrt(pi) sum (-1)^n x^(2n+1) / (n! (2n+1)).
func bigErf(x *big.Float) *big.Float {
	pi, _, _ := big.ParseFloat("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534211706798214808651328230664709", 10, prec, big.ToNearestEven)
	z := bigNew().Mul(x, x)
	term, sum := bigNew().Set(x), bigNew().Set(x)
	for n := 1; n < 250; n++ {
		term.Mul(term, z)
		term.Quo(term, bigOf(float64(-n)))
		sum.Add(sum, bigNew().Quo(term, bigOf(float64(2*n+1))))
	}
	return sum.Mul(sum, bigNew().Quo(bigOf(2), bigNew().Sqrt(pi)))
}

// ulps64 is the error of got in units of the last place of the true value.
func ulps64(want *big.Float, got float64) float64 {
	w, _ := want.Float64()
	if w == got {
		return 0
	}
	if math.IsInf(w, 0) || math.IsInf(got, 0) || got != got {
		return distance(w, got)
	}
	e := want.MantExp(nil)
	ulp := math.Ldexp(1, max(e-53, -1074))
	d, _ := bigNew().Sub(want, bigOf(got)).Float64()
	return math.Abs(d) / ulp
}

var accurate64 = []struct {
	op     UnaryOp
	lo, hi float64 // where to draw; small magnitudes are drawn as well
	f      func(x *big.Float) *big.Float
}{
	{Exp, -745.2, 709.8, bigExp},
	{Expm1, -40, 709.8, func(x *big.Float) *big.Float { e := bigExp(x); return e.Sub(e, bigOf(1)) }},
	{Log, 0, 1e4, bigLog},
	{Log1p, -1, 1e4, func(x *big.Float) *big.Float {
		if x.MantExp(nil) < -100 {
			return x
		}
		return bigLog(bigNew().Add(x, bigOf(1)))
	}},
	{Tanh, -22, 22, func(x *big.Float) *big.Float {
		e := bigExp(bigNew().Add(x, x))
		return bigNew().Quo(bigNew().Sub(e, bigOf(1)), bigNew().Add(e, bigOf(1)))
	}},
	{Logistic, -745, 40, func(x *big.Float) *big.Float {
		e := bigExp(bigNew().Neg(x))
		return bigNew().Quo(bigOf(1), e.Add(e, bigOf(1)))
	}},
	{Erf, -6.5, 6.5, bigErf},
}

// TestAccuracy64 draws points evenly, near zero, near one and over all exponents.
func TestAccuracy64(t *testing.T) {
	n := 4000
	if testing.Short() {
		n = 400
	}
	r := rand.New(rand.NewPCG(7, 8))
	for _, c := range accurate64 {
		a := []float64{}
		if c.op == Exp || c.op == Expm1 {
			a = append(a, 709.78271289338397) // the last one that is finite
		}
		for len(a) < n {
			x := c.lo + (c.hi-c.lo)*r.Float64()
			switch len(a) % 4 {
			case 1:
				x = math.Ldexp(r.NormFloat64(), -r.IntN(6))
			case 2:
				x = math.Copysign(math.Ldexp(1+r.Float64(), r.IntN(70)-60), x)
			case 3:
				if c.op == Log || c.op == Log1p {
					x = math.Abs(math.Float64frombits(r.Uint64()))
				}
				if c.op == Log && len(a)%8 == 3 {
					x = 1 + math.Ldexp(r.NormFloat64(), -r.IntN(40))
				}
			}
			if c.op == Log {
				x = math.Abs(x)
			}
			if x >= c.lo && x <= c.hi || x > 1 && !math.IsInf(x, 0) && (c.op == Log || c.op == Log1p) {
				a = append(a, x)
			}
		}
		want := make([]*big.Float, len(a))
		for i, x := range a {
			if x != 0 && (c.op != Log1p || x > -1) {
				want[i] = c.f(bigOf(x))
			}
		}
		for _, l := range levels()[1:] {
			dst := make([]float64, len(a))
			newF64(l).Unary[c.op](dst, a)
			worst, at := 0.0, 0.0
			for i, x := range a {
				if want[i] == nil {
					continue
				}
				if u := ulps64(want[i], dst[i]); u > worst {
					worst, at = u, x
				}
			}
			t.Logf("%-9s %-6s %.3f ulp at %v", c.op, l, worst, at)
			if worst > 1.99 {
				t.Errorf("%s at %s: %.3f ulp at %v", c.op, l, worst, at)
			}
		}
	}
}

// TestEnds64 compares special values and thresholds with package math.
func TestEnds64(t *testing.T) {
	points := []float64{0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.NaN(), 5e-324, -5e-324, 1e-310, -1e-310,
		0x1p-1022, math.MaxFloat64, -math.MaxFloat64, 709.78, 709.8, -708.4, -745.1, -745.2, -1, 1, -2, 1e-17, -1e-17, 37, -37, 800, -800, 1e300, -1e300}
	for _, l := range levels()[1:] {
		for _, c := range accurate {
			dst := make([]float64, len(points))
			newF64(l).Unary[c.op](dst, points)
			for i, x := range points {
				want := c.f(x)
				if !sameFloat(want, dst[i]) && (distance(want, dst[i]) > 2 || math.Signbit(want) != math.Signbit(dst[i])) {
					t.Errorf("%s(%v) at %s is %v, want %v", c.op, x, l, dst[i], want)
				}
			}
		}
	}
}
