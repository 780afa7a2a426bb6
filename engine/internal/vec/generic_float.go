package vec

import "math"

// floats is the plain Go table of a floating type.
func floats[T Float]() *Table[T] {
	t := numbers[T]()
	math1 := func(f func(float64) float64) func(dst, a []T) {
		return func(dst, a []T) {
			check(len(dst), len(a))
			for i, x := range a {
				dst[i] = T(f(float64(x)))
			}
		}
	}
	t.Unary[Abs] = func(dst, a []T) {
		check(len(dst), len(a))
		for i, x := range a {
			dst[i] = T(math.Abs(float64(x)))
		}
	}
	t.Unary[Sign] = signFloat[T]
	t.Unary[Sqrt] = func(dst, a []T) {
		check(len(dst), len(a))
		for i, x := range a {
			dst[i] = T(math.Sqrt(float64(x)))
		}
	}
	t.Unary[Rsqrt] = func(dst, a []T) {
		check(len(dst), len(a))
		for i, x := range a {
			dst[i] = T(1 / math.Sqrt(float64(x)))
		}
	}
	t.Unary[Reciprocal] = func(dst, a []T) {
		check(len(dst), len(a))
		for i, x := range a {
			dst[i] = 1 / x
		}
	}
	t.Unary[Floor] = math1(math.Floor)
	t.Unary[Ceil] = math1(math.Ceil)
	t.Unary[Round] = math1(math.RoundToEven)
	t.Unary[Exp] = math1(exp)
	t.Unary[Expm1] = math1(math.Expm1)
	t.Unary[Log] = math1(log)
	t.Unary[Log1p] = math1(math.Log1p)
	t.Unary[Tanh] = math1(tanh)
	t.Unary[Logistic] = math1(logistic)
	t.Unary[Erf] = math1(math.Erf)
	t.Unary[Sin] = math1(math.Sin)
	t.Unary[Cos] = math1(math.Cos)
	t.binary(Rem, func(x, y T) T { return T(math.Mod(float64(x), float64(y))) })
	t.binary(Pow, func(x, y T) T { return T(math.Pow(float64(x), float64(y))) })
	t.BinaryVS[Pow] = powScalar(t)
	t.IsFinite = func(dst []bool, a []T) {
		check(len(dst), len(a))
		for i, x := range a {
			dst[i] = x-x == 0
		}
	}
	t.IsNaN = func(dst []bool, a []T) {
		check(len(dst), len(a))
		for i, x := range a {
			dst[i] = x != x
		}
	}
	t.FMA = func(dst, a, b, c []T) {
		check(len(dst), len(a))
		check(len(dst), len(b))
		check(len(dst), len(c))
		for i := range dst {
			dst[i] = fma(a[i], b[i], c[i])
		}
	}
	t.AXPY = func(dst, a []T, s T, b []T) {
		check(len(dst), len(a))
		check(len(dst), len(b))
		for i := range dst {
			dst[i] = fma(a[i], s, b[i])
		}
	}
	t.AXPBY = func(dst, a []T, s T, b []T, u T) {
		check(len(dst), len(a))
		check(len(dst), len(b))
		for i := range dst {
			dst[i] = fma(a[i], s, T(b[i]*u))
		}
	}
	t.Affine = func(dst, a []T, s, u T) {
		check(len(dst), len(a))
		for i := range dst {
			dst[i] = fma(a[i], s, u)
		}
	}
	t.LogSumExp = func(dst, a []T, n int) { logSumExp(t, dst, a, n) }
	t.Softmax = func(dst, a []T, n int) { softmax(t, dst, a, n) }
	t.LogSoftmax = func(dst, a []T, n int) { logSoftmax(t, dst, a, n) }
	inf := T(math.Inf(1))
	t.neutral(-inf, inf)
	return t
}

func signFloat[T Float](dst, a []T) {
	check(len(dst), len(a))
	for i, x := range a {
		switch {
		case x > 0:
			x = 1
		case x < 0:
			x = -1
		}
		dst[i] = x
	}
}

// fma is a*b + c rounded once.
func fma[T Float](a, b, c T) T {
	if x, ok := any(a).(float64); ok {
		return T(math.FMA(x, float64(b), float64(c)))
	}
	// The product is exact in float64; rounding the sum to odd there keeps its rounding to float32 right.
	p, z := float64(a)*float64(b), float64(c)
	s := p + z
	bb := s - p
	e := (p - (s - bb)) + (z - bb)
	if bits := math.Float64bits(s); e != 0 && e == e && bits&1 == 0 {
		if (e > 0) == (s > 0) {
			bits++
		} else {
			bits--
		}
		s = math.Float64frombits(bits)
	}
	return T(s)
}

// logistic is 1/(1+e^-x) without overflow.
func logistic(x float64) float64 {
	if x >= 0 {
		return 1 / (1 + math.Exp(-x))
	}
	e := exp(x)
	return e / (1 + e)
}

// exp is math.Exp, which overflows too early on amd64 and is 0 where it should be subnormal on arm64 (Go 1.26).
func exp(x float64) float64 {
	switch {
	case x > 709 && x < 709.8:
		return math.Exp(x-16) * 8886110.520507872 // e^16
	case x < -708:
		return math.Exp(x+64) * 1.6038108905486378e-28 // e^-64
	}
	return math.Exp(x)
}

// log is math.Log, which is wrong for subnormal numbers on amd64 (Go 1.26).
func log(x float64) float64 {
	if x < 0x1p-1022 && x > 0 {
		return math.Log(x*0x1p54) - 54*math.Ln2
	}
	return math.Log(x)
}

// tanh is math.Tanh within 1 ulp: the library's loses some bits around 1.
func tanh(x float64) float64 {
	if a := math.Abs(x); a > 0.625 && a < 20 {
		return math.Copysign(1-2/(math.Exp(2*a)+1), x)
	}
	return math.Tanh(x)
}

// powScalar does the common exponents without math.Pow.
func powScalar[T Float](t *Table[T]) func(dst, a []T, s T) {
	return func(dst, a []T, s T) {
		switch s {
		case 2:
			t.Unary[Square](dst, a)
		case 1:
			check(len(dst), len(a))
			copy(dst, a)
		case -1:
			t.Unary[Reciprocal](dst, a)
		default:
			check(len(dst), len(a))
			y := float64(s)
			for i, x := range a {
				dst[i] = T(math.Pow(float64(x), y))
			}
		}
	}
}
