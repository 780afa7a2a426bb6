package modellaws

import (
	"hash/maphash"
	"math"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/mathext"

	bytes "github.com/gfnem/gfnem/internal/rows"
)

// rarely is the number of pairs that must occur again for their frequency to be compared.
const rarely = 20

// frequencies are sampled pairs, by a hash of their bytes: which ones the first half of all batches has, with their
// log p(x,z), and how many of the second half are among them.
type frequencies struct {
	seed  maphash.Seed
	known map[uint64]float64
	again int
	parts bool // some observation is no whole number, so that LogJoint is a density
}

// add takes the next batch.
func (f *frequencies) add(batch uint64, x, z []*tensors.Tensor, logP []float64) {
	if batch == 0 {
		f.seed, f.known = maphash.MakeSeed(), map[uint64]float64{}
	}
	if f.parts = f.parts || !whole(x); f.parts {
		return
	}
	for i, row := range bytes.Of(append(append([]*tensors.Tensor(nil), x...), z...)) {
		pair := maphash.String(f.seed, row)
		if batch < batches/2 {
			f.known[pair] = logP[i]
		} else if _, ok := f.known[pair]; ok {
			f.again++
		}
	}
}

// whole says whether all numbers are whole.
func whole(x []*tensors.Tensor) bool {
	for _, t := range x {
		switch t.DType() {
		case dtypes.Float32:
			for _, v := range tensors.MustCopyFlatData[float32](t) {
				if v != float32(math.Trunc(float64(v))) {
					return false
				}
			}
		case dtypes.Float64:
			for _, v := range numbers(t) {
				if v != math.Trunc(v) {
					return false
				}
			}
		}
	}
	return true
}

// frequency compares the probability, by LogJoint, of all pairs that the first half of the samples has with how often
// the second half has one of them, which is binomial. That needs pairs which can be counted.
func (c *Checker) frequency(f frequencies) {
	const total = batches / 2 * rows
	if f.parts {
		c.note("frequencies of pairs: not tested, since observations are not whole numbers")
		return
	}
	p := 0.0
	for _, logP := range f.known {
		p += math.Exp(logP)
	}
	const rounding = 1e-4 // of sums in float32
	if p > 1+rounding {
		c.Broke(Frequency, "of %d pairs the probabilities sum to %.4g", len(f.known), p)
		return
	}
	if f.again < rarely && p*total < rarely {
		c.note("frequencies of pairs: not tested, since %d of %d pairs occur again", f.again, total)
		return
	}
	few, many := atMost(f.again, total, p*(1-rounding)), atLeast(f.again, total, min(p*(1+rounding), 1))
	value := 2 * min(few, many)
	c.note("frequencies of pairs: %d of %d among %d, %.1f by LogJoint, p = %.2g", f.again, total, len(f.known), p*total,
		min(value, 1))
	if value < c.level() {
		c.Broke(Frequency, "%d different pairs have together probability %.4g, and %d of %d later ones are among them "+
			"(p = %.2g)", len(f.known), p, f.again, total, value)
	}
}

// atMost is P(X <= k) and atLeast P(X >= k) of a binomial X.
func atMost(k, n int, p float64) float64 {
	if k >= n {
		return 1
	}
	return mathext.RegIncBeta(float64(n-k), float64(k+1), 1-p)
}

func atLeast(k, n int, p float64) float64 {
	if k <= 0 {
		return 1
	}
	return mathext.RegIncBeta(float64(k), float64(n-k+1), p)
}
