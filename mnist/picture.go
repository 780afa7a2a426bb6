package mnist

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
)

const pngSignature = "\x89PNG\r\n\x1a\n"

// readPNG reads a PNG file as one image. What is transparent counts as black.
func (k inking) readPNG(in *bufio.Reader) (Images, error) {
	head, err := in.Peek(24) // the signature and the start of the first block: length, "IHDR", width, height
	if err != nil {
		return Images{}, errors.New("cut short in its PNG header")
	}
	size, err := checkSides(uint64(binary.BigEndian.Uint32(head[20:])), uint64(binary.BigEndian.Uint32(head[16:])))
	if err != nil {
		return Images{}, err
	}
	picture, err := png.Decode(in)
	if isEnd(err) {
		return Images{}, errors.New("cut short")
	} else if err != nil {
		return Images{}, err
	}
	return NewImages(size, k.pixels(picture)), nil
}

// pixels returns 1 for each pixel that has ink.
func (k inking) pixels(picture image.Image) []byte {
	b := picture.Bounds()
	var out []byte
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			out = append(out, k.pixel(uint32(color.Gray16Model.Convert(picture.At(x, y)).(color.Gray16).Y), 65535))
		}
	}
	return out
}

// checkSides returns the size if it is possible.
func checkSides(height, width uint64) (Size, error) {
	if height == 0 || width == 0 || height > maxSide || width > maxSide {
		return Size{}, fmt.Errorf("its header says that images are %dx%d; sides from 1 to %d are possible", height, width, maxSide)
	}
	return Size{int(height), int(width)}, nil
}

// readPGM reads a PGM file, binary (P5) or text (P2), as one image.
func (k inking) readPGM(in *bufio.Reader) (Images, error) {
	var magic [2]byte
	if _, err := io.ReadFull(in, magic[:]); err != nil {
		return Images{}, err
	}
	var width, height, white uint64
	for _, n := range []*uint64{&width, &height, &white} {
		var err error
		if *n, err = readNumber(in); isEnd(err) {
			return Images{}, errors.New("cut short in its PGM header")
		} else if err != nil {
			return Images{}, err
		}
	}
	size, err := checkSides(height, width)
	if err != nil {
		return Images{}, err
	}
	if white == 0 || white > 65535 {
		return Images{}, fmt.Errorf("its header says that white is %d; from 1 to 65535 is possible", white)
	}
	pixel := func() (uint64, error) { return readNumber(in) }
	if magic[1] == '5' {
		pixel = func() (uint64, error) { return readRaw(in, white) }
	}
	out := make([]byte, size.Pixels())
	for i := range out {
		v, err := pixel()
		if isEnd(err) {
			return Images{}, fmt.Errorf("cut short in pixel %d of %d", i+1, len(out))
		} else if err != nil {
			return Images{}, err
		}
		if v > white {
			return Images{}, fmt.Errorf("pixel %d is %d, but its header says that white is %d", i+1, v, white)
		}
		out[i] = k.pixel(uint32(v), uint32(white))
	}
	return NewImages(size, out), expectPGMEnd(in, magic[1] == '2')
}

// readNumber reads a decimal number, the spaces and comments before it, and one space behind it.
func readNumber(in *bufio.Reader) (n uint64, err error) {
	digits := 0
	for {
		c, err := in.ReadByte()
		switch {
		case err == io.EOF && digits > 0:
			return n, nil
		case err != nil:
			return 0, err
		case c >= '0' && c <= '9' && digits < 9:
			n = 10*n + uint64(c-'0')
			digits++
		case isSpace(c) && digits > 0:
			return n, nil
		case c == '#' && digits == 0:
			for c != '\n' {
				if c, err = in.ReadByte(); err != nil {
					return 0, err
				}
			}
		case !isSpace(c):
			return 0, fmt.Errorf("%q where a number of a PGM file should be", c)
		}
	}
}

func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

// readRaw reads a pixel of one byte, or two where white needs them.
func readRaw(in *bufio.Reader, white uint64) (uint64, error) {
	c, err := in.ReadByte()
	if err != nil || white < 256 {
		return uint64(c), err
	}
	low, err := in.ReadByte()
	return uint64(c)<<8 | uint64(low), err
}

// expectPGMEnd checks that nothing follows the last pixel but, in a text, spaces.
func expectPGMEnd(in *bufio.Reader, text bool) error {
	for {
		c, err := in.ReadByte()
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		case !text || !isSpace(c):
			return errors.New("something follows its last pixel")
		}
	}
}
