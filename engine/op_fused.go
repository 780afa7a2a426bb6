package engine

import (
	"fmt"
	"math"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
)

// The operations that GoMLX offers to backends as one. Each is built from the engine's own operations, which are fused
// when the function is compiled, in the very order in which GoMLX builds them for gradients: what the value and its
// gradient have in common is then one node, and computed once.

// chain builds operations one after another and keeps the first error.
type chain struct {
	*Function
	err error
}

func (c *chain) op(v compute.Value, err error) *node {
	if c.err == nil {
		c.err = err
	}
	n, _ := v.(*node)
	return n
}

// result is what a chain returns.
func (c *chain) result(op compute.OpType, n *node) (compute.Value, error) {
	if c.err != nil {
		return nil, fmt.Errorf("%s: %w", op, c.err)
	}
	return n, nil
}

// number is a scalar constant of a type.
func (f *Function) number(t dtypes.DType, v float64) *node {
	p := alloc(8)
	if k := kernelOf(compute.OpTypeConvertDType, dtypes.Float64, t); k != nil {
		k(p, ptr(&v), nil, nil, 1)
	}
	return f.constant(shapes.Make(t), p)
}

// kept reduces axes to size 1.
func (c *chain) kept(reduce func(compute.Value, ...int) (compute.Value, error), x *node, axes []int) *node {
	dims := slices.Clone(x.shape.Dimensions)
	for _, a := range axes {
		dims[a] = 1
	}
	return c.op(c.Reshape(c.op(reduce(x, axes...)), dims...))
}

// mean over axes, which stay with size 1.
func (c *chain) mean(x *node, axes []int) *node {
	count := 1
	for _, a := range axes {
		count *= x.shape.Dimensions[a]
	}
	return c.kept(func(x compute.Value, axes ...int) (compute.Value, error) {
		sum := c.op(c.ReduceSum(x, axes...))
		if sum == nil {
			return nil, c.err
		}
		return c.Mul(sum, c.number(sum.shape.DType, 1/float64(count)))
	}, x, axes)
}

// raised inserts axes of size 1 before those of x.
func (c *chain) raised(x *node, rank int) *node {
	if x.shape.Rank() >= rank {
		return x
	}
	return c.op(c.Reshape(x, append(slices.Repeat([]int{1}, rank-x.shape.Rank()), x.shape.Dimensions...)...))
}

// floats checks that an operation has floats as operands, and brings them into f. A nil operand stays nil.
func (f *Function) floats(op compute.OpType, in ...compute.Value) ([]*node, error) {
	out := make([]*node, len(in))
	for i, v := range in {
		if v == nil {
			continue
		}
		n, err := f.operands(op, v)
		if err != nil {
			return nil, err
		}
		if !n[0].shape.DType.IsFloat() || out[0] != nil && n[0].shape.DType != out[0].shape.DType {
			return nil, fmt.Errorf("%s: operand %d has shape %s, its elements must be floats, of one type", op, i, n[0].shape)
		}
		out[i] = n[0]
	}
	if out[0] == nil {
		return nil, fmt.Errorf("%s: there is no operand", op)
	}
	return out, nil
}

// FusedSoftmax is exp(x) divided by its sum along an axis.
func (f *Function) FusedSoftmax(x compute.Value, axis int) (compute.Value, error) {
	op := compute.OpTypeFusedSoftmax
	in, err := f.floats(op, x)
	if err != nil {
		return nil, err
	}
	axes, err := axesOf(op, in[0].shape, []int{axis})
	if err != nil {
		return nil, err
	}
	c := &chain{Function: f}
	e := c.op(f.Exp(c.op(f.Sub(in[0], c.kept(f.ReduceMax, in[0], axes)))))
	if c.err != nil {
		return c.result(op, nil)
	}
	return c.result(op, c.op(f.Div(e, c.kept(f.ReduceSum, e, axes))))
}

// FusedGelu is x times the normal distribution function of x, exact or by a tanh.
func (f *Function) FusedGelu(x compute.Value, exact bool) (compute.Value, error) {
	op := compute.OpTypeFusedGelu
	in, err := f.floats(op, x)
	if err != nil {
		return nil, err
	}
	c := &chain{Function: f}
	return c.result(op, c.gelu(in[0], exact))
}

