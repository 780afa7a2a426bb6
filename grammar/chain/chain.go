// Package chain holds Markov chains over labelled trees, whose steps are rotations and new labels. They run on the
// host.
package chain

import (
	"math"
	"math/rand/v2"
	"runtime"
	"sync/atomic"

	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/internal/crash"
	"github.com/gfnem/gfnem/rng"
)

// Sampler runs Markov chains over labelled trees, one for each sentence, that leave p(x,z) invariant, with preterminals
// summed out. Steps alternate: a rotation of a random inner edge, then a new label of a random node; each is accepted
// or not by the rule of Metropolis. Only what a proposal changes is scored.
type Sampler struct {
	Weights *Weights
	Steps   int
	// LogPrior, if not nil, is the logarithm of a weight that multiplies p(x,z), of a sentence and a tree. It is called
	// from several goroutines, and must not keep the tree.
	LogPrior func(sentence int, t *Tree) float64
}

// Result is where a chain ended.
type Result struct {
	Tree *grammar.Tree
	LogP float64 // log p(x,z), without LogPrior
	// How many proposals there were, and how many of them were accepted.
	Rotations, Rotated, Labels, Relabelled int
}

// Run runs all chains from the given trees, one over the words of each sentence, or from RandomTree if start is nil.
// Random numbers are those of (seed, stream, step) and the sentence's number, whatever the number of processors.
func (s Sampler) Run(seed uint64, stream string, step uint64, start []*grammar.Tree) []Result {
	out := make([]Result, s.Weights.Sentences())
	parallel(len(out), func(i int) {
		r := rng.New(seed, stream, step, uint64(i))
		if start == nil {
			out[i] = s.one(i, grammar.RandomTree(r, s.Weights.lengths[i], s.Weights.nt), r)
		} else {
			out[i] = s.one(i, start[i], r)
		}
	})
	return out
}

// parallel calls f for 0 to n-1 on all processors.
func parallel(n int, f func(i int)) {
	var next atomic.Int64
	var all crash.Group
	for range min(runtime.GOMAXPROCS(0), n) {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				f(i)
			}
		})
	}
	all.Wait()
}

// one runs the chain of one sentence.
func (s Sampler) one(sentence int, from *grammar.Tree, r *rand.Rand) Result {
	w := s.Weights.walker(sentence, from)
	var res Result
	logPrior := s.LogPrior
	if logPrior == nil {
		logPrior = func(int, *Tree) float64 { return 0 }
	}
	prior, n := logPrior(sentence, w.Tree), w.words
	for step := range s.Steps {
		var ratio float64
		rotation := step%2 == 0
		if rotation {
			if n == 2 {
				continue
			}
			res.Rotations++
			ratio = w.rotate(w.edge(r.IntN(n - 2)))
		} else {
			res.Labels++
			ratio = w.relabel(n+r.IntN(n-1), r.IntN(s.Weights.nt))
		}
		after := logPrior(sentence, w.Tree)
		ratio += after - prior
		if ratio < 0 && math.Log(r.Float64()) > ratio {
			w.undo()
			continue
		}
		prior = after
		if rotation {
			res.Rotated++
		} else {
			res.Relabelled++
		}
	}
	res.Tree, res.LogP = w.Copy(), w.logp()
	return res
}
