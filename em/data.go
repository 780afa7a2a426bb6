package em

import (
	"fmt"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/rng"
)

// Data supplies the observations of each update as a pure function of its number, so that resuming needs no cursor. The
// tensors of one batch share their first axis.
type Data func(step uint64) []*tensors.Tensor

// Full returns all observations every time.
func Full(x ...*tensors.Tensor) Data { return func(uint64) []*tensors.Tensor { return x } }

// Shuffled returns minibatches of the given size: each epoch is a fresh permutation of the rows, whose incomplete last
// batch is left out.
func Shuffled(seed uint64, size int, x ...*tensors.Tensor) (Data, error) {
	rows := 0
	for i, t := range x {
		if i == 0 {
			rows = t.Shape().Dim(0)
		} else if n := t.Shape().Dim(0); n != rows {
			return nil, fmt.Errorf("tensor %d has %d rows, the first one %d", i, n, rows)
		}
	}
	batch, err := Batches(seed, size, rows)
	if err != nil {
		return nil, err
	}
	return func(step uint64) []*tensors.Tensor {
		out := make([]*tensors.Tensor, len(x))
		for i, t := range x {
			out[i] = takeRows(t, batch(step))
		}
		return out
	}, nil
}

// Batches returns the numbers of the rows of each minibatch, as Shuffled takes them. They must not be changed.
func Batches(seed uint64, size, rows int) (func(step uint64) []int, error) {
	if size < 1 || size > rows {
		return nil, fmt.Errorf("a batch of %d rows cannot be taken from %d", size, rows)
	}
	perEpoch := uint64(rows / size)
	epoch, order := ^uint64(0), []int(nil)
	return func(step uint64) []int {
		if e := step / perEpoch; e != epoch {
			epoch, order = e, rng.New(seed, "shuffle", e).Perm(rows)
		}
		at := int(step%perEpoch) * size
		return order[at : at+size]
	}, nil
}

// takeRows copies some rows of a tensor.
func takeRows(t *tensors.Tensor, rows []int) *tensors.Tensor {
	dims := append([]int{len(rows)}, t.Shape().Dimensions[1:]...)
	out := tensors.FromShape(shapes.Make(t.DType(), dims...))
	width := int(t.ByteSize()) / t.Shape().Dim(0)
	err := t.ConstBytes(func(from []byte) {
		err := out.MutableBytes(func(to []byte) {
			for i, r := range rows {
				copy(to[i*width:(i+1)*width], from[r*width:])
			}
		})
		if err != nil {
			panic(err)
		}
	})
	if err != nil {
		panic(err)
	}
	return out
}
