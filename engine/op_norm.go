package engine

import (
	"fmt"

	"github.com/gomlx/compute"
)

// Batch normalisation, built from other operations: each feature, a place along one axis, is moved and scaled to mean 0
// and variance 1 over all the other axes.

// norm is what the three operations share.
type norm struct {
	chain
	what    compute.OpType
	x       *node
	axis    int
	others  []int // all other axes
	count   int   // elements of a feature
	epsilon *node
}

func (f *Function) newNorm(op compute.OpType, epsilon float32, axis int, x compute.Value, features ...compute.Value) (*norm, []*node, error) {
	in, err := f.floats(op, append([]compute.Value{x}, features...)...)
	if err != nil {
		return nil, nil, err
	}
	s := in[0].shape
	if axis < 0 {
		axis += s.Rank()
	}
	if axis < 0 || axis >= s.Rank() || s.Size() == 0 {
		return nil, nil, fmt.Errorf("%s: axis %d of %s holds no features", op, axis, s)
	}
	c := &norm{chain: chain{Function: f}, what: op, x: in[0], axis: axis, count: s.Size() / s.Dimensions[axis]}
	c.epsilon = f.number(s.DType, float64(epsilon))
	for i := range s.Rank() {
		if i != axis {
			c.others = append(c.others, i)
		}
	}
	return c, in[1:], nil
}

// perFeature checks that operands have an element for each feature, and returns them aligned with x.
func (c *norm) perFeature(in ...*node) []*node {
	dims := make([]int, c.x.shape.Rank())
	for i := range dims {
		dims[i] = 1
	}
	dims[c.axis] = c.x.shape.Dimensions[c.axis]
	out := make([]*node, len(in))
	for i, n := range in {
		if c.err == nil && (n == nil || n.shape.Rank() != 1 || n.shape.Dimensions[0] != dims[c.axis]) {
			c.err = fmt.Errorf("operand %d is not one element for each of the %d features", i+1, dims[c.axis])
		}
		if c.err == nil {
			out[i] = c.op(c.Reshape(n, dims...))
		}
	}
	return out
}

// total sums the elements of each feature.
func (c *norm) total(x *node) *node {
	if len(c.others) == 0 {
		return x
	}
	return c.op(c.ReduceSum(x, c.others...))
}

// average is the mean of each feature.
func (c *norm) average(x *node) *node {
	return c.op(c.Mul(c.total(x), c.number(c.x.shape.DType, 1/float64(c.count))))
}

// standard returns x with mean 0 and variance 1, and the inverse of its standard deviation.
func (c *norm) standard(mean, variance *node) (x, inverse *node) {
	inverse = c.op(c.Rsqrt(c.op(c.Add(variance, c.epsilon))))
	return c.op(c.Mul(c.op(c.Sub(c.x, mean)), inverse)), inverse
}

// done is what the operations return, or the first error.
func (c *norm) done(out ...*node) ([]compute.Value, error) {
	if c.err != nil {
		return make([]compute.Value, len(out)), fmt.Errorf("%s: %w", c.what, c.err)
	}
	return values(out), nil
}

// BatchNormForInference normalises with a given mean and variance.
func (f *Function) BatchNormForInference(operand, scale, offset, mean, variance compute.Value, epsilon float32, axis int) (compute.Value, error) {
	c, in, err := f.newNorm(compute.OpTypeBatchNormForInference, epsilon, axis, operand, scale, offset, mean, variance)
	if err != nil {
		return nil, err
	}
	in = c.perFeature(in...)
	if c.err != nil {
		_, err := c.done()
		return nil, err
	}
	x, _ := c.standard(in[2], in[3])
	out, err := c.done(c.op(f.Add(c.op(f.Mul(x, in[0])), in[1])))
	return out[0], err
}

// BatchNormForTraining normalises with the mean and the variance of the operand, and returns these too.
func (f *Function) BatchNormForTraining(operand, scale, offset compute.Value, epsilon float32, axis int) (
	normalized, batchMean, batchVariance compute.Value, err error) {
	c, in, err := f.newNorm(compute.OpTypeBatchNormForTraining, epsilon, axis, operand, scale, offset)
	if err != nil {
		return nil, nil, nil, err
	}
	in = c.perFeature(in...)
	if c.err != nil {
		_, err := c.done()
		return nil, nil, nil, err
	}
	mean := c.average(c.x)
	centred := c.op(f.Sub(c.x, c.perFeature(mean)[0]))
	variance := c.average(c.op(f.Mul(centred, centred)))
	aligned := c.perFeature(mean, variance)
	x, _ := c.standard(aligned[0], aligned[1])
	out, err := c.done(c.op(f.Add(c.op(f.Mul(x, in[0])), in[1])), mean, variance)
	return out[0], out[1], out[2], err
}

// BatchNormGradient returns the derivatives by the operand, the scale and the offset of BatchNormForTraining, given that
// by its result.
func (f *Function) BatchNormGradient(operand, scale, mean, variance, gradOutput compute.Value, epsilon float32, axis int) (
	gradOperand, gradScale, gradOffset compute.Value, err error) {
	c, in, err := f.newNorm(compute.OpTypeBatchNormGradient, epsilon, axis, operand, scale, mean, variance, gradOutput)
	if err != nil {
		return nil, nil, nil, err
	}
	up := in[3]
	in = c.perFeature(in[:3]...)
	if c.err == nil && (up == nil || !up.shape.Equal(c.x.shape)) {
		c.err = fmt.Errorf("the derivative by the result does not have the shape %s of the operand", c.x.shape)
	}
	if c.err != nil {
		_, err := c.done()
		return nil, nil, nil, err
	}
	x, inverse := c.standard(in[1], in[2])
	sum, scaled := c.total(up), c.total(c.op(f.Mul(up, x)))
	part := f.number(c.x.shape.DType, 1/float64(c.count))
	means := c.perFeature(c.op(f.Mul(sum, part)), c.op(f.Mul(scaled, part)))
	inner := c.op(f.Sub(c.op(f.Sub(up, means[0])), c.op(f.Mul(x, means[1]))))
	out, err := c.done(c.op(f.Mul(inner, c.op(f.Mul(in[0], inverse)))), scaled, sum)
	return out[0], out[1], out[2], err
}
