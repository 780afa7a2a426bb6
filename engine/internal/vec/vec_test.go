package vec

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/gfnem/gfnem/engine/internal/cpu"
)

// levels are those this machine can run.
func levels() []cpu.Level { return cpu.Levels() }

// type set of a table under test: how to make it, draw elements and compare results.
type kind[T Number] struct {
	name  string
	make  func(cpu.Level) *Table[T]
	draw  func(r *rand.Rand) T
	equal func(want, got T) bool
}

var specials = []float64{0, math.Copysign(0, -1), 1, -1, math.Inf(1), math.Inf(-1), math.NaN(), 0.5, -0.5, 1.5, 2.5, -2.5,
	math.SmallestNonzeroFloat32, -math.SmallestNonzeroFloat32, math.MaxFloat32, -math.MaxFloat32, 1e-40, 100, -100, 88.7, -104}

func drawFloat(r *rand.Rand) float64 {
	switch r.IntN(5) {
	case 0:
		return specials[r.IntN(len(specials))]
	case 1:
		return math.Ldexp(r.NormFloat64(), r.IntN(60)-30)
	case 2:
		return float64(r.IntN(9) - 4)
	}
	return 3 * r.NormFloat64()
}

// sameFloat is equality of bits, except that all NaNs are one.
func sameFloat[T Float](want, got T) bool {
	return want != want && got != got || want == got && math.Signbit(float64(want)) == math.Signbit(float64(got))
}

func sameInt[T Integer](want, got T) bool { return want == got }

func drawInt[T Integer](r *rand.Rand) T {
	switch r.IntN(4) {
	case 0:
		return T(r.IntN(9))
	case 1:
		lo, hi := limits[T]()
		return []T{lo, hi, 0, 1, ^T(0)}[r.IntN(5)]
	case 2:
		return T(r.IntN(80)) - 8
	}
	return T(r.Uint64())
}

var (
	kindF32 = kind[float32]{"float32", newF32, func(r *rand.Rand) float32 { return float32(drawFloat(r)) }, sameFloat[float32]}
	kindF64 = kind[float64]{"float64", newF64, drawFloat, sameFloat[float64]}
	kindI32 = kind[int32]{"int32", newI32, drawInt[int32], sameInt[int32]}
	kindI64 = kind[int64]{"int64", newI64, drawInt[int64], sameInt[int64]}
	kindU32 = kind[uint32]{"uint32", newU32, drawInt[uint32], sameInt[uint32]}
	kindU64 = kind[uint64]{"uint64", newU64, drawInt[uint64], sameInt[uint64]}
)

// each runs a generic test for every element type and level.
func each(t *testing.T, f32 func(*testing.T, kind[float32], cpu.Level), f64 func(*testing.T, kind[float64], cpu.Level),
	i32 func(*testing.T, kind[int32], cpu.Level), i64 func(*testing.T, kind[int64], cpu.Level),
	u32 func(*testing.T, kind[uint32], cpu.Level), u64 func(*testing.T, kind[uint64], cpu.Level)) {
	for _, l := range levels() {
		name := func(s string) string { return fmt.Sprintf("%s/%s", s, l) }
		t.Run(name("float32"), func(t *testing.T) { f32(t, kindF32, l) })
		t.Run(name("float64"), func(t *testing.T) { f64(t, kindF64, l) })
		if i32 != nil {
			t.Run(name("int32"), func(t *testing.T) { i32(t, kindI32, l) })
			t.Run(name("int64"), func(t *testing.T) { i64(t, kindI64, l) })
			t.Run(name("uint32"), func(t *testing.T) { u32(t, kindU32, l) })
			t.Run(name("uint64"), func(t *testing.T) { u64(t, kindU64, l) })
		}
	}
}

const guard = 9 // elements around a destination that must not change

// padded is a slice of n elements at a random place of a larger one whose other elements are guards.
type padded[T any] struct {
	all  []T
	s    []T
	mark T
	at   int
}

func pad[T any](r *rand.Rand, n int, mark T, draw func(*rand.Rand) T) padded[T] {
	at := guard + r.IntN(20)
	all := make([]T, at+n+guard)
	for i := range all {
		all[i] = mark
	}
	s := all[at : at+n : at+n]
	for i := range s {
		s[i] = draw(r)
	}
	return padded[T]{all, s, mark, at}
}

func (p padded[T]) intact(t *testing.T, what string, same func(a, b T) bool) {
	t.Helper()
	for i, x := range p.all {
		if (i < p.at || i >= p.at+len(p.s)) && !same(x, p.mark) {
			t.Fatalf("%s wrote outside its destination: element %d of %d", what, i-p.at, len(p.s))
		}
	}
}

func (k kind[T]) slice(r *rand.Rand, n int) []T {
	p := pad(r, n, T(7), k.draw)
	return p.s
}

// matches compares with the twin.
func (k kind[T]) matches(t *testing.T, what string, want, got []T, inputs ...[]T) {
	t.Helper()
	for i := range want {
		if !k.equal(want[i], got[i]) {
			var in []T
			for _, x := range inputs {
				if len(x) == len(want) {
					in = append(in, x[i])
				}
			}
			t.Fatalf("%s: element %d of %d is %v, want %v; operands %v", what, i, len(want), got[i], want[i], in)
		}
	}
}

func lengths() []int {
	var n []int
	for i := range 71 {
		n = append(n, i)
	}
	return append(n, 127, 128, 129, 200, 513)
}

func sameBool(a, b bool) bool { return a == b }

func drawBool(r *rand.Rand) bool { return r.IntN(2) == 0 }
