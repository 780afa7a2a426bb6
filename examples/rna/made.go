package main

import (
	"fmt"
	"math"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/lvm"
	"github.com/gfnem/gfnem/nn"
	"github.com/gfnem/gfnem/rng"
)

// truth is a model at sensible parameters: pairs of C and G are frequent in helices, and A is so elsewhere.
func truth(seed uint64, start float32) *model.Store {
	store := nn.NewStore(seed)
	theta := store.Scope(em.Theta)
	pair := []float32{0.3, 0.3, 1.5, 1.5, -1, -1}
	theta.VariableWithValue("outer", pair)
	var next [][]float32
	for range pair {
		next = append(next, pair)
	}
	theta.VariableWithValue("next", next)
	theta.VariableWithValue("unpaired", []float32{1, 0, 0, 0.3})
	starts := make([][]float32, 2)
	for i := range starts {
		for range distances {
			starts[i] = append(starts[i], start)
		}
	}
	theta.VariableWithValue("start", starts)
	theta.VariableWithValue("knot", []float32{2})
	return store
}

// uniform are log-probabilities of lengths.
func uniform(from, to int) []float32 {
	out := make([]float32, to+1)
	for n := range out {
		if out[n] = never; n >= from {
			out[n] = float32(-math.Log(float64(to - from + 1)))
		}
	}
	return out
}

// made draws sequences with their structures from a model with probable helices, more so with a greater logit of beginning one.
func (o options) made(b compute.Backend, m RNA, start float32) (d dataset, err error) {
	d = dataset{seed: o.seed, model: m}
	e, store := m.Folding, truth(o.seed, start)
	for _, part := range []struct {
		to   *observed
		name string
		n    int
	}{{&d.test, "test", forTests}, {&d.valid, "validation", forValidation}, {&d.train, "train", o.train}} {
		p, err := lvm.Draw(b, store.Scope(em.Theta), d.model, rng.Key(o.seed, part.name), part.n)
		if err != nil {
			return d, err
		}
		x := sequencesOf(p.X)
		x.Known = structureOf(p.Z).Chosen
		part.to.X = x.list()
		bases := tensors.MustCopyFlatData[int32](x.Bases)
		for i, in := range e.drawn(p.Z) {
			s := strand{Name: fmt.Sprint(part.name, " ", i+1)}
			for at, base := range bases[i*e.N : (i+1)*e.N] {
				if base < 0 {
					break
				}
				s.Bases, s.Partner = append(s.Bases, base), append(s.Partner, -1)
				for other := range e.N {
					if in[at*e.N+other]+in[other*e.N+at] > 0 {
						s.Partner[at] = int32(other)
					}
				}
			}
			part.to.Strands = append(part.to.Strands, s)
		}
	}
	return d, nil
}