func (c *chain) gelu(x *node, exact bool) *node {
	k := func(v float64) *node { return c.number(x.shape.DType, v) }
	var cdf *node
	if exact {
		cdf = c.op(c.Add(c.op(c.Erf(c.op(c.Mul(x, k(1/math.Sqrt(2)))))), k(1)))
	} else {
		cube := c.op(c.Mul(c.op(c.Mul(x, x)), x))
		z := c.op(c.Add(x, c.op(c.Mul(cube, k(0.044715)))))
		cdf = c.op(c.Add(k(1), c.op(c.Tanh(c.op(c.Mul(z, k(math.Sqrt(2/math.Pi))))))))
	}
	return c.op(c.Mul(x, c.op(c.Mul(cdf, k(0.5)))))
}

// FusedLayerNorm moves and scales x to mean 0 and variance 1 along axes, then by gamma and beta, which may be nil.
// Negative axes count from the last.
func (f *Function) FusedLayerNorm(x compute.Value, axes []int, epsilon float64, gamma, beta compute.Value) (compute.Value, error) {
	op := compute.OpTypeFusedLayerNorm
	in, err := f.floats(op, x, gamma, beta)
	if err != nil {
		return nil, err
	}
	axes = slices.Clone(axes)
	for i, a := range axes {
		if a < 0 {
			axes[i] = a + in[0].shape.Rank()
		}
	}
	if axes, err = axesOf(op, in[0].shape, axes); err != nil {
		return nil, err
	}
	if len(axes) == 0 || in[0].shape.Size() == 0 {
		return nil, fmt.Errorf("%s of %s over axes %v: %w", op, in[0].shape, axes, compute.ErrNotImplemented)
	}
	c := &chain{Function: f}
	rank := in[0].shape.Rank()
	centred := c.op(f.Sub(in[0], c.mean(in[0], axes)))
	variance := c.mean(c.op(f.Mul(centred, centred)), axes)
	y := c.op(f.Div(centred, c.op(f.Sqrt(c.op(f.Add(variance, f.number(in[0].shape.DType, epsilon)))))))
	if in[1] != nil {
		y = c.op(f.Mul(y, c.raised(in[1], rank)))
	}
	if in[2] != nil {
		y = c.op(f.Add(y, c.raised(in[2], rank)))
	}
	return c.result(op, y)
}

// FusedDense is a product with weights, a bias, which may be nil, and an activation.
//
// Gelu is left to GoMLX, which means two functions by one name here: Gelu and its approximation.
func (f *Function) FusedDense(x, weight, bias compute.Value, options compute.DenseConfig) (compute.Value, error) {
	op := compute.OpTypeFusedDense
	in, err := f.floats(op, x, weight, bias)
	if err != nil {
		return nil, err
	}
	activate := map[compute.ActivationType]func(*chain, *node) *node{
		compute.ActivationNone: func(_ *chain, x *node) *node { return x },
		compute.ActivationRelu: (*chain).relu, compute.ActivationSilu: (*chain).silu,
		compute.ActivationHardSwish: (*chain).hardSwish,
		compute.ActivationTanh:      func(c *chain, x *node) *node { return c.op(c.Tanh(x)) },
	}[options.Activation]
	if activate == nil {
		return nil, fmt.Errorf("%s with activation %s: %w", op, options.Activation, compute.ErrNotImplemented)
	}
	if in[1] == nil || in[0].shape.Rank() == 0 || in[1].shape.Rank() == 0 {
		return nil, fmt.Errorf("%s: the operands need at least one axis each", op)
	}
	c := &chain{Function: f}
	y := c.dense(in[0], in[1], options.WeightLayout == compute.DenseLayoutOutputsInput)
	if y != nil && in[2] != nil {
		y = c.op(f.Add(y, c.raised(in[2], y.shape.Rank())))
	}
	if c.err == nil {
		y = activate(c, y)
	}
	return c.result(op, y)
}

