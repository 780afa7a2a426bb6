package report

import (
	"errors"
	"fmt"
	"image"
	"image/color"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Picture is a panel that shows a small image without axes, cell by cell: gray values, or classes by colour and number.
type Picture struct {
	Title string
	Gray  [][]float64 // rows from the top, from 0, black, to 1, white; what is not finite is black
	// Class is the class of every cell, if Gray is nil; cells with a negative one are blank.
	Class   [][]int
	Classes int    // how many there are, of which the colours depend
	Key     string // what a class is called in the legend, before its number; no legend if empty
}

const (
	pictureSide = 62 // points of the longer side
	pictureDots = 8  // each cell of gray is so many pixels wide, so that viewers do not blur it
	numberSide  = 9  // points of a cell that has room for its number
	keyEntries  = 16 // of a legend
)

func (p Picture) chart() (*chart, error) {
	rows, columns, err := p.size()
	if err != nil {
		return nil, err
	}
	scaled := pictureSide / vg.Length(max(rows, columns))
	unit := Axis{Max: 1}
	axes := Axes{Title: p.Title, X: unit, Y: unit, NoTicks: true}
	ch := newChart(axes, scaled*vg.Length(columns), scaled*vg.Length(rows))
	if p.Gray != nil {
		ch.marks = 1
		ch.Add(plotter.NewImage(p.image(rows, columns), 0, 0, 1, 1))
		return ch, ch.fit(axes, 0, 0)
	}
	ch.marks = 2 * rows * columns
	ch.X.Min, ch.X.Max, ch.Y.Min, ch.Y.Max = 0, 1, 0, 1
	ch.Add(drawing(func(c draw.Canvas, _ *plot.Plot) { p.drawCells(c, rows, columns) }))
	for k := range min(p.Classes, keyEntries) {
		if p.Classes > keyEntries { // some, from the first to the last
			k = k * (p.Classes - 1) / (keyEntries - 1)
		}
		if p.Key != "" {
			ch.legend = append(ch.legend, swatch(fmt.Sprintf("%s %d", p.Key, k), classColor(k, p.Classes)))
		}
	}
	return ch, ch.fit(axes, 0, 0)
}

// size returns the rows and columns of an image, which must be a rectangle.
func (p Picture) size() (rows, columns int, err error) {
	var widths []int
	for _, row := range p.Gray {
		widths = append(widths, len(row))
	}
	if p.Gray == nil {
		for _, row := range p.Class {
			widths = append(widths, len(row))
		}
	}
	if len(widths) == 0 || widths[0] == 0 {
		return 0, 0, errors.New("picture: no cells")
	}
	for i, w := range widths {
		if w != widths[0] {
			return 0, 0, fmt.Errorf("picture: row %d has %d cells, row 0 has %d", i, w, widths[0])
		}
	}
	return len(widths), widths[0], nil
}

// drawCells draws classes, each with its number where there is room.
func (p Picture) drawCells(c draw.Canvas, rows, columns int) {
	side := c.Size().X / vg.Length(columns)
	number := tickInk
	number.Font.Size = min(8.5, side*0.6)
	number.XAlign, number.YAlign = draw.XCenter, draw.YCenter
	for i, row := range p.Class {
		for j, k := range row {
			at := vg.Rectangle{
				Min: vg.Point{X: c.Min.X + vg.Length(j)*side, Y: c.Max.Y - c.Size().Y*vg.Length(i+1)/vg.Length(rows)},
				Max: vg.Point{X: c.Min.X + vg.Length(j+1)*side, Y: c.Max.Y - c.Size().Y*vg.Length(i)/vg.Length(rows)},
			}
			color := classColor(k, p.Classes)
			c.SetColor(color)
			c.Fill(at.Path())
			if k >= 0 && side >= numberSide {
				number.Color = over(color)
				middle := at.Min.Add(at.Max).Scale(0.5)
				c.FillText(number, middle.Add(vg.Point{Y: 0.09 * number.Font.Size}), strconv.Itoa(k))
			}
		}
	}
}

// over is a colour for text over another one, the same on a light and on a dark page.
func over(c color.Color) color.Color {
	if luminance(color.NRGBAModel.Convert(c).(color.NRGBA)) > 0.3 {
		return rgb(0x111012)
	}
	return rgb(0xfffeff)
}

// image paints gray cells.
func (p Picture) image(rows, columns int) *image.NRGBA {
	img := image.NewNRGBA(image.Rect(0, 0, columns*pictureDots, rows*pictureDots))
	for i, row := range p.Gray {
		for j, v := range row {
			c := shade(v)
			for k := range pictureDots * pictureDots {
				img.Set(j*pictureDots+k%pictureDots, i*pictureDots+k/pictureDots, c)
			}
		}
	}
	return img
}

// shade is a gray from black to white.
func shade(v float64) color.NRGBA {
	if !(v > 0) {
		v = 0
	}
	return gray(uint8(255*min(v, 1) + 0.5))
}
