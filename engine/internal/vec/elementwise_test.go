package vec

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gfnem/gfnem/engine/internal/cpu"
)

// exact says whether an operation must agree with its twin bit for bit; the others have tests of accuracy.
func exact(op UnaryOp) bool { return op < Exp && op != Rsqrt || op == Not }

func TestUnary(t *testing.T) {
	each(t, testUnary[float32], testUnary[float64], testUnary[int32], testUnary[int64], testUnary[uint32], testUnary[uint64])
}

func testUnary[T Number](t *testing.T, k kind[T], l cpu.Level) {
	tab, twin := k.make(l), k.make(cpu.Off)
	r := rand.New(rand.NewPCG(1, 2))
	for op := range NumUnary {
		f := tab.Unary[op]
		if f == nil {
			continue
		}
		for _, n := range lengths() {
			a := k.slice(r, n)
			want := make([]T, n)
			twin.Unary[op](want, a)
			dst := pad(r, n, T(7), k.draw)
			f(dst.s, a)
			dst.intact(t, op.String(), k.equal)
			same := slices.Clone(a)
			f(same, same)
			if exact(op) {
				k.matches(t, op.String(), want, dst.s, a)
				k.matches(t, op.String()+" in place", want, same, a)
			} else {
				k.matches(t, op.String()+" in place", dst.s, same, a)
				k.near(t, op.String(), want, dst.s, a)
			}
		}
		mustPanic(t, op.String(), func() { f(make([]T, 3), make([]T, 4)) })
		mustPanic(t, op.String(), func() { f(make([]T, 4), make([]T, 3)) })
	}
}

// near allows a relative error of about 4 ulp; the tests of accuracy are sharper.
func (k kind[T]) near(t *testing.T, what string, want, got, in []T) {
	t.Helper()
	for i := range want {
		if !k.equal(want[i], got[i]) && distance(want[i], got[i]) > 4 {
			t.Fatalf("%s(%v) is %v, want %v", what, in[i], got[i], want[i])
		}
	}
}

func mustPanic(t *testing.T, what string, f func()) {
	t.Helper()
	defer func() {
		if recover() == nil {
			t.Fatalf("%s took operands of different lengths", what)
		}
	}()
	f()
}

func TestBinary(t *testing.T) {
	each(t, testBinary[float32], testBinary[float64], testBinary[int32], testBinary[int64], testBinary[uint32], testBinary[uint64])
}

func testBinary[T Number](t *testing.T, k kind[T], l cpu.Level) {
	tab, twin := k.make(l), k.make(cpu.Off)
	r := rand.New(rand.NewPCG(1, 2))
	for op := range NumBinary {
		f := tab.Binary[op]
		if f == nil {
			continue
		}
		name := op.String()
		k := k
		if op == Pow { // float32 goes through float64: right but for the last bit, seldom
			equal := k.equal
			k.equal = func(x, y T) bool { return equal(x, y) || distance(x, y) <= 1 }
		}
		for _, n := range lengths() {
			a, b := k.slice(r, n), k.slice(r, n)
			s := k.draw(r)
			if op == Div || op == Rem {
				for i := range b {
					b[i] = nonZero(b[i])
					a[i] = nonZero(a[i])
				}
				s = nonZero(s)
			}
			want := make([]T, n)
			twin.Binary[op](want, a, b)
			dst := pad(r, n, T(7), k.draw)
			f(dst.s, a, b)
			dst.intact(t, name, k.equal)
			k.matches(t, name, want, dst.s, a, b)
			x := slices.Clone(a)
			f(x, x, b)
			k.matches(t, name+" into a", want, x, a, b)
			x = slices.Clone(b)
			f(x, a, x)
			k.matches(t, name+" into b", want, x, a, b)

			for i := range want {
				twin.Binary[op](want[i:i+1], a[i:i+1], []T{s})
			}
			tab.BinaryVS[op](dst.s, a, s)
			dst.intact(t, name, k.equal)
			k.matches(t, name+" vector scalar", want, dst.s, a)
			x = slices.Clone(a)
			tab.BinaryVS[op](x, x, s)
			k.matches(t, name+" vector scalar in place", want, x, a)
			for i := range want {
				twin.Binary[op](want[i:i+1], []T{s}, a[i:i+1])
			}
			tab.BinarySV[op](dst.s, s, a)
			dst.intact(t, name, k.equal)
			k.matches(t, name+" scalar vector", want, dst.s, a)
		}
		mustPanic(t, name, func() { f(make([]T, 3), make([]T, 4), make([]T, 3)) })
		mustPanic(t, name, func() { f(make([]T, 3), make([]T, 3), make([]T, 4)) })
		mustPanic(t, name, func() { tab.BinaryVS[op](make([]T, 3), make([]T, 4), 1) })
		mustPanic(t, name, func() { tab.BinarySV[op](make([]T, 3), 1, make([]T, 4)) })
	}
}

