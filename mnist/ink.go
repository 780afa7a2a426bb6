package mnist

import (
	"hash/fnv"
	"math/rand/v2"
)

// inking says which grays become 1: those brighter than half of white or, with random numbers, each with the probability
// that its gray value says.
type inking struct{ random *rand.Rand }

// pixel is that of a gray value.
func (k inking) pixel(gray, white uint32) byte {
	if k.random == nil && 2*uint64(gray) > uint64(white) || k.random != nil && k.random.Uint32N(white) < gray {
		return 1
	}
	return 0
}

// ink is that for a file, of a name that is the same wherever the data lie.
func (o Options) ink(file string) inking {
	if !o.Stochastic {
		return inking{}
	}
	h := fnv.New64a()
	h.Write([]byte(file)) // never fails
	return inking{rand.New(rand.NewPCG(o.Seed, h.Sum64()))}
}
