package mnist

import (
	"fmt"
	"math/bits"
	"os"
	"path/filepath"
	"testing"
)

// TestBuiltIn checks the built-in sets against what is known of the originals.
func TestBuiltIn(t *testing.T) {
	for _, want := range []struct {
		name, hash         string
		train, valid, test int
		means              string
	}{
		{Digits, digitsHash, 60_000, 0, 10_000, "0.13226 0.00000 0.13423"},
		{Binarized, binarizedHash, 50_000, 10_000, 10_000, "0.13056 0.13113 0.13251"},
	} {
		s := open(t, want.name)
		if s.Name != want.name || s.Hash() != want.hash || s.Size != (Size{28, 28}) {
			t.Errorf("%s is called %s and has %v images and hash %s", want.name, s.Name, s.Size, s.Hash())
		}
		if s.Train.Len() != want.train || s.Valid.Len() != want.valid || s.Test.Len() != want.test {
			t.Errorf("%s has %d + %d + %d images", want.name, s.Train.Len(), s.Valid.Len(), s.Test.Len())
		}
		means := fmt.Sprintf("%.5f %.5f %.5f", ink(s.Train), ink(s.Valid), ink(s.Test))
		if means != want.means {
			t.Errorf("%s: means are %s, want %s", want.name, means, want.means)
		}
	}
}

// ink returns the share of pixels that are 1.
func ink(m Images) float64 {
	ones := 0
	for _, b := range m.Packed() {
		ones += bits.OnesCount8(b)
	}
	return float64(ones) / float64(max(m.Len()*m.Pixels(), 1))
}

func open(t testing.TB, name string) *Set {
	t.Helper()
	s, err := Open(name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// dataFolder returns a folder of idx files below $GFNEM_DATA, or else where "go generate" looks for it. It skips the test
// where there is none.
func dataFolder(t testing.TB, name string) string {
	t.Helper()
	folder := os.Getenv("GFNEM_DATA")
	if folder == "" {
		folder = filepath.Join("..", "data")
	}
	path := filepath.Join(folder, name)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("%s is not here; set GFNEM_DATA to a folder that holds it", path)
	}
	return path
}

// BenchmarkUnpack decodes the built-in digits.
func BenchmarkUnpack(b *testing.B) {
	for b.Loop() {
		if _, err := unpackSet(Digits, packedDigits, 60_000, 0, 10_000); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkFill makes a batch of 128 images.
func BenchmarkFill(b *testing.B) {
	s := open(b, Digits)
	indices := make([]int, 128)
	for i := range indices {
		indices[i] = i * 7919 % s.Train.Len()
	}
	batch := make([]float32, len(indices)*s.Pixels())
	b.SetBytes(int64(4 * len(batch)))
	for b.Loop() {
		s.Train.Fill(batch, indices)
	}
}
