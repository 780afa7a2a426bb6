package bilevel

import (
	"fmt"
	"math/bits"
)

// A row of pixels is bits of a number, column c being bit margin+c, so that neighbours beyond the edges are zeros.
const (
	margin  = 4
	maxSide = 64 - 2*margin
)

// Contexts of decisions: about a pixel, by its neighbours and where it lies; about a stretch of pixels, whether one
// of them is 1; about a pixel of a stretch that has a 1 but not yet, by how many pixels are left.
const (
	zones      = 7 // along each side, for pixels
	neighbours = 10
	pixels     = zones * zones << neighbours
	spots      = 14 // along each side, for stretches
	lengths    = 8
	stretches  = spots * spots * lengths
	rests      = zones * (maxSide + 1)
	contexts   = pixels + stretches + rests
)

// table is a probability for each context, coded in a byte.
type table [contexts]byte

// chance decodes a probability of 1, of 65536. The byte is a floating-point number: one bit that says whether 1 or
// 0 is the rarer, an exponent, and three bits of the rarer one's probability.
func chance(code byte) uint16 {
	rare := uint32(code >> 1)
	if exponent := rare >> 3; exponent > 0 {
		rare = (8 | rare&7) << (exponent - 1)
	}
	rare = min(max(rare, 1), 1<<15)
	if code&1 == 1 {
		return uint16(1<<16 - rare)
	}
	return uint16(rare)
}

// nearest returns the code of the probability nearest to that of counts.
func nearest(zeros, ones int) byte {
	if zeros+ones == 0 {
		return 0
	}
	const prior = 50 // a 1/50 of a decision is added to both
	want := int((uint64(ones)*prior + 1) << 16 / (uint64(zeros+ones)*prior + 2))
	best, distance := byte(0), 1<<16
	for code := range 256 {
		p := int(chance(byte(code)))
		if d := max(p-want, want-p); d < distance {
			best, distance = byte(code), d
		}
	}
	return best
}

func (t *table) chances() *[contexts]uint16 {
	var out [contexts]uint16
	for i, code := range t {
		out[i] = chance(code)
	}
	return &out
}

// shape is the size of the images.
type shape struct {
	height, width int
	zone          [maxSide][maxSide]uint8 // by row and column
	spot          [maxSide][maxSide]uint8
}

func newShape(height, width int) (*shape, error) {
	if height < 1 || height > maxSide || width < 1 || width > maxSide {
		return nil, fmt.Errorf("bilevel: images of %dx%d; sides from 1 to %d are possible", height, width, maxSide)
	}
	s := &shape{height: height, width: width}
	for y := range height {
		for x := range width {
			s.zone[y][x] = uint8(y*zones/height*zones + x*zones/width)
			s.spot[y][x] = uint8(y*spots/height*spots + x*spots/width)
		}
	}
	return s, nil
}

func (s *shape) stride() int { return (s.height*s.width + 7) / 8 }

// canvas is the rows of an image, below two rows of zeros.
type canvas [2 + maxSide]uint64

// walk makes all decisions about an image in order. A coder that knows the pixels finds them in rows and leaves them
// as they are; one that does not fills them in.
func walk[C coder](s *shape, c C, rows *canvas) {
	for y := range s.height {
		rows[y+2] = walkRow(s, c, y, rows[y], rows[y+1], rows[y+2])
	}
}

// walkRow makes the decisions about row y, above which lie the rows above and, over that, top.
func walkRow[C coder](s *shape, c C, y int, top, above, given uint64) uint64 {
	near := above<<2 | above<<1 | above | above>>1 | above>>2 | top<<1 | top | top>>1 // columns that see ink above them
	near |= 1 << (margin + s.width)                                                   // and the end
	row, rest := uint64(0), 0
	for x := 0; x < s.width; {
		if length := bits.TrailingZeros64(near >> (margin + x)); rest == 0 && length > 0 && row>>(margin+x-2)&3 == 0 {
			inked := uint(0)
			if given>>(margin+x)&(1<<length-1) != 0 {
				inked = 1
			}
			if c.code(s.stretch(y, x, length), inked) == 0 {
				x += length
				continue
			}
			rest = length
		}
		context := 0
		if rest > 0 {
			context = s.rest(y, rest)
			rest--
		} else {
			context = s.pixel(y, x, top, above, row)
		}
		bit := c.code(context, uint(given>>(margin+x)&1))
		if bit == 1 {
			rest = 0
		}
		row |= uint64(bit) << (margin + x)
		x++
	}
	return row
}

// pixel is the context of a pixel: three above and over that, five above, two on its left.
func (s *shape) pixel(y, x int, top, above, row uint64) int {
	seen := top>>(margin+x-1)&7<<7 | above>>(margin+x-2)&31<<2 | row>>(margin+x-2)&3
	return int(s.zone[y][x])<<neighbours | int(seen)
}

func (s *shape) stretch(y, x, length int) int {
	return pixels + int(s.spot[y][x])*lengths + min(length/4, lengths-1)
}

func (s *shape) rest(y, rest int) int {
	return pixels + stretches + y*zones/s.height*(maxSide+1) + rest
}

// learn returns the probabilities of the decisions about images.
func (s *shape) learn(images []byte) *table {
	var counts counter
	s.each(images, func(rows *canvas) { walk(s, &counts, rows) })
	var t table
	for i, n := range counts {
		t[i] = nearest(n[0], n[1])
	}
	return &t
}

func (s *shape) encode(t *table, images []byte) []byte {
	e := &encoder{chance: t.chances(), hi: ^uint32(0)}
	s.each(images, func(rows *canvas) { walk(s, e, rows) })
	return e.finish()
}

// each calls do with the rows of each image.
func (s *shape) each(images []byte, do func(*canvas)) {
	for ; len(images) > 0; images = images[s.stride():] {
		var rows canvas
		for y := range s.height {
			rows[2+y] = load(images, y*s.width, s.width) << margin
		}
		do(&rows)
	}
}

// decode fills images, which are zeros.
func (s *shape) decode(t *table, images, data []byte) {
	d := newDecoder(t.chances(), data)
	var rows canvas
	for ; len(images) > 0; images = images[s.stride():] {
		walk(s, d, &rows)
		for y, row := range rows[2 : 2+s.height] {
			store(images, y*s.width, row>>margin)
		}
	}
}

// load reads a row of pixels of an image from a position on.
func load(image []byte, position, width int) uint64 {
	row := uint64(0)
	for n := 0; n < width; {
		at, shift := (position+n)/8, (position+n)%8
		row |= uint64(image[at]>>shift) << n
		n += 8 - shift
	}
	return row & (1<<width - 1)
}

// store writes a row of pixels to an image from a position on.
func store(image []byte, position int, row uint64) {
	at, shift := position/8, position%8
	for ; row != 0; at++ {
		image[at] |= byte(row << shift)
		row >>= 8 - shift
		shift = 0
	}
}
