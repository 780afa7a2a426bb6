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

// frequencies are sampled pairs, by a hash of their bytes: which ones every other batch has, with their log p(x,z), and
// those of the batches between.
type frequencies struct {
	seed  maphash.Seed
	known map[uint64]float64
	later []uint64
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
		if batch%2 == 0 {
			f.known[pair] = logP[i]
		} else {
			f.later = append(f.later, pair)
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

// frequency compares the probability, by LogJoint, of all pairs that one half of the samples has with how often the other
// half has one of them, which is binomial. That needs pairs which can be counted.
func (c *Checker) frequency(f frequencies) {
	if f.parts {
		c.open(Frequency, "observations are not whole numbers")
		return
	}
	again, total, p := 0, len(f.later), 0.0
	for _, pair := range f.later {
		if _, ok := f.known[pair]; ok {
			again++
		}
	}
	for _, logP := range f.known {
		p += math.Exp(logP)
	}
	const rounding = 1e-4 // of sums in float32
	if p > 1+rounding {
		c.Broke(Frequency, "of %d pairs the probabilities sum to %.4g", len(f.known), p)
		return
	}
	expected := p * float64(total)
	if again < rarely && expected < rarely {
		c.open(Frequency, "%d of %d pairs occur again", again, total)
		return
	}
	few, many := atMost(again, total, p*(1-rounding)), atLeast(again, total, min(p*(1+rounding), 1))
	value := 2 * min(few, many)
	c.tested(Frequency, value, "%d of %d are among %d others, %.1f by LogJoint, p = %.2g", again, total, len(f.known),
		expected, min(value, 1))
	if value < c.level() {
		c.Broke(Frequency, "%d different pairs have together probability %.4g, and %d of %d later ones are among them "+
			"(p = %.2g)", len(f.known), p, again, total, value)
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
