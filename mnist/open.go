package mnist

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/gfnem/gfnem/run"
)

// Hashes by which sets are known.
const (
	digitsHash    = "8e7705e32387bad3d61e10c9b18ceaf55cd944052065128bdf1001a5fe1dd1e1"
	binarizedHash = "90ee7e571c2d4ea319c674c117a2c2ddef5380df35dcfe5cd0fb756d763611ee"
)

// Names that the files of a split may have, before ".gz".
var (
	trainNames = []string{"train-images-idx3-ubyte", "train-images.idx3-ubyte"}
	validNames = []string{"valid-images-idx3-ubyte", "valid-images.idx3-ubyte"}
	testNames  = []string{"t10k-images-idx3-ubyte", "t10k-images.idx3-ubyte", "test-images-idx3-ubyte", "test-images.idx3-ubyte"}
)

// Open returns the set that a user names: "digits" or "binarized", which are built in, or a folder with idx files of training images
// (train-images-idx3-ubyte), test images (t10k-images-idx3-ubyte or test-images-idx3-ubyte) and, if you like,
// validation images (valid-images-idx3-ubyte), each compressed with gzip and so named (.gz) or not.
func Open(name string) (*Set, error) {
	if unpack, ok := builtIns[name]; ok {
		return unpack()
	}
	info, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, run.Inputf("there is no data set %q: %q and %q are built in, any other name is that of a folder of idx files", name, Digits, Binarized)
	} else if err != nil {
		return nil, run.Inputf("%w", err)
	}
	if !info.IsDir() {
		return nil, run.Inputf("%s is a file: name the folder that holds %s and %s", name, trainNames[0], testNames[0])
	}
	return openFolder(name)
}

func openFolder(dir string) (*Set, error) {
	s := &Set{}
	found, foundIn := blank, ""
	for _, part := range []struct {
		names  []string
		images *Images
		must   bool
	}{{trainNames, &s.Train, true}, {validNames, &s.Valid, false}, {testNames, &s.Test, true}} {
		path, err := findSplit(dir, part.names)
		if err != nil {
			return nil, err
		}
		if path == "" && part.must {
			return nil, run.Inputf("%s holds no file %s, nor that with .gz: it needs idx files of training and of test images",
				dir, part.names[0])
		} else if path == "" {
			continue
		}
		images, k, err := readFile(path)
		if err != nil {
			return nil, err
		}
		if s.Size == (Size{}) {
			s.Size = images.Size
		} else if s.Size != images.Size {
			return nil, run.Inputf("%s: images are %v, those of %s are %v", path, images.Size, foundIn, s.Size)
		}
		if k != blank && found != blank && k != found {
			return nil, run.Inputf("%s has pixels %s, %s has pixels %s: use files of one kind", foundIn, found, path, k)
		}
		if foundIn == "" || k != blank {
			foundIn = path
		}
		found = max(found, k)
		*part.images = images
	}
	s.Name = nameOf(s.Hash(), dir, found)
	return s, nil
}

// findSplit returns the path of the file of a split, or "" if there is none. Of a file that is there both compressed
// and not, it is the latter.
func findSplit(dir string, names []string) (string, error) {
	var paths []string
	for _, name := range names {
		for _, ending := range []string{"", ".gz"} {
			path := filepath.Join(dir, name+ending)
			if _, err := os.Stat(path); err == nil {
				paths = append(paths, path)
				break
			} else if !errors.Is(err, fs.ErrNotExist) {
				return "", run.Inputf("%w", err)
			}
		}
	}
	switch len(paths) {
	case 0:
		return "", nil
	case 1:
		return paths[0], nil
	}
	return "", run.Inputf("%s could be the same: keep one of them in the folder", strings.Join(paths, " and "))
}

func nameOf(hash, dir string, k kind) string {
	switch hash {
	case digitsHash:
		return Digits
	case binarizedHash:
		return Binarized
	}
	if full, err := filepath.Abs(dir); err == nil {
		dir = full
	}
	if k == zeroOne {
		return filepath.Base(dir) + " (binary)"
	}
	return filepath.Base(dir) + " (thresholded)"
}
