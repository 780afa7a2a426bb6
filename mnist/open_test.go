package mnist

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gfnem/gfnem/badinput"
)

// folder writes files to a new folder of the given name.
func folder(t testing.TB, name string, files map[string][]byte) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	for file, data := range files {
		if err := os.WriteFile(filepath.Join(dir, file), data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

var (
	grays  = idx(magicImages, 2, 2, 3, 0, 1, 127, 128, 254, 255, 9, 9, 9, 200, 200, 200)
	ones   = idx(magicImages, 2, 2, 3, 0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1)
	blanks = idx(magicImages, 1, 2, 3, make([]byte, 6)...)
	turned = idx(magicImages, 1, 3, 2, make([]byte, 6)...)
)

// TestOpenFolder checks names, splits and hashes of sets from folders, whatever the files are called.
func TestOpenFolder(t *testing.T) {
	for _, c := range []struct {
		name, want         string
		files              map[string][]byte
		train, valid, test int
	}{
		{"a", "a (thresholded)", map[string][]byte{"train-images-idx3-ubyte": grays, "t10k-images-idx3-ubyte": blanks}, 2, 0, 1},
		{"b", "b (thresholded)", map[string][]byte{"train-images.idx3-ubyte.gz": gz(blanks), "test-images-idx3-ubyte": grays}, 1, 0, 2},
		{"c", "c (binary)", map[string][]byte{
			"train-images-idx3-ubyte.gz": gz(ones), "t10k-images.idx3-ubyte": blanks, "valid-images-idx3-ubyte.gz": gz(ones)}, 2, 2, 1},
		{"d", "d (binary)", map[string][]byte{"train-images-idx3-ubyte": ones, "train-images-idx3-ubyte.gz": nil, "test-images-idx3-ubyte": ones}, 2, 0, 2},
		{"digits", "digits (thresholded)", map[string][]byte{"train-images-idx3-ubyte": grays, "t10k-images-idx3-ubyte": grays}, 2, 0, 2},
	} {
		s, err := Open(folder(t, c.name, c.files))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if s.Name != c.want || s.Size != (Size{2, 3}) || s.Train.Len() != c.train || s.Valid.Len() != c.valid || s.Test.Len() != c.test {
			t.Errorf("%s: %s, %v, %d + %d + %d images", c.name, s.Name, s.Size, s.Train.Len(), s.Valid.Len(), s.Test.Len())
		}
		if s.Train.Size != s.Size || s.Valid.Size != s.Size || s.Test.Size != s.Size {
			t.Errorf("%s: sizes %v, %v, %v", c.name, s.Train.Size, s.Valid.Size, s.Test.Size)
		}
	}
}

// TestBadFolder checks that each error is one line about the user's input that names the file.
func TestBadFolder(t *testing.T) {
	train, test, valid := "train-images-idx3-ubyte", "t10k-images-idx3-ubyte", "valid-images-idx3-ubyte.gz"
	for _, c := range []struct {
		name, file, want string
		files            map[string][]byte
	}{
		{"nothing", "folder", "holds no images: a set is idx files named train-images-idx3-ubyte", nil},
		{"no test", "folder", "holds no file t10k-images-idx3-ubyte", map[string][]byte{train: grays}},
		{"labels", train, "holds labels", map[string][]byte{train: []byte("\x00\x00\x08\x01\x00\x00\x00\x01\x07"), test: grays}},
		{"size", test, "images of 3x2, but those of", map[string][]byte{train: grays, test: turned}},
		{"size of valid", valid, "images of 3x2, but those of", map[string][]byte{train: grays, test: grays, valid: gz(turned)}},
		{"kind", test, "has pixels of gray values, but", map[string][]byte{train: ones, test: grays}},
		{"kind of valid", test, "has pixels of 0 and 1, but", map[string][]byte{train: blanks, test: ones, valid: gz(grays)}},
		{"truncated", valid, "cut short in image 2 of the 2", map[string][]byte{train: grays, test: grays, valid: gz(grays[:len(grays)-1])}},
		{"two tests", test, "keep one of them", map[string][]byte{train: grays, test: grays, "test-images-idx3-ubyte": grays}},
	} {
		_, err := Open(folder(t, "folder", c.files))
		checkInput(t, c.name, err, c.file, c.want)
	}
	_, err := Open("digit")
	checkInput(t, "mistyped", err, `"digit"`, `"digits" and "binarized" are built in`)
	_, err = Open("open.go")
	checkInput(t, "a file", err, "open.go", "is a file")
}

func checkInput(t *testing.T, name string, err error, file, want string) {
	t.Helper()
	var input *badinput.Error
	if !errors.As(err, &input) {
		t.Errorf("%s: not an error about the input: %v", name, err)
	} else if text := err.Error(); !strings.Contains(text, file) || !strings.Contains(text, want) || strings.Contains(text, "\n") {
		t.Errorf("%s: error %q should name %s and say %q", name, text, file, want)
	}
}

func TestMissing(t *testing.T) {
	dir := folder(t, "folder", map[string][]byte{"train-images-idx3-ubyte": grays})
	if err := os.Mkdir(filepath.Join(dir, "t10k-images-idx3-ubyte"), 0o777); err != nil {
		t.Fatal(err)
	}
	var path *fs.PathError
	if _, err := Open(dir); !errors.As(err, &path) {
		t.Errorf("a folder in the place of a file: %v", err)
	}
	if _, _, err := Read(Size{}, filepath.Join(dir, "none.png")); !errors.As(err, &path) {
		t.Errorf("a missing file: %v", err)
	}
}

// TestOriginals compares the built-in sets with the idx files that they were made from, pixel by pixel, without the
// reader of the package.
func TestOriginals(t *testing.T) {
	for _, c := range []struct {
		name, folder                string
		least                       byte
		trainFile, validFile, tests string
	}{
		{Digits, "mnist", 128, "train", "", "t10k"},
		{Binarized, "mnist_binarized", 1, "train", "valid", "test"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := dataFolder(t, c.folder)
			s := open(t, c.name)
			for _, part := range []struct {
				file   string
				images Images
			}{{c.trainFile, s.Train}, {c.validFile, s.Valid}, {c.tests, s.Test}} {
				if part.file == "" {
					continue
				}
				pixels := original(t, filepath.Join(dir, part.file+"-images-idx3-ubyte.gz"))
				if len(pixels) != part.images.Len()*784 {
					t.Fatalf("%s: %d pixels, %d images", part.file, len(pixels), part.images.Len())
				}
				for i, v := range part.images.Floats() {
					if (v == 1) != (pixels[i] >= c.least) {
						t.Fatalf("%s: pixel %d of image %d is %g, the original %d", part.file, i%784, i/784, v, pixels[i])
					}
				}
			}
			fromFolder := open(t, dir)
			if fromFolder.Name != c.name || fromFolder.Hash() != s.Hash() {
				t.Errorf("the folder opens as %s with hash %s", fromFolder.Name, fromFolder.Hash())
			}
		})
	}
}

func original(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return all[16:]
}
