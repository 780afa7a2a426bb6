package grammar

import (
	"slices"

	. "github.com/gomlx/gomlx/core/graph"
)

// never is the logarithm of a weight that is zero for all purposes. It is finite, so that differences of two exist.
const never = -1e30

// semiring is what "add up over derivations" means: sums of weights for likelihoods and samples, maxima of their
// logarithms for best derivations. All of a semiring's values are kept relative to a shift, near its unit.
type semiring struct {
	lift, lower func(x *Node) *Node // from a logarithm, and back
	times       func(x, y *Node) *Node
	// dot adds up products over the contracted axes, for all pairs of the other axes of x and y; axes as in DotGeneral.
	dot func(x *Node, xContract, xBatch []int, y *Node, yContract, yBatch []int) *Node
	sum func(x *Node, axes ...int) *Node
}

var (
	sumProduct = semiring{lift: Exp, lower: Log, times: Mul, dot: DotGeneral, sum: ReduceSum}
	maxPlus    = semiring{lift: Identity, lower: Identity, times: Add, dot: maxPlusDot, sum: ReduceMax}
)

// maxPlusDot is DotGeneral with + for x and max for +.
func maxPlusDot(x *Node, xContract, xBatch []int, y *Node, yContract, yBatch []int) *Node {
	x, xFree := alignAxes(x, xContract, xBatch)
	y, yFree := alignAxes(y, yContract, yBatch)
	batch := x.Shape().Dimensions[:len(xBatch)]
	at := len(xBatch)
	sums := Add(InsertAxes(x, at+1), InsertAxes(y, at)) // [batch,x,y,contracted]
	return Reshape(ReduceMax(sums, -1), slices.Concat(batch, xFree, yFree)...)
}

// alignAxes brings the axes of x into the order batch, free, contracted, with one axis each of the last two. It also
// returns the dimensions of the free axes.
func alignAxes(x *Node, contract, batch []int) (aligned *Node, free []int) {
	dims := x.Shape().Dimensions
	norm := func(axes []int) []int {
		out := slices.Clone(axes)
		for i, a := range out {
			if a < 0 {
				out[i] = a + len(dims)
			}
		}
		return out
	}
	contract, batch = norm(contract), norm(batch)
	order := slices.Clone(batch)
	var shape []int
	for _, a := range batch {
		shape = append(shape, dims[a])
	}
	size := 1
	for a, d := range dims {
		if !slices.Contains(contract, a) && !slices.Contains(batch, a) {
			order, free = append(order, a), append(free, d)
			size *= d
		}
	}
	inner := 1
	for _, a := range contract {
		order = append(order, a)
		inner *= dims[a]
	}
	return Reshape(TransposeAllAxes(x, order...), append(shape, size, inner)...), free
}

// shifted splits logarithms [...,K] into a shift [...], which is their maximum, and values of the semiring [...,K].
func (r semiring) shifted(x *Node) (values, shift *Node) {
	shift = MaxScalar(ReduceMax(x, -1), never)
	return r.lift(Sub(x, InsertAxes(shift, -1))), shift
}

// logSum adds up over the last axis of logarithms.
func (r semiring) logSum(x *Node) *Node {
	v, shift := r.shifted(x)
	return Add(r.lower(r.sum(v, -1)), shift)
}
