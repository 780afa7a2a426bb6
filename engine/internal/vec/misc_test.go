package vec

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gfnem/gfnem/engine/internal/cpu"
)

func TestTranspose(t *testing.T) {
	each(t, testTranspose[float32], testTranspose[float64], testTranspose[int32], testTranspose[int64], testTranspose[uint32], testTranspose[uint64])
}

func testTranspose[T Number](t *testing.T, k kind[T], l cpu.Level) {
	tab := k.make(l)
	r := rand.New(rand.NewPCG(5, 6))
	for _, s := range [][2]int{{0, 5}, {1, 1}, {1, 40}, {40, 1}, {3, 7}, {8, 8}, {16, 16}, {16, 32}, {17, 16}, {16, 17}, {33, 50}, {64, 64}, {100, 20}} {
		rows, cols := s[0], s[1]
		a := pad(r, rows*cols, T(7), k.draw)
		dst := pad(r, rows*cols, T(7), k.draw)
		tab.Transpose(dst.s, a.s, rows, cols)
		dst.intact(t, "transpose", k.equal)
		for i := range rows {
			for j := range cols {
				if !k.equal(a.s[i*cols+j], dst.s[j*rows+i]) {
					t.Fatalf("transpose of %v is wrong at %d, %d", s, i, j)
				}
			}
		}
	}
	mustPanic(t, "transpose", func() { tab.Transpose(make([]T, 6), make([]T, 6), 2, 4) })
}

func TestBool(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, tab := range []*Bool{bools(), B} {
		for _, n := range lengths() {
			a, b, m := pad(r, n, true, drawBool).s, pad(r, n, true, drawBool).s, pad(r, n, true, drawBool).s
			dst := pad(r, n, n%2 == 0, drawBool)
			for name, f := range map[string]func(i int) bool{
				"and":    func(i int) bool { return a[i] && b[i] },
				"or":     func(i int) bool { return a[i] || b[i] },
				"xor":    func(i int) bool { return a[i] != b[i] },
				"not":    func(i int) bool { return !a[i] },
				"select": func(i int) bool { return m[i] && a[i] || !m[i] && b[i] },
			} {
				switch name {
				case "and":
					tab.And(dst.s, a, b)
				case "or":
					tab.Or(dst.s, a, b)
				case "xor":
					tab.Xor(dst.s, a, b)
				case "not":
					tab.Not(dst.s, a)
				case "select":
					tab.Select(dst.s, m, a, b)
				}
				dst.intact(t, name, sameBool)
				for i := range n {
					if dst.s[i] != f(i) {
						t.Fatalf("%s is wrong at %d of %d", name, i, n)
					}
				}
			}
		}
	}
}

func testConvert[D, S Number](t *testing.T, kd kind[D], ks kind[S]) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, n := range lengths() {
		a := ks.slice(r, n)
		want := make([]D, n)
		for i, x := range a {
			want[i] = D(x)
		}
		for i, f := range []func(dst []D, a []S){Convert[D, S], Conversion[D, S]()} {
			dst := pad(r, n, D(7), kd.draw)
			f(dst.s, a)
			dst.intact(t, "convert", kd.equal)
			for j := range want {
				if !kd.equal(want[j], dst.s[j]) {
					t.Fatalf("%s to %s (%d): %v gives %v, want %v", ks.name, kd.name, i, a[j], dst.s[j], want[j])
				}
			}
		}
	}
}

func testConvertAll[S Number](t *testing.T, ks kind[S]) {
	testConvert(t, kindF32, ks)
	testConvert(t, kindF64, ks)
	testConvert(t, kindI32, ks)
	testConvert(t, kindI64, ks)
	testConvert(t, kindU32, ks)
	testConvert(t, kindU64, ks)
	r := rand.New(rand.NewPCG(5, 6))
	for _, n := range lengths() {
		m := pad(r, n, true, drawBool).s
		dst := pad(r, n, S(7), ks.draw)
		FromBool(dst.s, m)
		dst.intact(t, "from bool", ks.equal)
		for i, x := range m {
			if want := S(map[bool]int{true: 1}[x]); dst.s[i] != want {
				t.Fatalf("%v becomes %s %v", x, ks.name, dst.s[i])
			}
		}
		back := make([]bool, n)
		ToBool(ks.make(cpu.Use), back, dst.s)
		if !slices.Equal(m, back) {
			t.Fatalf("bool to %s and back changes values", ks.name)
		}
	}
}

