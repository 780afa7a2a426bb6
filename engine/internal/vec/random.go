package vec

import (
	"math/bits"
	"unsafe"

	"github.com/gfnem/gfnem/engine/internal/cpu"
)

// State is the state of a random number generator as GoMLX passes it around.
type State = [3]uint64

// RandomPCG fills dst with the bits that GoMLX's own backend makes from the state: PCG-DXSM of math/rand/v2 seeded with
// the first two words, in words of 64 bits, little-endian.
func RandomPCG(dst []byte, s State) {
	hi, lo := s[0], s[1]
	n := len(dst) / 8
	words := make64(dst, n)
	// Four generators, each four steps ahead at a turn, hide the latency of the products.
	m4hi, m4lo, a4hi, a4lo := pcgPower(4)
	var h, l [4]uint64
	for i := range 4 {
		hi, lo = pcgStep(hi, lo, pcgMulHi, pcgMulLo, pcgIncHi, pcgIncLo)
		h[i], l[i] = hi, lo
	}
	i := 0
	for ; i+4 <= n; i += 4 {
		words[i] = dxsm(h[0], l[0])
		words[i+1] = dxsm(h[1], l[1])
		words[i+2] = dxsm(h[2], l[2])
		words[i+3] = dxsm(h[3], l[3])
		h[0], l[0] = pcgStep(h[0], l[0], m4hi, m4lo, a4hi, a4lo)
		h[1], l[1] = pcgStep(h[1], l[1], m4hi, m4lo, a4hi, a4lo)
		h[2], l[2] = pcgStep(h[2], l[2], m4hi, m4lo, a4hi, a4lo)
		h[3], l[3] = pcgStep(h[3], l[3], m4hi, m4lo, a4hi, a4lo)
	}
	dst = dst[8*i:]
	for i := 0; len(dst) > 0; i++ {
		w := dxsm(h[i], l[i])
		part := min(8, len(dst))
		for j := range part {
			dst[j] = byte(w >> (8 * j))
		}
		dst = dst[part:]
	}
}

// SkipPCG is the state from which RandomPCG continues the stream after n words of 64 bits, so that parts of one stream
// can be filled apart.
func SkipPCG(s State, n uint64) State {
	mhi, mlo, ahi, alo := pcgPower(n)
	s[0], s[1] = pcgStep(s[0], s[1], mhi, mlo, ahi, alo)
	return s
}

// NextPCG is the state that GoMLX's own backend returns after it made size bytes. It is not SkipPCG's: that backend
// writes the words with their bytes reversed, and its next stream starts from those. It leaves the third word undefined;
// here it stays.
func NextPCG(s State, size int) State {
	s = SkipPCG(s, (uint64(size)+7)/8)
	s[0], s[1] = bits.ReverseBytes64(s[0]), bits.ReverseBytes64(s[1])
	return s
}

// The constants of math/rand/v2's PCG.
const (
	pcgMulHi = 2549297995355413924
	pcgMulLo = 4865540595714422341
	pcgIncHi = 6364136223846793005
	pcgIncLo = 1442695040888963407
)

// pcgStep is x*m + a in 128 bits.
func pcgStep(hi, lo, mhi, mlo, ahi, alo uint64) (uint64, uint64) {
	h, l := bits.Mul64(lo, mlo)
	h += hi*mlo + lo*mhi
	l, c := bits.Add64(l, alo, 0)
	h, _ = bits.Add64(h, ahi, c)
	return h, l
}

// pcgPower is the multiplier and the increment of n steps at once.
func pcgPower(n uint64) (mhi, mlo, ahi, alo uint64) {
	mlo = 1
	bhi, blo, chi, clo := uint64(pcgMulHi), uint64(pcgMulLo), uint64(pcgIncHi), uint64(pcgIncLo)
	for ; n > 0; n >>= 1 {
		if n&1 == 1 {
			mhi, mlo = pcgStep(mhi, mlo, bhi, blo, 0, 0)
			ahi, alo = pcgStep(ahi, alo, bhi, blo, chi, clo)
		}
		chi, clo = pcgStep(chi, clo, bhi, blo, chi, clo)
		bhi, blo = pcgStep(bhi, blo, bhi, blo, 0, 0)
	}
	return
}

// dxsm is the output function "double xorshift multiply".
func dxsm(hi, lo uint64) uint64 {
	const cheapMul = 0xda942042e4dd58b5
	hi ^= hi >> 32
	hi *= cheapMul
	hi ^= hi >> 48
	return hi * (lo | 1)
}

// make64 is the first n words of a slice of bytes. Only little-endian machines are supported.
func make64(b []byte, n int) []uint64 {
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*uint64)(unsafe.Pointer(&b[0])), n)
}

// RandomPhilox fills dst with the bits of Philox 4x32-10 as XLA's RngBitGenerator makes them: the key is the state's
// first word, the counter the other two (low word first), one block of four words for each counter. It returns the
// state with the counter after the last block. Words of 64 bits are pairs of these words, low half first.
func RandomPhilox(dst []uint32, s State) State { return randomPhilox(cpu.Use, dst, s) }

func randomPhilox(level cpu.Level, dst []uint32, s State) State {
	var keys [20]uint64
	k0, k1 := uint32(s[0]), uint32(s[0]>>32)
	for r := range 10 {
		keys[2*r], keys[2*r+1] = uint64(k0), uint64(k1)
		k0 += 0x9E3779B9
		k1 += 0xBB67AE85
	}
	for len(dst) > 0 {
		part := dst
		if room := -s[1]; room != 0 && uint64(len(dst)+3)/4 > room {
			part = dst[:4*room] // the low counter wraps after room blocks
		}
		n := philoxWide(level, part, &keys, s[1], s[2])
		if n == 0 {
			var b [4]uint32
			philoxBlock(&b, &keys, s[1], s[2])
			copy(dst, b[:])
			n = 1
		}
		dst = dst[min(4*n, len(dst)):]
		low, carry := bits.Add64(s[1], uint64(n), 0)
		s[1], s[2] = low, s[2]+carry
	}
	return s
}

// philoxBlock is the four words of one counter.
func philoxBlock(dst *[4]uint32, keys *[20]uint64, low, high uint64) {
	c0, c1, c2, c3 := uint32(low), uint32(low>>32), uint32(high), uint32(high>>32)
	for r := range 10 {
		p0, p1 := uint64(c0)*0xD2511F53, uint64(c2)*0xCD9E8D57
		c0, c1, c2, c3 = uint32(p1>>32)^c1^uint32(keys[2*r]), uint32(p1), uint32(p0>>32)^c3^uint32(keys[2*r+1]), uint32(p0)
	}
	*dst = [4]uint32{c0, c1, c2, c3}
}
