package mnist

import (
	"fmt"
	"image"
	"math"
)

// Gray is a sequence of images of one size whose pixels are bytes, from 0, black, to 255, white.
type Gray struct {
	Size
	Pix []byte // row by row, image by image
}

// Gray returns the images with pixels 0 and 255.
func (m Images) Gray() Gray { return NewGray(m.Size, m.Floats()) }

// NewGray returns images from pixels, row by row and image by image: 0 becomes black, 1 white, what lies between a
// gray, and what is no number black.
func NewGray(size Size, pixels []float32) Gray {
	if n := size.Pixels(); n <= 0 && len(pixels) > 0 || n > 0 && len(pixels)%n != 0 {
		panic(fmt.Errorf("mnist: %d pixels are no whole number of %v images", len(pixels), size))
	}
	g := Gray{Size: size, Pix: make([]byte, len(pixels))}
	for i, v := range pixels {
		if v > 0 {
			g.Pix[i] = byte(math.Round(255 * float64(min(v, 1))))
		}
	}
	return g
}

// Len returns the number of images.
func (g Gray) Len() int {
	if len(g.Pix) == 0 {
		return 0
	}
	return len(g.Pix) / g.Pixels()
}

// At returns image i. It shares its pixels with g.
func (g Gray) At(i int) *image.Gray {
	n := g.Pixels()
	return &image.Gray{Pix: g.Pix[i*n : (i+1)*n : (i+1)*n], Stride: g.Width, Rect: image.Rect(0, 0, g.Width, g.Height)}
}

// Paper and ink of the space between images.
const (
	gutter     = 2
	gutterGray = 96
)

// Grid returns all images in one, in rows of the given number of columns, with a little space between them. Zero
// columns means about as many as rows.
func (g Gray) Grid(columns int) *image.Gray {
	n := g.Len()
	if columns <= 0 {
		columns = int(math.Ceil(math.Sqrt(float64(n))))
	}
	columns = max(min(columns, n), 1)
	rows := max((n+columns-1)/columns, 1)
	across, down := g.Width+gutter, g.Height+gutter
	out := image.NewGray(image.Rect(0, 0, columns*across-gutter, rows*down-gutter))
	for i := range out.Pix {
		out.Pix[i] = gutterGray
	}
	for i := range n {
		from := g.At(i)
		corner := out.PixOffset(i%columns*across, i/columns*down)
		for y := range g.Height {
			copy(out.Pix[corner+y*out.Stride:], from.Pix[y*from.Stride:][:g.Width])
		}
	}
	return out
}
