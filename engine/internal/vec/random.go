package vec

import (
	"math/bits"

	"github.com/gfnem/gfnem/engine/internal/cpu"
)

// State is the state of a random number generator as GoMLX passes it around.
type State = [3]uint64

// RandomPhilox fills dst with the bits of Philox 4x32-10 as XLA's RngBitGenerator makes them from a state of three words:
// the first is the key, taken as it is, the other two are the counter, low word first. Each counter gives a block of
// four words, in order. It returns the state with the counter after the last block, whether all of that was used or
// not. A word of 64 bits is two of these words, low half first.
func RandomPhilox(dst []uint32, s State) State { return randomPhilox(cpu.Use, dst, s) }

// SkipPhilox is the state after a number of blocks, so that parts of one stream can be filled apart.
func SkipPhilox(s State, blocks uint64) State {
	low, carry := bits.Add64(s[1], blocks, 0)
	return State{s[0], low, s[2] + carry}
}

// RandomNarrow fills dst with the low bits of one word of RandomPhilox per element, which is what XLA does for types of
// less than 32 bits.
func RandomNarrow[T uint8 | uint16](dst []T, s State) State {
	var words [512]uint32
	for len(dst) > 0 {
		part := words[:min(len(dst), len(words))]
		s = RandomPhilox(part, s)
		for i, w := range part {
			dst[i] = T(w)
		}
		dst = dst[len(part):]
	}
	return s
}

func randomPhilox(level cpu.Level, dst []uint32, s State) State {
	var keys [20]uint64
	k0, k1 := uint32(s[0]), uint32(s[0]>>32)
	for r := range 10 {
		keys[2*r], keys[2*r+1] = uint64(k0), uint64(k1)
		k0 += 0x9E3779B9
		k1 += 0xBB67AE85
	}
	for len(dst) > 0 {
		n := uint64(len(dst)+3) / 4
		if room := -s[1]; room != 0 {
			n = min(n, room) // the low counter wraps after room blocks
		}
		part := dst[:min(4*n, uint64(len(dst)))]
		done := philoxWide(level, part, &keys, s[1], s[2])
		philoxRest(level, part[4*done:], &keys, s[1]+uint64(done), s[2])
		dst, s = dst[len(part):], SkipPhilox(s, n)
	}
	return s
}

// philoxRest writes what is too short for the vector units, by way of a buffer that is not.
func philoxRest(level cpu.Level, dst []uint32, keys *[20]uint64, low, high uint64) {
	if len(dst) == 0 {
		return
	}
	var room [32]uint32
	if len(dst) > 4 && len(dst) < len(room) && philoxWide(level, room[:], keys, low, high) == len(room)/4 {
		copy(dst, room[:])
		return
	}
	for ; len(dst) > 0; low += 2 {
		b := philoxPair(keys, low, high)
		dst = dst[copy(dst, b[:]):]
	}
}

// philoxPair is the words of two counters, which differ in their low words. Together they take little longer than one:
// each round waits for the products of the round before.
func philoxPair(keys *[20]uint64, low, high uint64) [8]uint32 {
	const m0, m1 = 0xD2511F53, 0xCD9E8D57
	next := low + 1
	a0, a1, a2, a3 := uint32(low), uint32(low>>32), uint32(high), uint32(high>>32)
	b0, b1, b2, b3 := uint32(next), uint32(next>>32), uint32(high), uint32(high>>32)
	for r := 0; r < 20; r += 2 {
		k0, k1 := uint32(keys[r]), uint32(keys[r+1])
		p, q := uint64(a0)*m0, uint64(a2)*m1
		u, v := uint64(b0)*m0, uint64(b2)*m1
		a0, a1, a2, a3 = uint32(q>>32)^a1^k0, uint32(q), uint32(p>>32)^a3^k1, uint32(p)
		b0, b1, b2, b3 = uint32(v>>32)^b1^k0, uint32(v), uint32(u>>32)^b3^k1, uint32(u)
	}
	return [8]uint32{a0, a1, a2, a3, b0, b1, b2, b3}
}
