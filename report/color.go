package report

import (
	"image/color"
	"math"

	"gonum.org/v1/plot/vg"
)

// rgb returns an opaque colour written as 0xRRGGBB.
func rgb(hex uint32) color.NRGBA {
	return color.NRGBA{R: uint8(hex >> 16), G: uint8(hex >> 8), B: uint8(hex), A: 0xff}
}

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
// arXiv:2107.02270.
var petroff10 = []color.NRGBA{
	rgb(0x3f90da), rgb(0xffa90e), rgb(0xbd1f01), rgb(0x94a4a2), rgb(0x832db6),
	rgb(0xa96b59), rgb(0xe76300), rgb(0xb9ac70), rgb(0x717581), rgb(0x92dadd),
}

// maxClasses is how many classes of points a reader can tell apart.
const maxClasses = 10

// classColor returns the colour of class k of n: purple, blue, green and yellow of viridis up to four classes, and ten
// unordered colours beyond.
func classColor(k, n int) color.NRGBA {
	if n <= 4 {
		return viridis(float64(k) / 3)
	}
	return petroff10[k]
}

// viridisStops are every fifteenth of the 256 entries of viridis, by S. van der Walt and N. Smith (matplotlib, 2015).
var viridisStops = []color.NRGBA{
	rgb(0x440154), rgb(0x481769), rgb(0x472a7a), rgb(0x433d84), rgb(0x3d4e8a), rgb(0x355e8d),
	rgb(0x2e6d8e), rgb(0x297b8e), rgb(0x23898e), rgb(0x1f978b), rgb(0x21a585), rgb(0x2eb37c),
	rgb(0x46c06f), rgb(0x65cb5e), rgb(0x89d548), rgb(0xb0dd2f), rgb(0xd8e219), rgb(0xfde725),
}

// viridis maps [0, 1] to a colour whose lightness grows evenly; values outside are clamped.
func viridis(v float64) color.NRGBA {
	v = min(max(v, 0), 1) * float64(len(viridisStops)-1)
	i := min(int(v), len(viridisStops)-2)
	a, b, t := viridisStops[i], viridisStops[i+1], v-float64(i)
	mix := func(x, y uint8) uint8 { return uint8(math.Round(float64(x) + t*(float64(y)-float64(x)))) }
	return color.NRGBA{R: mix(a.R, b.R), G: mix(a.G, b.G), B: mix(a.B, b.B), A: 0xff}
}
