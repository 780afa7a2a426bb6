package em

import (
	"fmt"
	"slices"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/internal/blame"
	"github.com/gfnem/gfnem/internal/rows"
)

// defaultRows are the trajectories that a program makes at once.
const defaultRows = 1024

// batch is observations that a program takes at once. The last one is repeated up to a round number, since programs are
// compiled for each size.
type batch struct {
	number uint64
	rows   []int // where the observations come from
	x      []*tensors.Tensor
	draws  int // for each of them that a program makes at once
}

// size is the number of rows that programs see.
func (b batch) size() int { return b.x[0].Shape().Dim(0) }

// padded are rows, with the repetitions.
func (b batch) padded() []int { return padded(b.rows, b.size()) }

func padded(rows []int, size int) []int {
	return append(slices.Clone(rows), slices.Repeat(rows[len(rows)-1:], size-len(rows))...)
}

// row is the number of an observation that a program counts as i.
func (b batch) row(i int) int { return b.rows[min(i, len(b.rows)-1)] }

// batches is how all observations of a call are taken apart.
type batches struct {
	*Posterior
	observations int
	x            []*tensors.Tensor
	size, draws  int // of a batch
}

// batches takes what Data supplies apart, of which each observation gets n draws.
func (p *Posterior) batches(n int, data []*tensors.Tensor) (batches, error) {
	if n < 1 {
		return batches{}, blame.Caller(fmt.Errorf("%d draws of an observation are none", n))
	}
	if p.g.Prepare == nil {
		return p.apart(n, data)
	}
	x, err := p.prepare.Call(data)
	if err != nil {
		return batches{}, err
	}
	return p.apart(n, x)
}

// apart is batches of observations.
func (p *Posterior) apart(n int, x []*tensors.Tensor) (batches, error) {
	count, err := sharedRows("x", x)
	if err != nil {
		return batches{}, blame.Caller(err)
	}
	most := orDefault(p.Rows, defaultRows)
	all := batches{Posterior: p, observations: count, x: x}
	calls := (n + most - 1) / most
	all.draws = (n + calls - 1) / calls
	all.size = 1
	for all.size < count && 2*all.size*all.draws <= most {
		all.size *= 2
	}
	return all, nil
}

// sharedRows returns how many rows tensors share.
func sharedRows(name string, x []*tensors.Tensor) (count int, err error) {
	if len(x) == 0 {
		return 0, fmt.Errorf("%s has no tensor", name)
	}
	for i, t := range x {
		switch {
		case t == nil || t.Rank() == 0 || t.Shape().Dim(0) == 0:
			return 0, fmt.Errorf("tensor %d of %s has no rows", i, name)
		case i == 0:
			count = t.Shape().Dim(0)
		case t.Shape().Dim(0) != count:
			return 0, fmt.Errorf("tensor %d of %s has %d rows, tensor 0 has %d", i, name, t.Shape().Dim(0), count)
		}
	}
	return count, nil
}

// prepareGraph makes observations of what Data supplies.
func (p *Posterior) prepareGraph(data []*Node) []*Node { return p.g.Prepare(data) }

// each calls do with all batches, bucket by bucket.
func (b batches) each(do func(batch) error) error {
	groups, err := b.groups()
	if err != nil {
		return err
	}
	number := uint64(0)
	for bucket, group := range groups {
		for part := range slices.Chunk(group, b.size) {
			x := rows.Take(b.x, padded(part, b.size))
			if bucket < len(groups)-1 {
				if x, err = b.Buckets.cut(x, bucket); err != nil {
					return err
				}
			}
			if err := do(batch{number, part, x, b.draws}); err != nil {
				return err
			}
			number++
		}
	}
	return nil
}

// groups are the numbers of observations, by bucket.
func (b batches) groups() ([][]int, error) {
	if b.Buckets == nil {
		all := make([]int, b.observations)
		for i := range all {
			all[i] = i
		}
		return [][]int{all}, nil
	}
	return b.Buckets.groups(b.x, b.observations)
}
