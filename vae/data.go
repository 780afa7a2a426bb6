package vae

import (
	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/internal/program"
	"github.com/gfnem/gfnem/mnist"
)

// batchOf returns images as networks take them, [len(indices),H,W,1].
func batchOf(m mnist.Images, indices []int) *tensors.Tensor {
	t := tensors.FromShape(shapes.Make(dtypes.Float32, len(indices), m.Height, m.Width, 1))
	tensors.MustMutableFlatData(t, func(flat []float32) { m.Fill(flat, indices) })
	return t
}

// tableOf returns all images in the memory of a backend, [N,H,W] bytes.
func tableOf(b compute.Backend, m mnist.Images) (*tensors.Tensor, error) {
	t := tensors.FromShape(shapes.Make(dtypes.Uint8, m.Len(), m.Height, m.Width))
	tensors.MustMutableFlatData(t, func(flat []uint8) {
		row := make([]float32, m.Pixels())
		for i := range m.Len() {
			m.Fill(row, []int{i})
			for j, v := range row {
				flat[i*len(row)+j] = uint8(v)
			}
		}
	})
	return t, t.ToDevice(b, 0)
}

// shuffled supplies minibatches of images, each epoch in a new order, as a table of all of them and the numbers of some: what is
// sent for an update is a few bytes. Programs turn that into images by pick. It also returns these numbers.
func shuffled(seed uint64, size int, table *tensors.Tensor) (data em.Data, batch func(step uint64) []int, err error) {
	if batch, err = em.Batches(seed, size, table.Shape().Dim(0)); err != nil {
		return nil, nil, err
	}
	return func(step uint64) []*tensors.Tensor {
		rows := make([]int32, size)
		for i, k := range batch(step) {
			rows[i] = int32(k)
		}
		return []*tensors.Tensor{table, tensors.FromFlatDataAndDimensions(rows, size)}
	}, batch, nil
}

// pick takes the images of a minibatch from the table, as networks take them.
func pick(data []*Node) gfn.Batch {
	d := program.Of[struct{ Table, Rows *Node }](data)
	x := ConvertDType(Gather(d.Table, InsertAxes(d.Rows, 1)), dtypes.Float32)
	return gfn.Batch{InsertAxes(x, -1)}
}

// chunks calls do with the numbers from 0 to n-1, so many at a time. The last ones are followed by repetitions of the last
// number, since programs are compiled for one size; fresh is how many are none.
func chunks(n, size int, do func(indices []int, fresh int) error) error {
	for first := 0; first < n; first += size {
		indices := make([]int, size)
		for i := range indices {
			indices[i] = min(first+i, n-1)
		}
		if err := do(indices, min(size, n-first)); err != nil {
			return err
		}
	}
	return nil
}

// each calls a program with n rows, so many at a time; use sees what it returns, and the numbers of the fresh rows.
func each[I, O any](
	n, size int, p *program.Program[I, O], in func(indices []int) I, use func(out O, fresh []int),
) error {
	return chunks(n, size, func(indices []int, fresh int) error {
		out, err := p.Call(in(indices))
		if err == nil {
			use(out, indices[:fresh])
		}
		return err
	})
}

// firstOf are the first n images, or all if n is 0 or more than there are.
func firstOf(m mnist.Images, n int) mnist.Images {
	if n == 0 || n > m.Len() {
		return m
	}
	return m.Slice(0, n)
}

// validation are the images to train on, and others to choose settings by: those that the data have for it or, if there
// are none, the last sixth of its training images.
func validation(set *mnist.Set) (train, valid mnist.Images) {
	if set.Valid.Len() > 0 {
		return set.Train, set.Valid
	}
	all := set.Train.Len()
	return set.Train.Slice(0, all-all/6), set.Train.Slice(all-all/6, all)
}