func nonZero[T Number](x T) T {
	if x == 0 {
		return 3
	}
	return x
}

func TestCompareAndSelect(t *testing.T) {
	each(t, testCompare[float32], testCompare[float64], testCompare[int32], testCompare[int64], testCompare[uint32], testCompare[uint64])
}

func testCompare[T Number](t *testing.T, k kind[T], l cpu.Level) {
	tab, twin := k.make(l), k.make(cpu.Off)
	r := rand.New(rand.NewPCG(1, 2))
	bools := kind[uint8]{}
	_ = bools
	match := func(what string, want, got []bool) {
		t.Helper()
		if !slices.Equal(want, got) {
			t.Fatalf("%s of %d elements is wrong", what, len(want))
		}
	}
	for _, n := range lengths() {
		a, b := k.slice(r, n), k.slice(r, n)
		for i := range a {
			if r.IntN(3) == 0 {
				b[i] = a[i]
			}
		}
		s := k.draw(r)
		want := make([]bool, n)
		dst := pad(r, n, r.IntN(2) == 0, drawBool)
		for op := range NumCompare {
			twin.Compare[op](want, a, b)
			tab.Compare[op](dst.s, a, b)
			dst.intact(t, op.String(), sameBool)
			match(op.String(), want, dst.s)
			twin.CompareVS[op](want, a, s)
			tab.CompareVS[op](dst.s, a, s)
			dst.intact(t, op.String(), sameBool)
			match(op.String()+" scalar", want, dst.s)
		}
		if tab.IsNaN != nil {
			twin.IsNaN(want, a)
			tab.IsNaN(dst.s, a)
			match("isNaN", want, dst.s)
			twin.IsFinite(want, a)
			tab.IsFinite(dst.s, a)
			dst.intact(t, "isFinite", sameBool)
			match("isFinite", want, dst.s)
		}
		m := pad(r, n, true, drawBool).s
		u, w := k.draw(r), make([]T, n)
		out := pad(r, n, T(7), k.draw)
		for i, f := range []func(tab *Table[T], dst, a, b []T){
			func(tab *Table[T], dst, a, b []T) { tab.Select(dst, m, a, b) },
			func(tab *Table[T], dst, a, b []T) { tab.SelectVS(dst, m, a, s) },
			func(tab *Table[T], dst, a, b []T) { tab.SelectSV(dst, m, s, b) },
			func(tab *Table[T], dst, a, b []T) { tab.SelectSS(dst, m, s, u) },
		} {
			f(twin, w, a, b)
			f(tab, out.s, a, b)
			out.intact(t, "select", k.equal)
			k.matches(t, "select "+[]string{"VV", "VS", "SV", "SS"}[i], w, out.s)
			x := slices.Clone(a)
			f(tab, x, x, b)
			k.matches(t, "select in place", w, x)
		}
	}
}

func TestFused(t *testing.T) {
	each(t, testFused[float32], testFused[float64], nil, nil, nil, nil)
}

func testFused[T Float](t *testing.T, k kind[T], l cpu.Level) {
	tab, twin := k.make(l), k.make(cpu.Off)
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range lengths() {
		a, b, c := k.slice(r, n), k.slice(r, n), k.slice(r, n)
		s, u := k.draw(r), k.draw(r)
		want, dst := make([]T, n), pad(r, n, T(7), k.draw)
		for i, f := range []func(tab *Table[T], dst []T){
			func(tab *Table[T], dst []T) { tab.FMA(dst, a, b, c) },
			func(tab *Table[T], dst []T) { tab.AXPY(dst, a, s, b) },
			func(tab *Table[T], dst []T) { tab.AXPBY(dst, a, s, b, u) },
			func(tab *Table[T], dst []T) { tab.Affine(dst, a, s, u) },
			func(tab *Table[T], dst []T) { tab.Fill(dst, s) },
			func(tab *Table[T], dst []T) { tab.Iota(dst, s, u) },
		} {
			f(twin, want)
			f(tab, dst.s)
			what := []string{"fma", "axpy", "axpby", "affine", "fill", "iota"}[i]
			dst.intact(t, what, k.equal)
			k.matches(t, what, want, dst.s, a, b, c)
		}
	}
}
