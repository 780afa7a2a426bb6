package mnist

import (
	"bytes"
	"fmt"
)

// Size is the size of an image in pixels.
type Size struct {
	Height, Width int
}

// Pixels returns the number of pixels.
func (s Size) Pixels() int { return s.Height * s.Width }

func (s Size) String() string { return fmt.Sprintf("%dx%d", s.Height, s.Width) }

// stride is the number of bytes of a packed image.
func (s Size) stride() int { return (s.Pixels() + 7) / 8 }

// Images is a sequence of images of one size whose pixels are 0 or 1. Copies share their pixels, which never change.
// The zero value is a sequence of none.
type Images struct {
	Size
	bits []byte // as Packed returns them
}

// NewImages returns images with a pixel of 1 for each byte of pixels that is not 0. The images lie one after the
// other, each row by row.
func NewImages(size Size, pixels []byte) Images {
	n := size.Pixels()
	if n <= 0 || len(pixels)%n != 0 {
		panic(fmt.Errorf("mnist: %d pixels are no whole number of %v images", len(pixels), size))
	}
	m := Images{Size: size, bits: make([]byte, 0, len(pixels)/n*size.stride())}
	for ; len(pixels) > 0; pixels = pixels[n:] {
		m.bits = appendPacked(m.bits, pixels[:n])
	}
	return m
}

// appendPacked appends an image whose pixels are 1 where the byte is not 0.
func appendPacked(dst, pixels []byte) []byte {
	for len(pixels) > 0 {
		n := min(8, len(pixels))
		var packed byte
		for i, v := range pixels[:n] {
			if v != 0 {
				packed |= 1 << i
			}
		}
		dst = append(dst, packed)
		pixels = pixels[n:]
	}
	return dst
}

// Len returns the number of images.
func (m Images) Len() int {
	if len(m.bits) == 0 {
		return 0
	}
	return len(m.bits) / m.stride()
}

// Slice returns the images from number from to number to, that one excluded.
func (m Images) Slice(from, to int) Images {
	n := m.Len()
	if from < 0 || to < from || to > n {
		panic(fmt.Errorf("mnist: images %d to %d of %d", from, to, n))
	}
	s := m.stride()
	m.bits = m.bits[from*s : to*s : to*s]
	return m
}

// Packed returns all pixels as bits: each image in whole bytes, row by row, from the lowest bit of a byte up, and zeros
// to the end of its last byte.
func (m Images) Packed() []byte { return bytes.Clone(m.bits) }

// packed returns the bytes of image i.
func (m Images) packed(i int) []byte {
	s := m.stride()
	return m.bits[i*s : (i+1)*s]
}

// spread holds the eight pixels of each packed byte.
var spread = func() (t [256][8]float32) {
	for b := range t {
		for i := range t[b] {
			t[b][i] = float32(b >> i & 1)
		}
	}
	return t
}()

// Fill writes the images with the given numbers to dst, which must have room for exactly these: one pixel after the
// other, row by row, image by image, each 0 or 1.
func (m Images) Fill(dst []float32, indices []int) {
	n := m.Pixels()
	if len(dst) != n*len(indices) {
		panic(fmt.Errorf("mnist: a batch of %d values for %d images of %d pixels", len(dst), len(indices), n))
	}
	for _, i := range indices {
		unpack(dst[:n], m.packed(i))
		dst = dst[n:]
	}
}

// Floats returns all pixels, as Fill writes them.
func (m Images) Floats() []float32 {
	n := m.Pixels()
	dst := make([]float32, m.Len()*n)
	for i := range m.Len() {
		unpack(dst[i*n:(i+1)*n], m.packed(i))
	}
	return dst
}

func unpack(dst []float32, packed []byte) {
	for len(dst) >= 8 {
		*(*[8]float32)(dst) = spread[packed[0]]
		dst, packed = dst[8:], packed[1:]
	}
	if len(dst) > 0 {
		copy(dst, spread[packed[0]][:])
	}
}