// dense contracts the last axis of x with the first one of the weights, or their last one.
func (c *chain) dense(x, w *node, last bool) *node {
	rows, cols := x.shape.Dimensions[:x.shape.Rank()-1], w.shape.Dimensions[1:]
	k, from := w.shape.Dimensions[0], 0
	if last {
		cols, k, from = w.shape.Dimensions[:len(cols)], w.shape.Dimensions[len(cols)], 1
	}
	x2, w2 := x, w
	if len(rows) > 1 {
		x2 = c.op(c.Reshape(x, product(rows), x.shape.Dimensions[len(rows)]))
	}
	if len(cols) > 1 && last {
		w2 = c.op(c.Reshape(w, product(cols), k))
	} else if len(cols) > 1 {
		w2 = c.op(c.Reshape(w, k, product(cols)))
	}
	if c.err != nil {
		return nil
	}
	y := c.op(c.DotGeneral(x2, []int{x2.shape.Rank() - 1}, []int{}, w2, []int{min(from, w2.shape.Rank()-1)}, []int{}, compute.DotGeneralConfig{}))
	if len(rows) <= 1 && len(cols) <= 1 {
		return y
	}
	return c.op(c.Reshape(y, append(slices.Clone(rows), cols...)...))
}

func (c *chain) relu(x *node) *node {
	zeros := c.op(c.BroadcastInDim(c.number(x.shape.DType, 0), x.shape, []int{}))
	return c.op(c.Max(x, zeros))
}

func (c *chain) silu(x *node) *node { return c.op(c.Mul(x, c.op(c.Logistic(x)))) }

func (c *chain) hardSwish(x *node) *node {
	k := func(v float64) *node { return c.number(x.shape.DType, v) }
	y := c.op(c.Add(c.op(c.Mul(x, k(1.0/6))), k(0.5)))
	return c.op(c.Mul(x, c.op(c.Min(c.op(c.Max(y, k(0))), k(1)))))
}

// FusedAttentionQKVProjection is one product whose columns are queries, keys and values, each with a bias that may be
// nil.
func (f *Function) FusedAttentionQKVProjection(x, weights, biasQ, biasK, biasV compute.Value, queryDim, keyValueDim int) (
	query, key, value compute.Value, err error) {
	op := compute.OpTypeFusedAttentionQKVProjection
	in, err := f.floats(op, x, weights, biasQ, biasK, biasV)
	if err != nil {
		return nil, nil, nil, err
	}
	if in[1] == nil || in[0].shape.Rank() == 0 || in[1].shape.Rank() != 2 || queryDim < 0 || keyValueDim < 0 ||
		in[1].shape.Dimensions[1] != queryDim+2*keyValueDim {
		return nil, nil, nil, fmt.Errorf("%s: %d query and %d key columns do not make up the weights", op, queryDim, keyValueDim)
	}
	c := &chain{Function: f}
	rows := in[0].shape.Dimensions[:in[0].shape.Rank()-1]
	flat := in[0]
	if len(rows) > 1 {
		flat = c.op(f.Reshape(flat, product(rows), in[0].shape.Dimensions[len(rows)]))
	}
	all := c.dense(flat, in[1], false)
	var out [3]compute.Value
	at := 0
	for i, n := range []int{queryDim, keyValueDim, keyValueDim} {
		if c.err != nil {
			break
		}
		axes := all.shape.Rank()
		lo, hi := make([]int, axes), slices.Clone(all.shape.Dimensions)
		lo[axes-1], hi[axes-1] = at, at+n
		y := c.op(f.Slice(all, lo, hi, nil))
		if len(rows) > 1 {
			y = c.op(f.Reshape(y, append(slices.Clone(rows), n)...))
		}
		if b := in[2+i]; b != nil && c.err == nil {
			y = c.op(f.Add(y, c.raised(b, y.shape.Rank())))
		}
		out[i], at = y, at+n
	}
	if c.err != nil {
		return nil, nil, nil, fmt.Errorf("%s: %w", op, c.err)
	}
	return out[0], out[1], out[2], nil
}
