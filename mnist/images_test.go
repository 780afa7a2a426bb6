package mnist

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gfnem/gfnem/internal/testkit"
)

// random returns the pixels of random images of a random size, each 0 or 1.
func random(r *rand.Rand) (size Size, n int, pixels []byte) {
	size, n = Size{1 + r.IntN(40), 1 + r.IntN(40)}, 1+r.IntN(9)
	pixels = make([]byte, n*size.Pixels())
	for i := range pixels {
		pixels[i] = byte(r.IntN(2))
	}
	return size, n, pixels
}

// grayOf returns images with pixels 0 and 255.
func grayOf(m Images) Gray { return NewGray(m.Size, m.Floats()) }

// TestImages compares every way to get at pixels with the pixels that were put in.
func TestImages(t *testing.T) {
	r := rand.New(rand.NewPCG(testkit.Seed(t), 0))
	for range 100 {
		size, n, pixels := random(r)
		m := NewImages(size, pixels)
		if m.Len() != n {
			t.Fatalf("%d images of %v are %d", n, size, m.Len())
		}
		indices := make([]int, r.IntN(2*n))
		for i := range indices {
			indices[i] = r.IntN(n)
		}
		batch := make([]float32, len(indices)*size.Pixels())
		m.Fill(batch, indices)
		var want []float32
		for _, i := range indices {
			for _, v := range pixels[i*size.Pixels():][:size.Pixels()] {
				want = append(want, float32(v))
			}
		}
		if !slices.Equal(batch, want) {
			t.Fatalf("a batch of %v images differs from their pixels", size)
		}
		from := r.IntN(n)
		to := from + r.IntN(n-from+1)
		if !slices.Equal(m.Slice(from, to).Floats(), m.Floats()[from*size.Pixels():to*size.Pixels()]) {
			t.Fatalf("images %d to %d of %v differ from their pixels", from, to, size)
		}
	}
}

func TestNoImages(t *testing.T) {
	var none Images
	if none.Len() != 0 || len(none.Floats()) != 0 || none.Slice(0, 0).Len() != 0 || grayOf(none).Len() != 0 {
		t.Error("the zero value is not a sequence of none")
	}
}

// TestMisuse checks that mistakes of a program are seen at once.
func TestMisuse(t *testing.T) {
	m := NewImages(Size{2, 3}, make([]byte, 12))
	for name, wrong := range map[string]func(){
		"half an image":  func() { NewImages(Size{2, 3}, make([]byte, 9)) },
		"no size":        func() { NewImages(Size{}, nil) },
		"short batch":    func() { m.Fill(make([]float32, 11), []int{0, 1}) },
		"beyond the end": func() { m.Fill(make([]float32, 6), []int{2}) },
		"slice":          func() { m.Slice(1, 3) },
		"gray":           func() { NewGray(Size{2, 3}, make([]float32, 5)) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: nothing said", name)
				}
			}()
			wrong()
		}()
	}
}

// TestHash checks that a hash tells sets apart that differ in a pixel, in their size or in how they are divided.
func TestHash(t *testing.T) {
	pixels := make([]byte, 4*6)
	make2 := func(size Size, train int) string {
		m := NewImages(size, pixels)
		return (&Set{Size: size, Train: m.Slice(0, train), Test: m.Slice(train, m.Len())}).Hash()
	}
	seen := map[string]bool{make2(Size{2, 3}, 1): true}
	add := func(what, hash string) {
		if seen[hash] {
			t.Errorf("another %s, same hash", what)
		}
		seen[hash] = true
	}
	add("size", make2(Size{3, 2}, 1))
	add("division", make2(Size{2, 3}, 2))
	pixels[23] = 1
	add("pixel", make2(Size{2, 3}, 1))
}
