package main

import (
	"math"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/em"
)

// meter measures a model on held-out sentences by the dynamic program, and q, unless that is nil, by its samples.
type meter struct {
	experiment
	x    *tensors.Tensor
	ends *model.Exec
	q    *em.Posterior
}

func newMeter(e experiment, store *model.Store, q *em.Posterior) (m meter, err error) {
	m = meter{experiment: e, x: e.m.Observe(e.test...), q: q}
	m.ends, err = model.NewExec(e.b, store, func(root *model.Scope, x *Node) []*Node {
		logP, ends := e.m.Ends(root.Store().Scope(em.Theta), x)
		return []*Node{logP, ends}
	})
	return m, err
}

// measure returns where a training is, and held-out sentences with the words ends that are more probable than not.
func (m meter) measure(samples int) (s state, cut []Sentence, err error) {
	out, err := m.ends.Call(m.x)
	if err != nil {
		return s, nil, err
	}
	logP, ends := tensors.MustCopyFlatData[float32](out[0]), tensors.MustCopyFlatData[float32](out[1])
	end := func(i, t int) bool { return ends[i*m.m.Max+t] > 0.5 }
	for i, l := range logP {
		s.logP += float64(l) / float64(len(logP))
		c := Sentence{Letters: m.test[i].Letters}
		for t := range c.Letters {
			c.Ends = append(c.Ends, end(i, t))
		}
		cut = append(cut, c)
	}
	s.f1, s.kl, s.f1ByQ = f1(m.test, end), math.NaN(), math.NaN()
	if m.q == nil {
		return s, cut, nil
	}
	drawn, err := m.q.Sample(samples, m.x)
	if err != nil {
		return s, nil, err
	}
	s.kl = 0
	for i, logW := range drawn.LogWeights {
		for _, w := range logW { // log p(x,z) - log q(z|x)
			s.kl += (float64(logP[i]) - w) / float64(samples*len(logP))
		}
	}
	z, gaps := tensors.MustCopyFlatData[int32](drawn.Z[0]), m.m.Max-1
	s.f1ByQ = f1(m.test, func(i, t int) bool {
		count := 0
		for j := range samples {
			if z[(i*samples+j)*gaps+t] == 1 {
				count++
			}
		}
		return 2*count > samples
	})
	return s, cut, nil
}

// f1 is the harmonic mean of precision and recall of word ends inside of sentences; NaN if no true ones are known.
func f1(sentences []Sentence, end func(i, t int) bool) float64 {
	both, said, known := 0, 0, 0
	for i, s := range sentences {
		for t, is := range s.Ends[:len(s.Ends)-1] {
			if is {
				known++
			}
			if end(i, t) {
				if said++; is {
					both++
				}
			}
		}
	}
	if known == 0 {
		return math.NaN()
	}
	return 2 * float64(both) / float64(said+known)
}
