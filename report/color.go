package report

import (
	"image/color"
	"math"

	"gonum.org/v1/plot/palette/moreland"
	"gonum.org/v1/plot/vg"
)

// rgb returns an opaque colour written as 0xRRGGBB.
func rgb(hex uint32) color.NRGBA {
	return color.NRGBA{R: uint8(hex >> 16), G: uint8(hex >> 8), B: uint8(hex), A: 0xff}
}

func gray(y uint8) color.NRGBA { return color.NRGBA{R: y, G: y, B: y, A: 0xff} }

// faded returns c with the given opacity.
func faded(c color.NRGBA, opacity float64) color.NRGBA {
	c.A = uint8(math.Round(255 * opacity))
	return c
}

// okabeIto is the palette of M. Okabe and K. Ito, "Color Universal Design" (2008), for eyes of every kind; its yellow
// is left out because thin yellow lines vanish on white.
var okabeIto = []color.NRGBA{
	rgb(0x0072b2), // blue
	rgb(0xd55e00), // vermilion
	rgb(0x009e73), // bluish green
	rgb(0xcc79a7), // reddish purple
	rgb(0xe69f00), // orange
	rgb(0x56b4e9), // sky blue
	rgb(0x000000), // black
}

// seriesColor returns the colour of the i-th series of a panel, and the dashes that tell a second round of the
// palette from the first.
func seriesColor(i int) (color.NRGBA, []vg.Length) {
	rounds := [][]vg.Length{nil, {5, 2.5}, {1.5, 2}}
	return okabeIto[i%len(okabeIto)], rounds[i/len(okabeIto)%len(rounds)]
}

// petroff10 is the ten-colour cycle of M. Petroff, "Accessible Color Sequences for Data Visualization" (2021),
// arXiv:2107.02270; its light gray comes last, because points without a class are gray.
var petroff10 = []color.NRGBA{
	rgb(0x3f90da), rgb(0xffa90e), rgb(0xbd1f01), rgb(0x832db6),
	rgb(0xa96b59), rgb(0xe76300), rgb(0xb9ac70), rgb(0x717581), rgb(0x92dadd), rgb(0x94a4a2),
}

// maxClasses is how many classes of points a reader can tell apart.
const maxClasses = 10

// classColor returns the colour of class k of n: ten unordered ones while they suffice, and else one of n whose
// lightness grows evenly. Negative classes are pale.
func classColor(k, n int) color.Color {
	switch {
	case k < 0:
		return gray(0xf4)
	case n <= maxClasses:
		return petroff10[min(k, maxClasses-1)]
	}
	shades := moreland.Kindlmann()
	shades.SetMax(1.15) // beyond 1 it is near white
	c, _ := shades.At(float64(min(k, n-1)) / float64(n))
	return c
}
