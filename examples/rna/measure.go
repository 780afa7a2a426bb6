package main

import (
	"fmt"
	"math"

	"github.com/gomlx/compute"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/nn"
)

// pairs are numbers of pairs of bases, [i*N+j] for i < j: probabilities, or 1 and 0.
type pairs []float64

// score counts pairs.
type score struct{ right, said, known float64 }

// add counts the pairs of a sequence that are more probable than not.
func (s *score) add(p pairs, n int, partner []int32) {
	for i, j := range partner {
		if int(j) > i {
			s.known++
		}
		for k := i + 1; k < n; k++ {
			if p[i*n+k] > 0.5 {
				s.said++
				if int(j) == k {
					s.right++
				}
			}
		}
	}
}

// F1 is the harmonic mean of the share of pairs said that are right, and of those known that are said.
func (s score) F1() float64 { return 2 * s.right / math.Max(1, s.said+s.known) }

// exactly returns log p(x) and the probabilities of pairs by dynamic programming.
func (m RNA) exactly(b compute.Backend, store *model.Store, x []*tensors.Tensor) (logP []float64, all []pairs, err error) {
	exec, err := model.NewExec(b, store, func(root *model.Scope, in []*Node) []*Node {
		logP, pairs := m.Marginals(root.Store().Scope(em.Theta), in[0])
		return []*Node{logP, pairs}
	})
	if err != nil {
		return nil, nil, err
	}
	defer exec.Finalize()
	for n, from := x[0].Shape().Dim(0), 0; from < n; from += 20 {
		got, err := exec.Call(take(x, from, min(n, from+20))[0])
		if err != nil {
			return nil, nil, err
		}
		logP = append(logP, tensors.MustCopyFlatData[float64](got[0])...)
		flat := tensors.MustCopyFlatData[float64](got[1])
		for i := 0; i < len(flat); i += m.N * m.N {
			all = append(all, flat[i:i+m.N*m.N])
		}
	}
	return logP, all, nil
}

// take returns some rows of observations.
func take(x []*tensors.Tensor, from, to int) (out []*tensors.Tensor) {
	for _, t := range x {
		w := t.Shape().Dim(1)
		out = append(out, tensors.FromFlatDataAndDimensions(tensors.MustCopyFlatData[int32](t)[from*w:to*w], to-from, w))
	}
	return out
}

// folded is what samples of q say of a sequence.
type folded struct {
	estimate gfn.Estimate
	sampled  []pairs // of samples
	weighted pairs   // probabilities by importance weights
}

// sample draws n structures of each sequence.
func (m RNA) sample(b compute.Backend, store *model.Store, p gfn.Policy, n int, x []*tensors.Tensor) (all []folded, err error) {
	q, err := em.NewPosterior(b, store, em.Spec{Model: m, Env: m.Folding, Policy: p, Seed: 1})
	if err != nil {
		return nil, err
	}
	defer q.Close()
	s, err := q.Sample(n, x...)
	if err != nil {
		return nil, err
	}
	z := gfn.State{}
	_ = z
	chosen, code := tensors.MustCopyFlatData[int32](s.Z[0]), tensors.MustCopyFlatData[int32](s.Z[3])
	for i, w := range s.LogWeights {
		f := folded{estimate: gfn.EstimateLogZ(w), weighted: make(pairs, m.N*m.N)}
		share := gfn.Normalise(w)
		for k := range w {
			at := (i*n + k) * m.K
			one := m.drawn(chosen[at:at+m.K], code[at:at+m.K])
			for j, v := range one {
				f.weighted[j] += share[k] * v
			}
			f.sampled = append(f.sampled, one)
		}
		all = append(all, f)
	}
	return all, nil
}

// drawn are the pairs of candidates that are chosen.
func (e Folding) drawn(chosen, code []int32) pairs {
	out := make(pairs, e.N*e.N)
	for k, in := range chosen {
		if in == 0 {
			continue
		}
		n := int32(e.N)
		i, j, l := code[k]/n%n, code[k]%n, code[k]/n/n
		for s := range l {
			out[(i+s)*n+j-s] = 1
		}
	}
	return out
}

// blind is a policy that adds helices at random until no other fits.
type blind struct{ Folding }

func (p blind) Heads(_ *model.Scope, _ gfn.Batch, s gfn.State, _ int) gfn.Heads {
	zero := ConvertDType(ZerosLike(structureOf(s).Chosen), float)
	stop := AddScalar(ReduceAndKeep(zero, ReduceSum, 1), -20)
	return gfn.Heads{Forward: Concatenate([]*Node{zero, stop}, 1)}
}

// report measures a model on validation and test data.
func (d dataset) report(b compute.Backend, store *model.Store, m RNA, name, figure string) error {
	for _, part := range []struct {
		name string
		observed
	}{{"validation", d.valid}, {"test", d.test}} {
		bases := 0.0
		for _, s := range part.Strands {
			bases += float64(len(s.Bases))
		}
		line := fmt.Sprintf("%s, seed %d, %s:", name, d.seed, part.name)
		mean := func(v []float64) (sum float64) {
			for _, x := range v {
				sum += x / bases
			}
			return sum
		}
		f1 := func(of func(i int) []pairs) float64 {
			var s score
			for i, strand := range part.Strands {
				for _, p := range of(i) {
					s.add(p, m.N, strand.Partner)
				}
			}
			return s.F1()
		}
		if !m.Knots {
			logP, exact, err := m.exactly(b, store, part.X)
			if err != nil {
				return err
			}
			line += fmt.Sprintf(" log p(x) per base %.4f, F1 of exact pairs %.3f;", mean(logP), f1(func(i int) []pairs { return exact[i : i+1] }))
		}
		if name == "gfn" {
			q, err := m.sample(b, store, policy{m}, 64, part.X)
			if err != nil {
				return err
			}
			var elbo, logZ, ess []float64
			for _, f := range q {
				elbo, logZ = append(elbo, f.estimate.ELBO), append(logZ, f.estimate.LogZ)
				ess = append(ess, f.estimate.ESS*bases/float64(len(q)))
			}
			line += fmt.Sprintf(" by q: ELBO per base %.4f, estimate %.4f, effective samples %.1f of 64, F1 of pairs %.3f, of samples %.3f",
				mean(elbo), mean(logZ), mean(ess), f1(func(i int) []pairs { return []pairs{q[i].weighted} }),
				f1(func(i int) []pairs { return q[i].sampled }))
		}
		if name == "told" {
			random, err := m.sample(b, nn.NewStore(1), blind{m.Folding}, 16, part.X)
			if err != nil {
				return err
			}
			line += fmt.Sprintf(" random structures have an F1 of %.3f", f1(func(i int) []pairs { return random[i].sampled }))
		}
		fmt.Println(line)
	}
	return nil
}
