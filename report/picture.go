package report

import (
	"errors"
	"fmt"
	"image"
	"image/color"

	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

// Picture is a panel that shows a small image without axes, cell by cell: gray values, or classes by colour.
type Picture struct {
	Title string
	Gray  [][]float64 // rows from the top, from 0, black, to 1, white; what is not finite is black
	// Class is the class of every cell, if Gray is nil; cells with a negative one are blank.
	Class   [][]int
	Classes int // how many there are, of which the colours depend
}

const (
	pictureSide = 62 // points of the longer side
	pictureDots = 8  // each cell is so many pixels wide, so that viewers do not blur it
)

func (p Picture) chart() (*chart, error) {
	img, err := p.image()
	if err != nil {
		return nil, err
	}
	size := img.Rect.Size()
	scaled := pictureSide / vg.Length(max(size.X, size.Y))
	unit := Axis{Max: 1}
	axes := Axes{Title: p.Title, X: unit, Y: unit, NoTicks: true}
	ch := newChart(axes, scaled*vg.Length(size.X), scaled*vg.Length(size.Y))
	ch.marks = 1
	ch.Add(plotter.NewImage(img, 0, 0, 1, 1))
	return ch, ch.fit(axes, 0, 0)
}

// image paints the cells.
func (p Picture) image() (*image.NRGBA, error) {
	rows, columns := len(p.Gray), 0
	width := func(i int) int { return len(p.Gray[i]) }
	paint := func(i, j int) color.Color { return shade(p.Gray[i][j]) }
	if p.Gray == nil {
		rows = len(p.Class)
		width = func(i int) int { return len(p.Class[i]) }
		paint = func(i, j int) color.Color { return classColor(p.Class[i][j], p.Classes) }
	}
	if rows > 0 {
		columns = width(0)
	}
	if columns == 0 {
		return nil, errors.New("picture: no cells")
	}
	img := image.NewNRGBA(image.Rect(0, 0, columns*pictureDots, rows*pictureDots))
	for i := range rows {
		if width(i) != columns {
			return nil, fmt.Errorf("picture: row %d has %d cells, row 0 has %d", i, width(i), columns)
		}
		for j := range columns {
			c := paint(i, j)
			for k := range pictureDots * pictureDots {
				img.Set(j*pictureDots+k%pictureDots, i*pictureDots+k/pictureDots, c)
			}
		}
	}
	return img, nil
}

// shade is a gray from black to white.
func shade(v float64) color.NRGBA {
	if !(v > 0) {
		v = 0
	}
	return gray(uint8(255*min(v, 1) + 0.5))
}
