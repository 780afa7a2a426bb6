package engine

import "github.com/gfnem/gfnem/engine/internal/vec"

// randomBits is Philox as XLA has it: see vec.RandomPhilox. Parts of the stream are made apart, in whole blocks of four
// words, so that the bits do not depend on how many there are.
type randomBits struct{}

const philoxBlock = 4 // words of 32 bits

func (randomBits) bind(fr *frame, l *lop) func() {
	state, next, out := l.ins[0].v, l.outs[0], l.outs[1]
	size := sizeOf(out.t)
	words := out.size * max(1, size/4) // one for each element of a narrow type
	blocks := (words + philoxBlock - 1) / philoxBlock
	fill := rowsOf(blocks, 8, func(lo, hi int) {
		s := vec.SkipPhilox(*(*vec.State)(fr.mem[state.slot]), uint64(lo))
		lo *= philoxBlock
		n := min(hi*philoxBlock, words) - lo
		switch to := add(fr.mem[out.slot], lo, min(size, 4)); size {
		case 1:
			vec.RandomNarrow(elems[uint8](to, n), s)
		case 2:
			vec.RandomNarrow(elems[uint16](to, n), s)
		default:
			vec.RandomPhilox(elems[uint32](to, n), s)
		}
	})
	return func() {
		fill()
		*(*vec.State)(fr.mem[next.slot]) = vec.SkipPhilox(*(*vec.State)(fr.mem[state.slot]), uint64(blocks))
	}
}
