package mnist

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
)

const (
	magicImages = 0x0803  // unsigned bytes, three dimensions: image, row, column
	magicLabels = 0x0801  // unsigned bytes, one dimension
	maxSide     = 2048    // of an image
	maxPacked   = 1 << 28 // bytes of one file's images in memory
	firstChunk  = 1 << 20 // bytes to allocate before any image of a file was seen
)

var gzipSignature = []byte{0x1f, 0x8b}

// kind is what the bytes of a file of images are.
type kind int

const (
	blank   kind = iota // all 0, which is both others
	zeroOne             // 0 and 1, to be taken as they are
	gray                // 0 to 255, to be thresholded
)

// readFile reads a file of images in idx format, compressed with gzip or not.
func (k inking) readFile(path string) (Images, kind, error) {
	f, err := os.Open(path)
	if err != nil {
		return Images{}, blank, err
	}
	defer f.Close()
	m, found, err := k.readIDX(f)
	return m, found, asInput(path, err)
}

// readIDX reads images in idx format, compressed with gzip or not. Memory follows what is really there, whatever the
// header promises.
func (k inking) readIDX(r io.Reader) (Images, kind, error) {
	in, err := decompress(r)
	if err != nil {
		return Images{}, blank, err
	}
	count, size, err := readHeader(in)
	if err != nil {
		return Images{}, blank, err
	}
	m := Images{Size: size, bits: make([]byte, 0, min(count*size.stride(), firstChunk))}
	found := blank
	pixels := make([]byte, size.Pixels())
	for i := range count {
		if _, err := io.ReadFull(in, pixels); isEnd(err) {
			return Images{}, blank, fmt.Errorf("cut short in image %d of the %d that its header promises", i+1, count)
		} else if err != nil {
			return Images{}, blank, fmt.Errorf("image %d of %d: %w", i+1, count, err)
		}
		own := kindOf(pixels)
		if own == gray && found == zeroOne {
			clear(m.bits) // what looked like ones were the darkest of grays
		}
		if found = max(found, own); found == gray {
			for j, v := range pixels {
				pixels[j] = k.pixel(uint32(v), 255)
			}
		}
		m.bits = appendPacked(m.bits, pixels)
	}
	if err := expectEnd(in, count); err != nil {
		return Images{}, blank, err
	}
	return m, found, nil
}

// decompress removes the layer of gzip, if there is one.
func decompress(r io.Reader) (*bufio.Reader, error) {
	in := bufio.NewReaderSize(r, 1<<16)
	start, err := in.Peek(2)
	if len(start) == 0 && errors.Is(err, io.EOF) {
		return nil, errors.New("the file is empty")
	} else if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if !bytes.Equal(start, gzipSignature) {
		return in, nil
	}
	unzipped, err := gzip.NewReader(in)
	if isEnd(err) {
		return nil, errors.New("cut short in its gzip header")
	} else if err != nil {
		return nil, err
	}
	return bufio.NewReaderSize(unzipped, 1<<16), nil
}

// readHeader returns the number and the size of the images.
func readHeader(in io.Reader) (count int, size Size, err error) {
	var head [16]byte
	n, err := io.ReadFull(in, head[:])
	if err != nil && !isEnd(err) {
		return 0, Size{}, err
	}
	if n >= 4 {
		if err := checkMagic(binary.BigEndian.Uint32(head[:])); err != nil {
			return 0, Size{}, err
		}
	}
	if n < len(head) {
		return 0, Size{}, fmt.Errorf("too short for an idx file of images: %d bytes", n)
	}
	images := uint64(binary.BigEndian.Uint32(head[4:]))
	size, err = checkSides(uint64(binary.BigEndian.Uint32(head[8:])), uint64(binary.BigEndian.Uint32(head[12:])))
	switch {
	case err != nil:
		return 0, Size{}, err
	case images == 0:
		return 0, Size{}, errors.New("its header says that it holds no images")
	case images*uint64(size.stride()) > maxPacked:
		return 0, Size{}, fmt.Errorf("its header promises %d images of %v, more than the %d MiB that are possible", images, size, maxPacked>>20)
	}
	return int(images), size, nil
}

func checkMagic(magic uint32) error {
	switch {
	case magic == magicImages:
		return nil
	case magic == magicLabels:
		return errors.New("holds labels, not images: name the file that has \"images\" in its name")
	case magic>>16 == 0 && magic>>8 >= 0x08 && magic>>8 <= 0x0e && magic&0xff > 0:
		return fmt.Errorf("an idx file, but not of images: its first bytes are %#08x, those of images of bytes %#08x", magic, magicImages)
	}
	return fmt.Errorf("not an idx file of images: its first bytes are %#08x, not %#08x", magic, magicImages)
}

// expectEnd checks that nothing follows the last image. It also has gzip check its sum.
func expectEnd(in io.Reader, count int) error {
	n, err := io.ReadFull(in, make([]byte, 1))
	switch {
	case n > 0:
		return fmt.Errorf("something follows the %d images that its header promises", count)
	case errors.Is(err, io.EOF):
		return nil
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("cut short after its last image")
	}
	return err
}

func isEnd(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }

func kindOf(pixels []byte) kind { return kind(min(slices.Max(pixels), byte(gray))) }

func (k kind) String() string {
	return [...]string{"that are all 0", "of 0 and 1", "of gray values"}[k]
}
