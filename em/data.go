package em

import (
	"fmt"

	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/internal/rows"
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
	all := 0
	for i, t := range x {
		if n := t.Shape().Dim(0); i == 0 {
			all = n
		} else if n != all {
			return nil, fmt.Errorf("tensor %d has %d rows, the first one %d", i, n, all)
		}
	}
	batch, err := Batches(seed, size, all)
	if err != nil {
		return nil, err
	}
	return Rows(batch, x...), nil
}

// Rows returns the rows of x whose numbers batch says, as Batches does; Memory.Rows takes the same function.
func Rows(batch func(step uint64) []int, x ...*tensors.Tensor) Data {
	return func(step uint64) []*tensors.Tensor { return rows.Take(x, batch(step)) }
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
