package mnist

import (
	"cmp"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
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
	var parts [3]string // folders of splits, "" for none
	for i, names := range [][]string{trainFolders, validFolders, testFolders} {
		var err error
		if parts[i], err = subFolder(dir, names); err != nil {
			return nil, err
		}
	}
	switch train, valid, test := parts[0], parts[1], parts[2]; {
	case train != "" && test != "":
		for i, images := range []*Images{&s.Train, &s.Valid, &s.Test} {
			if parts[i] == "" {
				continue
			}
			var err error
			if *images, err = o.readTree(dir, parts[i], s); err != nil {
				return nil, err
			}
		}
	case train != "" || valid != "" || test != "":
		return nil, badinput.Errorf("%s has a folder %s: it needs both a folder %s and a folder %s, or no folder of a split: "+
			"images are split by a seed then", dir, cmp.Or(train, valid, test), trainFolders[0], testFolders[0])
	default:
		all, err := o.readTree(dir, "", s)
		if err != nil {
			return nil, err
		}
		if err := o.split(dir, all, s); err != nil {
			return nil, err
		}
	}
	s.Train.Size, s.Valid.Size, s.Test.Size = s.Size, s.Size, s.Size
	s.Name = nameOf(s.Hash(), dir, o.kindName(gray))
	return s, nil
}

// subFolder is the first of some folders that is there, as it is spelled there, or "". Letters may be large or small.
func subFolder(dir string, names []string) (string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	for _, name := range names {
		var found []string
		for _, e := range entries {
			if !strings.EqualFold(e.Name(), name) {
				continue
			}
			if info, err := os.Stat(filepath.Join(dir, e.Name())); err == nil && info.IsDir() {
				found = append(found, e.Name())
			}
		}
		if len(found) > 1 {
			return "", badinput.Errorf("%s has folders %s: leave one of them", dir, strings.Join(found, " and "))
		}
		if len(found) == 1 {
			return found[0], nil
		}
	}
	return "", nil
}

// readTree reads all files of images below a folder of a set, in the order of their paths, hidden ones left out. The set
// has the size of the first image. The folder may be a link; folders below it may not, which could go round in circles.
func (o Options) readTree(dir, below string, s *Set) (all Images, err error) {
	top := filepath.Join(dir, below)
	root, err := filepath.EvalSymlinks(top)
	if err != nil {
		return all, err
	}
	err = filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		switch hidden := strings.HasPrefix(d.Name(), ".") && file != root; {
		case err != nil:
			return err
		case hidden && d.IsDir():
			return filepath.SkipDir
		case hidden || d.IsDir():
			return nil
		}
		if d.Type()&fs.ModeSymlink != 0 {
			if info, err := os.Stat(file); err != nil || info.IsDir() {
				return badinput.Errorf("%s is a link to a folder or to nothing: links below a set are not followed; put the images there",
					file)
			}
		}
		if _, err := FormatOf(d.Name()); err != nil {
			return nil
		}
		name, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		// The name decides about stochastic pixels, wherever links lead and however the folder is spelled.
		images, _, err := o.ink(path.Join(strings.ToLower(below), filepath.ToSlash(name))).read(s.Size, file)
		if err != nil {
			return err
		}
		s.Size = images.Size
		all.Size, all.bits = images.Size, append(all.bits, images.bits...)
		if len(all.bits) > maxPacked {
			return badinput.Errorf("%s has more images than the %d MiB that are possible", top, maxPacked>>20)
		}
		return nil
	})
	if err == nil && all.Len() == 0 {
		err = badinput.Errorf("%s holds no images: a set is idx files named %s and %s, or files that end in .png, .pgm or .idx, "+
			"in folders train and test or all together", top, trainNames[0], testNames[0])
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
