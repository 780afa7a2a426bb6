package mnist

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// tree makes a folder of PNG files of 2x4 pixels, whose grays a file decides.
func tree(t *testing.T, gray func(i int) uint8, paths ...string) string {
	t.Helper()
	dir := t.TempDir()
	for i, path := range paths {
		p := image.NewGray(image.Rect(0, 0, 4, 2))
		for x := range 4 {
			p.SetGray(x, 0, color.Gray{gray(i)})
			p.SetGray(x, 1, color.Gray{uint8(i >> x & 1 * 255)})
		}
		var b bytes.Buffer
		if err := png.Encode(&b, p); err != nil {
			t.Fatal(err)
		}
		full := filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(full), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, b.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func black(int) uint8 { return 0 }

func numbered(n int) (paths []string) {
	for i := range n {
		paths = append(paths, fmt.Sprintf("%03d.png", i))
	}
	return paths
}

// A folder without a split is split by a seed: each image is in one part, and another seed splits otherwise.
func TestSplit(t *testing.T) {
	dir := tree(t, black, numbered(16)...)
	all, _, err := Read(Size{}, dir)
	if err != nil {
		t.Fatal(err)
	}
	var hashes []string
	for _, seed := range []uint64{0, 0, 1} {
		s, err := Options{Seed: seed}.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		if s.Size != (Size{2, 4}) || s.Train.Len() != 14 || s.Valid.Len() != 1 || s.Test.Len() != 1 {
			t.Fatalf("%v, %d + %d + %d images", s.Size, s.Train.Len(), s.Valid.Len(), s.Test.Len())
		}
		together := slices.Concat(s.Train.bits, s.Valid.bits, s.Test.bits)
		slices.Sort(together)
		if !slices.Equal(together, slices.Sorted(slices.Values(all.bits))) {
			t.Errorf("seed %d: the parts are not all images", seed)
		}
		hashes = append(hashes, s.Hash())
	}
	if hashes[0] != hashes[1] || hashes[0] == hashes[2] {
		t.Errorf("hashes %q", hashes)
	}
}

// Folders of splits are what they are called, whatever folders are in them; hidden files and others are left out.
func TestSplitFolders(t *testing.T) {
	dir := tree(t, black, "train/a/1.png", "train/b/c/2.png", "val/3.png", "test/4.png", "train/.5.png", ".x/6.png", "else/7.png")
	if err := os.WriteFile(filepath.Join(dir, "train", "notes.txt"), []byte("x"), 0o666); err != nil {
		t.Fatal(err)
	}
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprint(s.Train.bits, s.Valid.bits, s.Test.bits)
	if got != "[[0 16] [32] [48]]" && got != "[0 16] [32] [48]" {
		t.Errorf("pixels %s", got)
	}
	for want, paths := range map[string][]string{
		"needs both a folder train and a folder test": {"train/1.png"},
		"has a folder Val: it needs both":             {"Val/1.png", "2.png", "3.png", "4.png"},
		"learning, validation and testing need":       {"1.png", "2.png"},
		"holds no images":                             {".1.png"},
	} {
		dir := tree(t, black, paths...)
		_, err := Open(dir)
		checkInput(t, want, err, dir, want)
	}
}

// The folder of a set and those of its splits may be links, and be spelled in large letters: pixels, drawn ones too, are
// the same. Links below are refused, lest images are left out without a word.
func TestLinks(t *testing.T) {
	gray := func(int) uint8 { return 128 }
	plain := tree(t, gray, "train/a/1.png", "train/b/2.png", "test/3.png")
	link := func(dir, to, name string) {
		t.Helper()
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Skip(err)
		}
	}
	linked, parts := t.TempDir(), t.TempDir()
	link(linked, plain, "set")
	link(parts, filepath.Join(plain, "train"), "Train")
	link(parts, filepath.Join(plain, "test"), "TEST")
	o := Options{Stochastic: true}
	want, err := o.Open(plain)
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{filepath.Join(linked, "set"), parts} {
		got, err := o.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		if got.Hash() != want.Hash() || got.Train.Len() != 2 || got.Test.Len() != 1 {
			t.Errorf("%s: %d + %d images, hash %s, want %s", dir, got.Train.Len(), got.Test.Len(), got.Hash(), want.Hash())
		}
	}
	for _, to := range []string{plain, filepath.Join(plain, "nothing")} {
		dir := tree(t, gray, "train/a/1.png", "test/3.png")
		link(dir, to, "train/b")
		_, err := Open(dir)
		checkInput(t, to, err, filepath.Join("train", "b"), "links below a set are not followed")
	}
}

// Stochastic pixels are 1 as often as their gray value says, the same for a seed and a file, whatever else is there;
// 0 and 255 are never drawn. Bands are 4.9 standard errors: false alarms 1e-6.
func TestStochastic(t *testing.T) {
	const count = 600
	dir := tree(t, func(int) uint8 { return 64 }, numbered(count)...)
	open := func(o Options) *Set {
		s, err := o.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	ones := func(s *Set) (n int) {
		for _, m := range []Images{s.Train, s.Valid, s.Test} {
			for i, v := range m.Floats() {
				if i%8 < 4 {
					n += int(v)
				}
			}
		}
		return n
	}
	if n := ones(open(Options{})); n != 0 {
		t.Errorf("%d dark pixels are 1", n)
	}
	one, again, other := open(Options{Stochastic: true}), open(Options{Stochastic: true}), open(Options{Stochastic: true, Seed: 1})
	if one.Hash() != again.Hash() || one.Hash() == other.Hash() {
		t.Error("the seed does not decide")
	}
	const n, p = count * 4, 64.0 / 255
	band := 4.9 * 0.5 * 49 // 49 is the root of n, rounded up
	if got := float64(ones(one)); got < n*p-band || got > n*p+band {
		t.Errorf("%g of %d pixels are 1, want %g", got, n, n*p)
	}
	if got := float64(ones(one)); got > n*0.45-band {
		t.Error("pixels pass for brighter ones")
	}
	if k := (Options{Stochastic: true}).ink("x"); k.pixel(0, 255) != 0 || k.pixel(255, 255) != 1 {
		t.Error("black or white is drawn")
	}
	if _, err := (Options{Stochastic: true}).Open(Digits); err == nil {
		t.Error("digits have grays")
	}
}
