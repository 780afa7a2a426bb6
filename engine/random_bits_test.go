package engine_test

import (
	"encoding/binary"
	"math/bits"
	"reflect"
	"runtime"
	"slices"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/compute/support/testutil"
)

// philox is Philox 4x32-10 as its authors write it: a counter, a key, ten rounds.
func philox(c [4]uint32, k [2]uint32) [4]uint32 {
	for range 10 {
		hi0, lo0 := bits.Mul32(0xD2511F53, c[0])
		hi1, lo1 := bits.Mul32(0xCD9E8D57, c[2])
		c = [4]uint32{hi1 ^ c[1] ^ k[0], lo1, hi0 ^ c[3] ^ k[1], lo0}
		k[0] += 0x9E3779B9
		k[1] += 0xBB67AE85
	}
	return c
}

// wordsOf lists n words of the stream of a state and the state after them, one block at a time.
func wordsOf(s [3]uint64, n int) (words []uint32, next [3]uint64) {
	for len(words) < n {
		b := philox([4]uint32{uint32(s[1]), uint32(s[1] >> 32), uint32(s[2]), uint32(s[2] >> 32)}, [2]uint32{uint32(s[0]), uint32(s[0] >> 32)})
		words = append(words, b[:]...)
		if s[1]++; s[1] == 0 {
			s[2]++
		}
	}
	return words[:n], s
}

// bytesOf lists the bytes of n elements of a type: each takes the low bits of one word, or two words, low half first.
func bytesOf(t dtypes.DType, s [3]uint64, n int) (out []byte, next [3]uint64) {
	size := int(t.Size())
	words, next := wordsOf(s, n*max(1, size/4))
	for _, w := range words {
		out = append(out, binary.LittleEndian.AppendUint32(nil, w)[:min(size, 4)]...)
	}
	return out, next
}

// TestRandomBits compares random bits, and the state after them, with a loop over the definition, for every type.
func TestRandomBits(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	b := open(t, "simd")
	for _, s := range []shapes.Shape{shapes.Make(dtypes.Uint32, 7), shapes.Make(dtypes.Uint64, 1000, 33), shapes.Make(dtypes.Uint64, 3),
		shapes.Make(dtypes.Uint8, 13), shapes.Make(dtypes.Int16, 5, 5), shapes.Make(dtypes.Uint32, 100001), shapes.Make(dtypes.Int32),
		shapes.Make(dtypes.Uint16, 70003), shapes.Make(dtypes.Int64, 0), shapes.Make(dtypes.Int8, 1)} {
		for _, state := range [][3]uint64{{12345, 678, 9}, {1 << 63, ^uint64(0) - 1, 7}, {0, ^uint64(0), ^uint64(0)}} {
			first, next := bytesOf(s.DType, state, s.Size())
			second, last := bytesOf(s.DType, next, s.Size())
			for procs := 1; procs <= 3; procs++ {
				runtime.GOMAXPROCS(procs)
				out, err := testutil.Exec(b, []any{state[:]}, func(f compute.Function, p []compute.Value) ([]compute.Value, error) {
					a, v, err := f.RNGBitGenerator(p[0], s)
					if err != nil {
						return nil, err
					}
					c, w, err := f.RNGBitGenerator(a, s)
					if err != nil {
						return nil, err
					}
					if v, err = f.Bitcast(v, unsignedLike(s.DType)); err != nil {
						return nil, err
					}
					if w, err = f.Bitcast(w, unsignedLike(s.DType)); err != nil {
						return nil, err
					}
					return []compute.Value{a, v, c, w}, nil
				})
				if err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(out[0].([]uint64), next[:]) || !slices.Equal(out[2].([]uint64), last[:]) {
					t.Errorf("%s of %x: states %x and %x, want %x and %x", s, state, out[0], out[2], next, last)
				}
				if !slices.Equal(flatBytes(out[1]), first) || !slices.Equal(flatBytes(out[3]), second) {
					t.Errorf("%s of %x with %d threads: the bits are wrong", s, state, procs)
				}
			}
		}
	}
}

func unsignedLike(t dtypes.DType) dtypes.DType {
	return map[uintptr]dtypes.DType{1: dtypes.Uint8, 2: dtypes.Uint16, 4: dtypes.Uint32, 8: dtypes.Uint64}[uintptr(t.Size())]
}

// flatBytes lists the bytes of nested slices of unsigned integers.
func flatBytes(v any) (out []byte) {
	x := reflect.ValueOf(v)
	if x.Kind() == reflect.Slice {
		for i := range x.Len() {
			out = append(out, flatBytes(x.Index(i).Interface())...)
		}
		return out
	}
	return binary.LittleEndian.AppendUint64(nil, x.Uint())[:x.Type().Size()]
}

// TestRandomBitsFrozen keeps the first words of a state: a change here changes every experiment.
func TestRandomBitsFrozen(t *testing.T) {
	want := []uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8} // Random123's known answer for zeros
	got, err := testutil.Exec1(open(t, "simd"), []any{[]uint64{0, 0, 0}}, func(f compute.Function, p []compute.Value) (compute.Value, error) {
		_, v, err := f.RNGBitGenerator(p[0], shapes.Make(dtypes.Uint32, 4))
		return v, err
	})
	if err != nil || !slices.Equal(got.([]uint32), want) {
		t.Errorf("%x (%v), want %x", got, err, want)
	}
}
