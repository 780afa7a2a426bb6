package mnist

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gfnem/gfnem/badinput"
)

// Read reads images from files and folders, in this order: idx files, compressed with gzip or not, PNG and PGM files;
// of a folder, all of these that lie in it, in the order of their names. A picture is one image, a pixel being 1 where it
// is brighter than half of white.
//
// All images must be of the given size; the zero Size means that of the first. The names say where each image comes
// from: the file and, if it can hold several, a number counted from 0, as in "test.idx#17".
func Read(size Size, paths ...string) (images Images, names []string, err error) {
	return inking{}.read(size, paths...)
}

func (k inking) read(size Size, paths ...string) (images Images, names []string, err error) {
	files, err := listFiles(paths)
	if err != nil {
		return Images{}, nil, err
	}
	images.Size = size
	for _, path := range files {
		m, many, err := k.readAny(path)
		if err != nil {
			return Images{}, nil, err
		}
		if images.Size == (Size{}) {
			images.Size = m.Size
		} else if m.Size != images.Size {
			return Images{}, nil, badinput.Errorf("%s: images of %v, where %v is needed", path, m.Size, images.Size)
		}
		images.bits = append(images.bits, m.bits...)
		for i := range m.Len() {
			if many {
				names = append(names, fmt.Sprintf("%s#%d", path, i))
			} else {
				names = append(names, path)
			}
		}
	}
	return images, names, nil
}

// listFiles replaces folders by the files of images in them.
func listFiles(paths []string) ([]string, error) {
	var files []string
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			files = append(files, path)
			continue
		}
		entries, err := os.ReadDir(path)
		if err != nil {
			return nil, err
		}
		before := len(files)
		for _, e := range entries {
			if _, err := FormatOf(e.Name()); err == nil && !e.IsDir() {
				files = append(files, filepath.Join(path, e.Name()))
			}
		}
		if len(files) == before {
			return nil, badinput.Errorf("no file in %s ends in .png, .pgm, .idx or idx3-ubyte (the last two also with .gz)",
				path)
		}
	}
	if len(files) == 0 {
		return nil, badinput.Errorf("no images: name idx, PNG or PGM files, or folders of them")
	}
	return files, nil
}

// readAny reads a file of images, and says whether it is of a format for several.
func (k inking) readAny(path string) (images Images, many bool, err error) {
	f, err := os.Open(path)
	if err != nil {
		return Images{}, false, err
	}
	defer f.Close()
	in := bufio.NewReader(f)
	read, many := k.sniff(in)
	if read == nil {
		return Images{}, false, badinput.Errorf("%s: neither an idx file of images nor PNG nor PGM", path)
	}
	images, err = read(in)
	return images, many, asInput(path, err)
}

// asInput says in which file an error lies.
func asInput(path string, err error) error {
	var system *os.PathError
	if err == nil || errors.As(err, &system) {
		return err
	}
	return badinput.Errorf("%s: %w", path, err)
}

// sniff returns the reader for what a file begins with, or nil.
func (k inking) sniff(in *bufio.Reader) (read func(*bufio.Reader) (Images, error), many bool) {
	start, _ := in.Peek(8)
	switch {
	case bytes.HasPrefix(start, []byte(pngSignature)):
		return k.readPNG, false
	case bytes.HasPrefix(start, []byte("P5")), bytes.HasPrefix(start, []byte("P2")):
		return k.readPGM, false
	case len(start) == 0, bytes.HasPrefix(start, []byte{0, 0}), bytes.HasPrefix(start, gzipSignature):
		return func(in *bufio.Reader) (Images, error) {
			m, _, err := k.readIDX(in)
			return m, err
		}, true
	}
	return nil, false
}
