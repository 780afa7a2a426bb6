package main

import (
	"fmt"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"gonum.org/v1/gonum/stat"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/nn"
)

// learnShort learns from sequences so short that all their structures can be listed, and says how far q is from p(z|x).
func (o options) learnShort(b compute.Backend) error {
	m := RNA{Folding{N: 14, K: 64, Shortest: 1, Longest: 4, Knots: o.knots}, uniform(12, 14)}
	d, err := o.made(b, m, 1)
	if err != nil {
		return err
	}
	s := defaults(o.seed, o.updates)
	data, err := em.Shuffled(o.seed, s.Batch, d.train.X...)
	if err != nil {
		return badinput.Errorf("%w", err)
	}
	store := nn.NewStore(s.Seed)
	if err := s.learn(b, store, m, data); err != nil {
		return err
	}
	for _, part := range []struct {
		name string
		observed
	}{{"validation", d.valid}, {"test", d.test}} {
		some := observed{take(part.X, 0, 50), part.Strands[:50]}
		v, err := m.variation(b, store, some.X)
		if err != nil {
			return err
		}
		q, err := m.sample(b, store, policy{m}, 64, some.X)
		if err != nil {
			return err
		}
		random, err := m.sample(b, store, blind{m.Folding}, 16, some.X)
		if err != nil {
			return err
		}
		fmt.Printf("seed %d, 50 sequences for %s: total variation of q from the exact posterior %.4f on average, %.4f at most; "+
			"%.0f structures on average, of which the most probable one has %.2f\n",
			o.seed, part.name, stat.Mean(v.distance, nil), slices.Max(v.distance), stat.Mean(v.structures, nil), stat.Mean(v.best, nil))
		of, bases := em.Summarise(q.estimates), some.bases()/float64(len(some.Strands))
		fmt.Printf("  log p(x) per base %.4f, by q at least %.4f; F1 of pairs by q %.3f, of samples %.3f, of random structures %.3f\n",
			some.perBase(v.logP), of.ELBO/bases, some.f1(q.weighted, 1), some.f1(q.sampled, 64), some.f1(random.sampled, 16))
	}
	return nil
}

// variation is how far q is from p(z|x), by sequence.
type variation struct {
	distance   []float64 // total variation
	structures []float64 // how many there are
	best       []float64 // the probability of the most probable one
	logP       []float64 // log p(x)
}

// variation lists all structures.
func (m RNA) variation(b compute.Backend, store *model.Store, x []*tensors.Tensor) (v variation, err error) {
	exact, err := em.Classical{Model: m, Env: m.Folding}.Posteriors(b, store, x...)
	if err != nil {
		return v, err
	}
	dags, of, err := gfn.EnumerateEach(b, m.Folding, x, 1<<17)
	if err != nil {
		return v, err
	}
	key := func(s []*tensors.Tensor, i int) string {
		return fmt.Sprint(tensors.MustCopyFlatData[int32](structureOf(s).Chosen)[i*m.K : (i+1)*m.K])
	}
	for i, l := range exact {
		dag := dags[of[i]]
		tables, err := dag.Tabulate(b, store, em.Phi, policy{m}, take(x, i, i+1))
		if err != nil {
			return v, err
		}
		p, q := map[string]float64{}, dag.Terminating(tables[0])
		for k := range l.P {
			p[key(l.Z, k)] = l.P[k]
		}
		z, same := dag.ObjectStates(), make([]float64, len(q))
		for k := range q {
			same[k] = p[key(z, k)]
		}
		v.distance, v.logP = append(v.distance, gfn.TotalVariation(same, q)), append(v.logP, l.LogP)
		v.structures, v.best = append(v.structures, float64(len(q))), append(v.best, slices.Max(l.P))
	}
	return v, nil
}
