package engine

import (
	"cmp"
	"fmt"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/shapes"

	"github.com/gfnem/gfnem/internal/memory"
)

// maxElements is the most elements of a tensor: its size in bytes, and places in it, are far from overflowing.
const maxElements = 1 << 44

// inferred returns the shape that a rule of GoMLX gives to a result. Those rules panic on some arguments; that, and a
// result that no memory holds, are errors here.
func inferred(op compute.OpType, rule func() (shapes.Shape, error)) (shape shapes.Shape, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%s: the arguments do not go together: %v", op, p)
		}
	}()
	if shape, err = rule(); err != nil {
		return shapes.Invalid(), err
	}
	return shape, checkSize(op, shape)
}

// checkSize reports dimensions that are no sizes of a tensor.
func checkSize(op compute.OpType, shape shapes.Shape) error {
	n := 1
	for _, d := range shape.Dimensions {
		if d < 0 {
			return fmt.Errorf("%s: shape %s has a negative dimension", op, shape)
		}
		if d > maxElements/n {
			return tooMany(op, shape)
		}
		n *= max(d, 1)
	}
	return nil
}

// tooMany is the error about dimensions whose elements cannot be counted.
func tooMany(op compute.OpType, shape shapes.Shape) error {
	bytes := float64(shape.DType.Size())
	for _, d := range shape.Dimensions {
		bytes *= float64(d)
	}
	return cmp.Or(memory.Fits(fmt.Sprintf("a tensor %s", shape), bytes), fmt.Errorf("%s: shape %s has too many elements", op, shape))
}
