package em

import (
	"slices"

	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/gfn"
)

// factorised fits q(z) = prod_t q_t(z_t) to each row of logP by coordinate ascent from the uniform distribution, and
// returns q(z), [B,Z], and its entropy, [B].
//
// Choice t of latent number k is digit t of k, the first one changing fastest (see combinations). So a sweep is two passes
// over shrinking tables: one averages choices out from the last on, with the factors of the sweep before, and one brings
// them back from the first on, with new factors. A choice that is closed leaves logP as it is, and its factor uniform.
func (c Classical) factorised(logP *Node) (q, entropy *Node) {
	g, dtype, b := logP.Graph(), logP.DType(), logP.Shape().Dim(0)
	sizes := c.Env.(gfn.Product).Choices()
	factors := make([]*Node, len(sizes)) // [B,size]
	for t, size := range sizes {
		factors[t] = AddScalar(Zeros(g, shapes.Make(dtype, b, size)), 1/float64(size))
	}
	sweeps := c.Sweeps
	if sweeps == 0 {
		sweeps = 10
	}
	for range sweeps {
		rest := make([]*Node, len(sizes)) // [B,size,low]: logP by choices 0..t, averaged over the later ones
		mean := logP
		for t, size := range slices.Backward(sizes) {
			rest[t] = Reshape(mean, b, size, -1)
			mean = ReduceSum(Mul(rest[t], widen(factors[t], 2, rest[t])), 1)
		}
		q = Ones(g, shapes.Make(dtype, b, 1)) // [B,low]: the product of the new factors of earlier choices
		for t := range sizes {
			factors[t] = Softmax(ReduceSum(Mul(rest[t], widen(q, 1, rest[t])), 2))
			q = Reshape(Mul(widen(factors[t], 2, rest[t]), widen(q, 1, rest[t])), b, -1)
		}
	}
	entropy = Zeros(g, shapes.Make(dtype, b))
	for _, f := range factors {
		entropy = Sub(entropy, ReduceSum(Mul(f, Log(MaxScalar(f, 1e-30))), 1))
	}
	return q, entropy
}

// widen inserts an axis into x and repeats it along that axis to the shape of like.
func widen(x *Node, axis int, like *Node) *Node {
	return BroadcastToShape(InsertAxes(x, axis), like.Shape())
}

// withDims is the shape of other dimensions.
func withDims(like *Node, dims []int) shapes.Shape { return shapes.Make(like.DType(), dims...) }

// combinations lists every row of values below sizes, [Z,T], the first one changing fastest.
func combinations(sizes []int) *tensors.Tensor {
	count := product(sizes)
	flat := make([]int32, 0, count*len(sizes))
	for k := range count {
		rest := k
		for _, s := range sizes {
			flat = append(flat, int32(rest%s))
			rest /= s
		}
	}
	return tensors.FromFlatDataAndDimensions(flat, count, len(sizes))
}

// product of sizes; what is too much for any list stays so.
func product(sizes []int) int {
	count := 1
	for _, s := range sizes {
		if count *= s; count > 1<<30 {
			return count
		}
	}
	return count
}
