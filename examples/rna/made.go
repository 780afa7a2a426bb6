package main

import (
	"fmt"
	"math"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/lvm"
	"github.com/gfnem/gfnem/nn"
	"github.com/gfnem/gfnem/rng"
)

// truth is a model at sensible parameters: pairs of C and G are frequent in helices, and A is so elsewhere.
func truth(m RNA, seed uint64, start float32) *model.Store {
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
	theta.VariableWithValue("knot", []float32{5})
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

// made draws sequences with their structures.
func (o options) made(b compute.Backend, e Folding) (d dataset, err error) {
	e.Knots = o.knots
	d = dataset{seed: o.seed, model: RNA{e, uniform(60, e.N)}}
	store := truth(d.model, o.seed, 0.5)
	for _, part := range []struct {
		to   *observed
		name string
		n    int
	}{{&d.test, "test", forTests}, {&d.valid, "validation", forValidation}, {&d.train, "train", o.train}} {
		p, err := lvm.Draw(b, store.Scope(em.Theta), d.model, rng.Key(o.seed, part.name), part.n)
		if err != nil {
			return d, err
		}
		bases, chosen := tensors.MustCopyFlatData[int32](p.X[0]), tensors.MustCopyFlatData[int32](p.Z[0])
		code := tensors.MustCopyFlatData[int32](p.X[1])
		part.to.X = []*tensors.Tensor{p.X[0], p.X[1], p.Z[0]}
		for i := range part.n {
			s := strand{Name: fmt.Sprint(part.name, " ", i+1)}
			in := e.drawn(chosen[i*e.K:(i+1)*e.K], code[i*e.K:(i+1)*e.K])
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

// variation learns from short sequences and says how far q is from the exact posterior: total variation, by enumeration.
func (o options) variation(b compute.Backend) error {
	m := RNA{Folding{N: 14, K: 64, Shortest: 1, Longest: 4, Knots: o.knots}, uniform(12, 14)}
	store := truth(m, o.seed, 1)
	draw := func(name string, n int) (lvm.Pairs, error) {
		return lvm.Draw(b, store.Scope(em.Theta), m, rng.Key(o.seed, name), n)
	}
	train, err := draw("train", o.train)
	if err != nil {
		return err
	}
	test, err := draw("test", 40)
	if err != nil {
		return err
	}
	s := defaults(o.seed, o.updates)
	data, err := em.Shuffled(o.seed, s.Batch, train.X...)
	if err != nil {
		return err
	}
	learned := nn.NewStore(s.Seed)
	if err := s.learn(b, learned, m, data); err != nil {
		return err
	}
	exact, err := em.Classical{Model: m, Env: m.Folding}.Posteriors(b, learned, test.X...)
	if err != nil {
		return err
	}
	dags, of, err := gfn.EnumerateEach(b, m.Folding, test.X, 1<<17)
	if err != nil {
		return err
	}
	mean, most, structures, top := 0.0, 0.0, 0, 0.0
	for i, l := range exact {
		tables, err := dags[of[i]].Tabulate(b, learned, em.Phi, policy{m}, take(test.X, i, i+1))
		if err != nil {
			return err
		}
		tv := gfn.TotalVariation(l.P, dags[of[i]].Terminating(tables[0]))
		mean, most, structures = mean+tv/float64(len(exact)), max(most, tv), structures+len(l.P)
		best := 0.0
		for _, p := range l.P {
			best = max(best, p)
		}
		top += best / float64(len(exact))
	}
	fmt.Printf("short, seed %d: total variation of q from the exact posterior %.4f, at most %.4f, on %d test sequences with %d structures"+
		" on average, of which the most probable one has %.2f\n", o.seed, mean, most, len(exact), structures/len(exact), top)
	return nil
}
