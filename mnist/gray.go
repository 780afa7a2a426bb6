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

// Paper and ink of the space between images.
const (
	gutter     = 2
	gutterGray = 96
)

// grid returns all images in one, about as many in a row as there are rows, with a little space between them. There
// must be at least one.
func (g Gray) grid() *image.Gray {
	n := g.Len()
	columns := int(math.Ceil(math.Sqrt(float64(n))))
	rows := (n + columns - 1) / columns
	across, down := g.Width+gutter, g.Height+gutter
	out := image.NewGray(image.Rect(0, 0, columns*across-gutter, rows*down-gutter))
	for i := range out.Pix {
		out.Pix[i] = gutterGray
	}
	for i := range n {
		from := g.Pix[i*g.Pixels():]
		corner := out.PixOffset(i%columns*across, i/columns*down)
		for y := range g.Height {
			copy(out.Pix[corner+y*out.Stride:], from[y*g.Width:][:g.Width])
		}
	}
	return out
}
