package bilevel

// coder makes decisions, one bit each. An encoder is told the bit and keeps it; a decoder is not, and knows it.
type coder interface {
	// code returns the bit that is decided in a context.
	code(context int, bit uint) uint
}

// Both ends of the arithmetic coder divide the interval [lo,hi] at each decision in the ratio of its probabilities and
// go on with one part. Leading bytes on which lo and hi agree are final.

// mid returns the end of the part of [lo,hi] that stands for a 1 of probability p/65536. Both parts hold a number or more.
func mid(lo, hi uint32, p uint16) uint32 {
	return lo + uint32(uint64(hi-lo)*uint64(p)>>16)
}

func settled(lo, hi uint32) bool { return (lo^hi)>>24 == 0 }

type encoder struct {
	chance *[contexts]uint16 // of a 1, in each context, of 65536
	lo, hi uint32
	out    []byte
}

func (e *encoder) code(context int, bit uint) uint {
	m := mid(e.lo, e.hi, e.chance[context])
	if bit == 1 {
		e.hi = m
	} else {
		e.lo = m + 1
	}
	for settled(e.lo, e.hi) {
		e.out = append(e.out, byte(e.hi>>24))
		e.lo, e.hi = e.lo<<8, e.hi<<8|0xff
	}
	return bit
}

// finish returns all bytes: as many more as tell the last interval, given that a decoder reads zeros behind them.
func (e *encoder) finish() []byte {
	if e.lo > 0 {
		e.out = append(e.out, byte(e.lo>>24)+1) // the leading bytes of lo and hi differ
	}
	return e.out
}

type decoder struct {
	chance    *[contexts]uint16
	lo, hi, x uint32
	in        []byte
}

func newDecoder(chance *[contexts]uint16, in []byte) *decoder {
	d := &decoder{chance: chance, hi: ^uint32(0), in: in}
	for range 4 {
		d.next()
	}
	return d
}

// next takes a byte, or a zero behind the end.
func (d *decoder) next() {
	d.x <<= 8
	if len(d.in) > 0 {
		d.x |= uint32(d.in[0])
		d.in = d.in[1:]
	}
}

func (d *decoder) code(context int, _ uint) uint {
	m := mid(d.lo, d.hi, d.chance[context])
	bit := uint(0)
	if d.x <= m {
		d.hi = m
		bit = 1
	} else {
		d.lo = m + 1
	}
	for settled(d.lo, d.hi) {
		d.lo, d.hi = d.lo<<8, d.hi<<8|0xff
		d.next()
	}
	return bit
}

// counter counts decisions.
type counter [contexts][2]int

func (c *counter) code(context int, bit uint) uint {
	c[context][bit]++
	return bit
}