func TestConvert(t *testing.T) {
	testConvertAll(t, kindF32)
	testConvertAll(t, kindF64)
	testConvertAll(t, kindI32)
	testConvertAll(t, kindI64)
	testConvertAll(t, kindU32)
	testConvertAll(t, kindU64)
}

func TestGather(t *testing.T) {
	for _, n := range []int{1, 2, 3, 16} {
		a := make([]float32, 5*n)
		for i := range a {
			a[i] = float32(i)
		}
		dst := make([]float32, 4*n)
		Gather(dst, a, []int32{3, -1, 7, 0}, n)
		for i, at := range []int{3, 0, 4, 0} {
			if !slices.Equal(dst[i*n:(i+1)*n], a[at*n:(at+1)*n]) {
				t.Fatalf("row %d of width %d is %v", i, n, dst[i*n:(i+1)*n])
			}
		}
	}
}

func TestTileSpread(t *testing.T) {
	for _, n := range []int{1, 2, 3, 5, 16, 17, 40} {
		a := normals[float32](n)
		dst := make([]float32, 7*n)
		Tile(dst, a)
		for i, x := range dst {
			if x != a[i%n] {
				t.Fatalf("tile of %d is wrong at %d", n, i)
			}
		}
		Spread(F32, dst, a[:1], 7*n)
		Spread(F32, dst[:6*n], a, 6)
		for i, x := range dst {
			if want := a[min(i/6, n-1)]; i < 6*n && x != want || i >= 6*n && x != a[0] {
				t.Fatalf("spread of %d is wrong at %d", n, i)
			}
		}
	}
	mustPanic(t, "tile", func() { Tile(make([]int32, 7), make([]int32, 2)) })
	mustPanic(t, "spread", func() { Spread(I32, make([]int32, 7), make([]int32, 2), 3) })
}

// TestPhilox has the known answers of Random123, and compares the levels, with counters that carry.
func TestPhilox(t *testing.T) {
	for _, c := range []struct {
		s    State
		want [4]uint32
	}{
		{State{0, 0, 0}, [4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{State{math.MaxUint64, math.MaxUint64, math.MaxUint64}, [4]uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
		{State{0x299f31d0a4093822, 0x85a308d3243f6a88, 0x0370734413198a2e}, [4]uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
	} {
		var got [4]uint32
		RandomPhilox(got[:], c.s)
		if got != c.want {
			t.Errorf("%x gives %x, want %x", c.s, got, c.want)
		}
	}
	r := rand.New(rand.NewPCG(5, 6))
	for _, n := range append(lengths(), 5000) {
		for _, s := range []State{{1, 2, 3}, {r.Uint64(), r.Uint64(), r.Uint64()}, {5, math.MaxUint64 - 2, 9}, {5, math.MaxUint64 - 19, math.MaxUint64}} {
			want := make([]uint32, n)
			next := randomPhilox(cpu.Off, want, s)
			for _, l := range levels() {
				dst := pad(r, n, 7, (*rand.Rand).Uint32)
				if got := randomPhilox(l, dst.s, s); got != next || !slices.Equal(want, dst.s) {
					t.Fatalf("%d words of %x at %s are wrong; next state %x, want %x", n, s, l, got, next)
				}
				dst.intact(t, "philox", func(a, b uint32) bool { return a == b })
			}
		}
	}
}

// TestPhiloxParts fills a stream in parts, and narrow types from it.
func TestPhiloxParts(t *testing.T) {
	s := State{11, math.MaxUint64 - 40, 13}
	want := make([]uint32, 1001)
	next := RandomPhilox(want, s)
	got := make([]uint32, len(want))
	RandomPhilox(got[400:], SkipPhilox(s, 100))
	RandomPhilox(got[:400], s)
	if !slices.Equal(want, got) {
		t.Error("a stream in two parts is another one")
	}
	bytes, shorts := make([]uint8, len(want)), make([]uint16, len(want))
	if a, b := RandomNarrow(bytes, s), RandomNarrow(shorts, s); a != next || b != next {
		t.Errorf("the state after narrow words is %x and %x, want %x", a, b, next)
	}
	for i, w := range want {
		if bytes[i] != uint8(w) || shorts[i] != uint16(w) {
			t.Fatalf("word %d is %x, as a byte %x, as two bytes %x", i, w, bytes[i], shorts[i])
		}
	}
}
