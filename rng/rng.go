// Package rng names random numbers instead of sharing a generator.
//
// Every draw in gfnem comes from a key, a pure function of a seed, the name of a stream and the step at which the
// numbers are used. Adding an evaluation or a log line therefore never moves training, and resuming a run needs
// its counters alone.
//
//	key := rng.Key(seed, "wake", step)        // feeds graph.RandomUniform and friends
//	r := rng.New(seed, "data")                // a generator on the host
package rng

import (
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"

	"github.com/gomlx/gomlx/core/tensors"
)

// digest hashes the name of a stream; the lengths keep ("a","bc") and ("ab","c") apart.
func digest(seed uint64, stream string, step []uint64) [32]byte {
	buf := binary.LittleEndian.AppendUint64(nil, seed)
	buf = binary.LittleEndian.AppendUint64(buf, uint64(len(stream)))
	buf = append(buf, stream...)
	for _, s := range step {
		buf = binary.LittleEndian.AppendUint64(buf, s)
	}
	return sha256.Sum256(buf)
}

// Key returns the state from which a graph draws its random numbers (graph.RNGStateShape) at one step of a stream.
func Key(seed uint64, stream string, step ...uint64) *tensors.Tensor {
	d := digest(seed, stream, step)
	words := make([]uint64, 3)
	for i := range words {
		words[i] = binary.LittleEndian.Uint64(d[8*i:])
	}
	return tensors.FromFlatDataAndDimensions(words, 3)
}

// New returns a generator for host code, at one step of a stream.
func New(seed uint64, stream string, step ...uint64) *rand.Rand {
	return rand.New(rand.NewChaCha8(digest(seed, stream, step)))
}
