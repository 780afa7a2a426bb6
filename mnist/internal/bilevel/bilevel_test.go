package bilevel

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/gfnem/gfnem/internal/testkit"
)

// drawing returns images of random strokes, of noise, or of nothing.
func drawing(r *rand.Rand, height, width, n int) []byte {
	s := shape{height: height, width: width}
	out := make([]byte, n*s.stride())
	for i := range n {
		image := out[i*s.stride() : (i+1)*s.stride()]
		density := []float64{0, 0.01, 0.1, 0.5, 0.9, 1}[r.IntN(6)]
		for p := range height * width {
			if r.Float64() < density {
				image[p/8] |= 1 << (p % 8)
			}
		}
	}
	return out
}

func TestRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(testkit.Seed(t), 0))
	sizes := [][2]int{{1, 1}, {1, maxSide}, {maxSide, 1}, {maxSide, maxSide}, {28, 28}}
	for range 20 {
		sizes = append(sizes, [2]int{1 + r.IntN(maxSide), 1 + r.IntN(maxSide)})
	}
	for _, size := range sizes {
		for _, n := range []int{0, 1, 7, 50} {
			want := drawing(r, size[0], size[1], n)
			packed, err := Encode(size[0], size[1], want)
			if err != nil {
				t.Fatal(err)
			}
			height, width, got, err := Decode(packed)
			if err != nil || height != size[0] || width != size[1] || !bytes.Equal(got, want) {
				t.Fatalf("%d images of %v came back as %dx%d, equal: %v, error: %v", n, size, height, width, bytes.Equal(got, want), err)
			}
		}
	}
}

// TestChance checks the law that both parts of an interval hold a number, and that probabilities are near what is asked.
func TestChance(t *testing.T) {
	for code := range 256 {
		p := chance(byte(code))
		if p == 0 {
			t.Fatalf("code %d is impossible", code)
		}
		for _, e := range []interval{{0, 1}, {0x00ffffff, 0x01000000}, {0, ^uint32(0)}, {5, 1 << 31}} {
			if m := mid(e.lo, e.hi, p); m < e.lo || m >= e.hi {
				t.Fatalf("[%d,%d] is cut at %d by %d", e.lo, e.hi, m, p)
			}
		}
	}
	for _, n := range [][2]int{{1, 1}, {1000, 1}, {3, 1000}, {123, 456}, {9, 7}} {
		want := float64(n[1]) / float64(n[0]+n[1])
		got := float64(chance(nearest(n[0], n[1]))) / 65536
		rare := min(want, 1-want)
		if d := got - want; d > rare/14 || d < -rare/14 { // a unit of the last of four bits is at most 1/8, a half of it and the prior
			t.Errorf("%v: probability %g, want %g", n, got, want)
		}
	}
}

// TestRareSurprises encodes against the odds, which makes intervals small.
func TestRareSurprises(t *testing.T) {
	var chances [contexts]uint16
	r := rand.New(rand.NewPCG(testkit.Seed(t), 0))
	for i := range chances {
		chances[i] = chance(byte(r.IntN(256)))
	}
	e := &encoder{chance: &chances, hi: ^uint32(0)}
	bits := make([]uint, 100_000)
	for i := range bits {
		if bits[i] = uint(r.IntN(2)); r.IntN(2) == 0 && chances[i%contexts] < 1<<15 {
			bits[i] = 1
		}
		e.code(i%contexts, bits[i])
	}
	d := newDecoder(&chances, e.finish())
	for i, want := range bits {
		if got := d.code(i%contexts, 0); got != want {
			t.Fatalf("decision %d is %d, want %d", i, got, want)
		}
	}
}

type interval struct{ lo, hi uint32 }

// TestDamage decodes packed files that are not whole: whatever comes out, nothing breaks.
func TestDamage(t *testing.T) {
	r := rand.New(rand.NewPCG(testkit.Seed(t), 0))
	packed, err := Encode(9, 11, drawing(r, 9, 11, 30))
	if err != nil {
		t.Fatal(err)
	}
	for n := range len(packed) {
		if _, _, _, err := Decode(packed[:n]); err == nil {
			t.Fatalf("%d of %d bytes were accepted", n, len(packed))
		}
	}
	if _, _, _, err := Decode(append(bytes.Clone(packed), 0)); err == nil {
		t.Error("a byte too many was accepted")
	}
	for range 2000 {
		bad := bytes.Clone(packed)
		bad[r.IntN(len(bad))] ^= byte(1 + r.IntN(255))
		if bytes.Equal(bad[16:20], packed[16:20]) { // another number of images may take long
			Decode(bad)
		}
	}
}

func TestSizes(t *testing.T) {
	for _, size := range [][2]int{{0, 1}, {1, 0}, {-1, 1}, {1, maxSide + 1}, {maxSide + 1, 1}} {
		if _, err := Encode(size[0], size[1], nil); err == nil {
			t.Errorf("images of %v were accepted", size)
		}
	}
	if _, err := Encode(3, 3, make([]byte, 3)); err == nil {
		t.Error("an image and a half was accepted")
	}
}
