package mnist

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/gfnem/gfnem/badinput"
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

// Options say what a user's data leave open. The zero value is that of Open.
type Options struct {
	// Seed is that of the split of a folder without one, and of Stochastic.
	Seed uint64
	// Stochastic makes a pixel 1 with the probability that its gray value says, from 0 for black to 1 for white, drawn once.
	// Otherwise it is 1 where it is brighter than half of white.
	Stochastic bool
}

// Open returns the set that a user names: "digits" or "binarized", which are built in, or a folder. That has
//
//   - idx files of training images (train-images-idx3-ubyte), test images (t10k-images-idx3-ubyte or
//     test-images-idx3-ubyte) and, if you like, validation images (valid-images-idx3-ubyte), each as it is or compressed
//     with gzip and named .gz, as MNIST and its likes have;
//   - or folders train, test and, if you like, valid with files of images as Read takes them, and folders of such;
//   - or files of images, and folders of such, of which a tenth are for testing and a tenth for validation, drawn by a
//     seed.
//
// All images must have one size.
func Open(name string) (*Set, error) { return Options{}.Open(name) }

// Open is the function of that name, with options.
func (o Options) Open(name string) (*Set, error) {
	if unpack, ok := builtIns[name]; ok {
		if o.Stochastic {
			return nil, badinput.Errorf("the images of %q are 0 and 1, without grays to draw from: %q has drawn ones, or name a folder "+
				"of files with grays", name, Binarized)
		}
		return unpack()
	}
	info, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, badinput.Errorf("there is no data set %q: %q and %q are built in, "+
			"any other name is that of a folder of images", name, Digits, Binarized)
	} else if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, badinput.Errorf("%s is a file: name the folder that it is in", name)
	}
	return o.openFolder(name)
}

// split is a part of a set, as a file holds it.
type split struct {
	path   string // "" if there is none
	images Images
	kind   kind
}

func (o Options) openFolder(dir string) (*Set, error) {
	if named, err := hasSplits(dir); err != nil {
		return nil, err
	} else if !named {
		return o.openPictures(dir)
	}
	train, err := o.readSplit(dir, trainNames, true)
	if err != nil {
		return nil, err
	}
	valid, err := o.readSplit(dir, validNames, false)
	if err != nil {
		return nil, err
	}
	test, err := o.readSplit(dir, testNames, true)
	if err != nil {
		return nil, err
	}
	if err := cmp.Or(train.matches(valid), train.matches(test), valid.matches(test)); err != nil {
		return nil, err
	}
	s := &Set{Size: train.images.Size, Train: train.images, Valid: valid.images, Test: test.images}
	s.Valid.Size = s.Size
	s.Name = nameOf(s.Hash(), dir, o.kindName(max(train.kind, valid.kind, test.kind)))
	return s, nil
}

// hasSplits reports whether a folder has an idx file with the name of a split.
func hasSplits(dir string) (bool, error) {
	for _, names := range [][]string{trainNames, validNames, testNames} {
		if path, err := findSplit(dir, names); path != "" || err != nil {
			return true, err
		}
	}
	return false, nil
}

func (o Options) readSplit(dir string, names []string, needed bool) (split, error) {
	path, err := findSplit(dir, names)
	if err != nil {
		return split{}, err
	}
	if path == "" {
		if needed {
			err = badinput.Errorf("%s holds no file %s, with .gz or without: a set is idx files of training and of test images",
				dir, names[0])
		}
		return split{}, err
	}
	images, k, err := o.ink(filepath.Base(path)).readFile(path)
	return split{path, images, k}, err
}

// matches returns an error if two splits cannot be of one set.
func (s split) matches(other split) error {
	switch {
	case s.path == "" || other.path == "":
		return nil
	case s.images.Size != other.images.Size:
		return badinput.Errorf("%s: images of %v, but those of %s are %v", other.path, other.images.Size, s.path,
			s.images.Size)
	case s.kind != other.kind && s.kind != blank && other.kind != blank:
		return badinput.Errorf("%s has pixels %v, but %s has pixels %v", other.path, other.kind, s.path, s.kind)
	}
	return nil
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
				return "", err
			}
		}
	}
	switch len(paths) {
	case 0:
		return "", nil
	case 1:
		return paths[0], nil
	}
	return "", badinput.Errorf("%s could be the same: keep one of them in the folder", strings.Join(paths, " and "))
}

func nameOf(hash, dir, kind string) string {
	switch hash {
	case digitsHash:
		return Digits
	case binarizedHash:
		return Binarized
	}
	if full, err := filepath.Abs(dir); err == nil {
		dir = full
	}
	return filepath.Base(dir) + " (" + kind + ")"
}

// kindName says how pixels became 0 and 1.
func (o Options) kindName(k kind) string {
	switch {
	case k == zeroOne:
		return "binary"
	case o.Stochastic:
		return "stochastic"
	}
	return "thresholded"
}
