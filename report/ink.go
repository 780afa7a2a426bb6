package report

import (
	"image/color"
	"math"
	"strings"
	"unicode"

	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/font/liberation"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// fonts holds the typefaces of figures. Liberation Sans has the metrics of Arial and Helvetica, so that an SVG keeps
// its layout where only those are installed.
var fonts = font.NewCache(liberation.Collection())

// ink is how a line of text looks.
type ink struct {
	face  font.Face
	color color.Color
}

func newInk(size vg.Length, bold bool, c color.Color) ink {
	f := font.Font{Typeface: "Liberation", Variant: "Sans"}
	if bold {
		f.Weight = 3 // golang.org/x/image/font.WeightBold
	}
	return ink{face: fonts.Lookup(f, size), color: c}
}

var (
	titleInk  = newInk(11.5, true, gray(0x1a))
	headInk   = newInk(10, true, gray(0x33))
	labelInk  = newInk(9.5, false, gray(0x33))
	tickInk   = newInk(8.5, false, gray(0x55))
	legendInk = newInk(9, false, gray(0x33))
)

func gray(y uint8) color.NRGBA { return color.NRGBA{R: y, G: y, B: y, A: 0xff} }

// size is the nominal height of a line of text.
func (k ink) size() vg.Length { return k.face.Font.Size }

// width is the length of s when drawn.
func (k ink) width(s string) vg.Length { return k.face.Width(printable(s)) }

// line draws s with its baseline at y; align is the fraction of its width that lies left of x.
func (k ink) line(c draw.Canvas, x, y vg.Length, align float64, s string) {
	s = printable(s)
	if s == "" {
		return
	}
	c.SetColor(k.color)
	c.FillString(k.face, vg.Point{X: x - vg.Length(align)*k.face.Width(s), Y: y}, s)
}

// middle draws s with its capitals centred on y.
func (k ink) middle(c draw.Canvas, x, y vg.Length, align float64, s string) {
	k.line(c, x, y-0.36*k.size(), align, s)
}

// upward draws s turned a quarter to the left, its baseline at x and its middle at y.
func (k ink) upward(c draw.Canvas, x, y vg.Length, s string) {
	c.Push()
	c.Translate(vg.Point{X: x, Y: y})
	c.Rotate(math.Pi / 2)
	k.line(c, 0, 0, 0.5, s)
	c.Pop()
}

// printable replaces by spaces what has no shape: controls, line breaks, broken UTF-8. What is left is fit for a
// terminal and for XML.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsGraphic(r) || r == unicode.ReplacementChar {
			return ' '
		}
		return r
	}, s)
}
