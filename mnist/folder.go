package mnist

import (
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	"github.com/gfnem/gfnem/badinput"
)

// Names of folders of splits.
var (
	trainFolders = []string{"train", "training"}
	validFolders = []string{"valid", "validation", "val", "dev"}
	testFolders  = []string{"test", "testing"}
)

// openPictures returns the set of a folder of files of images.
func (o Options) openPictures(dir string) (*Set, error) {
	s := &Set{}
	train, valid, test := subFolder(dir, trainFolders), subFolder(dir, validFolders), subFolder(dir, testFolders)
	if train == "" && test == "" {
		all, err := o.readTree(dir, "", s)
		if err != nil {
			return nil, err
		}
		if err := o.split(dir, all, s); err != nil {
			return nil, err
		}
	} else {
		for _, part := range []struct {
			name   string
			images *Images
		}{{train, &s.Train}, {valid, &s.Valid}, {test, &s.Test}} {
			if part.name == "" {
				continue
			}
			images, err := o.readTree(dir, part.name, s)
			if err != nil {
				return nil, err
			}
			*part.images = images
		}
		if s.Train.Len() == 0 || s.Test.Len() == 0 {
			return nil, badinput.Errorf("%s needs both a folder %s and a folder %s, or none of them: images are split by a seed then", dir,
				trainFolders[0], testFolders[0])
		}
	}
	s.Train.Size, s.Valid.Size, s.Test.Size = s.Size, s.Size, s.Size
	s.Name = nameOf(s.Hash(), dir, o.kindName(gray))
	return s, nil
}

// subFolder is the name of the first of some folders that is there, or "".
func subFolder(dir string, names []string) string {
	for _, name := range names {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.IsDir() {
			return name
		}
	}
	return ""
}

// readTree reads all files of images below a folder of a set, in the order of their paths, hidden ones left out. The set
// has the size of the first image.
func (o Options) readTree(dir, below string, s *Set) (all Images, err error) {
	root := filepath.Join(dir, below)
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch hidden := strings.HasPrefix(d.Name(), ".") && path != root; {
		case err != nil:
			return err
		case hidden && d.IsDir():
			return filepath.SkipDir
		case hidden || d.IsDir():
			return nil
		}
		if _, err := FormatOf(d.Name()); err != nil {
			return nil
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		images, _, err := o.ink(filepath.ToSlash(name)).read(s.Size, path)
		if err != nil {
			return err
		}
		s.Size = images.Size
		all.Size, all.bits = images.Size, append(all.bits, images.bits...)
		if len(all.bits) > maxPacked {
			return badinput.Errorf("%s has more images than the %d MiB that are possible", root, maxPacked>>20)
		}
		return nil
	})
	if err == nil && all.Len() == 0 {
		err = badinput.Errorf("%s holds no images: a set is idx files named %s and %s, or files that end in .png, .pgm or .idx, "+
			"in folders train and test or all together", root, trainNames[0], testNames[0])
	}
	return all, err
}

// split draws a tenth of all images for testing, and a tenth for validation, at least one for each.
func (o Options) split(dir string, all Images, s *Set) error {
	n := all.Len()
	if n < 3 {
		return badinput.Errorf("%s has %d images: learning, validation and testing need at least 3", dir, n)
	}
	tenth := max(1, n/10)
	order := rand.New(rand.NewPCG(o.Seed, 1)).Perm(n)
	take := func(numbers []int) (out Images) {
		out.Size = all.Size
		for _, i := range numbers {
			out.bits = append(out.bits, all.packed(i)...)
		}
		return out
	}
	s.Test, s.Valid, s.Train = take(order[:tenth]), take(order[tenth:2*tenth]), take(order[2*tenth:])
	return nil
}
