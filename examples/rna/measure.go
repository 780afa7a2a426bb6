package main

import (
	"fmt"
	"math"
	"slices"

	"github.com/gomlx/compute"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/gfn"
)

// pairs are numbers of pairs of bases, [i*N+j] for i < j: probabilities, or 1 and 0.
type pairs []float64

// score counts pairs.
type score struct{ right, said, known float64 }

// add counts the pairs of a sequence that are more probable than not.
func (s *score) add(p pairs, partner []int32) {
	n := int(math.Sqrt(float64(len(p))))
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

// samples are what structures drawn by a policy say of sequences.
type samples struct {
	estimates []gfn.Estimate // of log p(x), by sequence
	weighted  []pairs        // probabilities by importance weights, by sequence
	sampled   []pairs        // n of each sequence
}

// sample draws n structures of each sequence.
func (m RNA) sample(b compute.Backend, store *model.Store, p gfn.Policy, n int, x []*tensors.Tensor) (out samples, err error) {
	q, err := em.NewPosterior(b, store, em.Spec{Model: m, Env: m.Folding, Policy: p, Seed: 1})
	if err != nil {
		return out, err
	}
	defer q.Close()
	s, err := q.Sample(n, x...)
	if err != nil {
		return out, err
	}
	out.sampled = m.drawn(s.Z)
	for i, w := range s.LogWeights {
		sum := make(pairs, m.N*m.N)
		for k, share := range gfn.Normalise(w) {
			for j, v := range out.sampled[i*n+k] {
				sum[j] += share * v
			}
		}
		out.estimates, out.weighted = append(out.estimates, gfn.EstimateLogZ(w)), append(out.weighted, sum)
	}
	return out, nil
}

// drawn are the pairs of structures.
func (e Folding) drawn(states []*tensors.Tensor) (all []pairs) {
	z := structureOf(states)
	chosen, code := tensors.MustCopyFlatData[int32](z.Chosen), tensors.MustCopyFlatData[int32](z.Code)
	n := int32(e.N)
	for from := 0; from < len(code); from += e.K {
		p := make(pairs, n*n)
		for k := from; k < from+e.K; k++ {
			i, j, l := code[k]/n%n, code[k]%n, code[k]/n/n
			for s := range l * chosen[k] {
				p[(i+s)*n+j-s] = 1
			}
		}
		all = append(all, p)
	}
	return all
}

// blind is a policy that adds helices at random until no other fits.
type blind struct{ Folding }

func (p blind) Heads(_ *model.Scope, _ gfn.Batch, s gfn.State, _ int) gfn.Heads {
	zero := ConvertDType(ZerosLike(structureOf(s).Chosen), float)
	stop := AddScalar(ReduceAndKeep(zero, ReduceSum, 1), -20)
	return gfn.Heads{Forward: Concatenate([]*Node{zero, stop}, 1)}
}

// panel shows pairs of the sequence that the figure is of.
type panel struct {
	title string
	pairs pairs
}

// report prints what a model says of validation and test data, and returns panels for a test sequence.
func (d dataset) report(b compute.Backend, store *model.Store, m RNA, name string) (shown []panel, err error) {
	for _, part := range []struct {
		name string
		observed
	}{{"validation", d.valid}, {"test", d.test}} {
		found, err := part.measure(b, store, m, name)
		if err != nil {
			return nil, err
		}
		fmt.Printf("%s, seed %d, %s:\n", name, d.seed, part.name)
		for _, f := range found {
			fmt.Printf("  %s\n", f.text)
		}
		if part.name == "test" {
			for _, f := range found {
				if f.title != "" {
					shown = append(shown, panel{f.title, f.pairs[d.figured()]})
				}
			}
		}
	}
	return shown, nil
}

// finding is what a measure found: a line of text, and pairs of each sequence, with a title for the figure if they are in it.
type finding struct {
	title, text string
	pairs       []pairs
}

// measure asks for exact answers if structures are nested, q if there is one, and random structures beside those told.
func (o observed) measure(b compute.Backend, store *model.Store, m RNA, name string) (found []finding, err error) {
	if !m.Knots {
		logP, all, err := m.exactly(b, store, o.X)
		if err != nil {
			return nil, err
		}
		text := fmt.Sprintf("exact: log p(x) per base %.4f, F1 of pairs %.3f", o.perBase(logP), o.f1(all, 1))
		title := map[string]string{"exact": "exact EM", "told": "a model told the structures of others"}[name]
		found = append(found, finding{title, text, all})
	}
	switch name {
	case "gfn":
		const n = 64
		q, err := m.sample(b, store, policy{m}, n, o.X)
		if err != nil {
			return nil, err
		}
		of := em.Summarise(q.estimates)
		bases := o.bases() / float64(len(o.Strands))
		text := fmt.Sprintf("q: log p(x) per base at least %.4f, by importance sampling %.4f (%.1f effective samples of %d), "+
			"F1 of pairs %.3f, of samples %.3f", of.ELBO/bases, of.LogP/bases, of.ESS, n, o.f1(q.weighted, 1), o.f1(q.sampled, n))
		found = append(found, finding{"GFlowNet-EM", text, q.weighted})
	case "told":
		const n = 16
		random, err := m.sample(b, store, blind{m.Folding}, n, o.X)
		if err != nil {
			return nil, err
		}
		var often []pairs
		for all := range slices.Chunk(random.sampled, n) {
			often = append(often, average(all))
		}
		text := fmt.Sprintf("F1 of random structures %.3f", o.f1(random.sampled, n))
		found = append(found, finding{fmt.Sprintf("%d random structures", n), text, often})
	}
	return found, nil
}

// average is how often each pair occurs.
func average(all []pairs) pairs {
	sum := make(pairs, len(all[0]))
	for _, p := range all {
		for i, v := range p {
			sum[i] += v / float64(len(all))
		}
	}
	return sum
}

// bases is how many there are.
func (o observed) bases() (n float64) {
	for _, s := range o.Strands {
		n += float64(len(s.Bases))
	}
	return n
}

func (o observed) perBase(logP []float64) (sum float64) {
	for _, v := range logP {
		sum += v / o.bases()
	}
	return sum
}

// f1 is that of pairs, each so many for a sequence.
func (o observed) f1(all []pairs, each int) float64 {
	var s score
	for i, p := range all {
		s.add(p, o.Strands[i/each].Partner)
	}
	return s.F1()
}
