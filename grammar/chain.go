package grammar

import (
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/gfnem/gfnem/rng"
)

// Chains are Markov chains over labelled trees, one for each sentence, that leave p(x,z) invariant, with preterminals summed
// out. Steps alternate: a rotation of a random inner edge, then a new label of a random node; each is accepted or not by the
// rule of Metropolis. They run on the host, on tables, and score only what a proposal changes.
type Chains struct {
	Scores *Scores
	Steps  int
	// Prior, if not nil, is the logarithm of a weight that multiplies p(x,z), of a sentence and a tree. It is called from
	// several goroutines, and must not keep the tree.
	Prior func(sentence int, t *ChainTree) float64
}

// ChainResult is where a chain ended.
type ChainResult struct {
	Tree *Tree
	LogP float64 // log p(x,z), without Prior
	// How many proposals there were, and how many of them were accepted.
	Rotations, Rotated, Labels, Relabelled int
}

// Run runs all chains from the given trees, one over the words of each sentence, or from RandomTree if start is nil. Random
// numbers are those of (seed, stream, step) and the sentence's number, whatever the number of processors.
func (c Chains) Run(seed uint64, stream string, step uint64, start []*Tree) []ChainResult {
	out := make([]ChainResult, c.Scores.Sentences())
	var next atomic.Int64
	var wait sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(out)) {
		wait.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(out) {
					return
				}
				r := rng.New(seed, stream, step, uint64(i))
				var from *Tree
				if start == nil {
					from = RandomTree(r, c.Scores.lengths[i], c.Scores.nt)
				} else {
					from = start[i]
				}
				out[i] = c.one(i, from, r)
			}
		})
	}
	wait.Wait()
	return out
}

// one runs the chain of one sentence.
func (c Chains) one(sentence int, from *Tree, r *rand.Rand) ChainResult {
	w := c.Scores.walker(sentence, from)
	var res ChainResult
	prior := 0.0
	if c.Prior != nil {
		prior = c.Prior(sentence, w.ChainTree)
	}
	n := w.words
	for step := range c.Steps {
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
			ratio = w.relabel(n+r.IntN(n-1), r.IntN(c.Scores.nt))
		}
		after := prior
		if c.Prior != nil {
			after = c.Prior(sentence, w.ChainTree)
			ratio += after - prior
		}
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
	res.Tree, res.LogP = w.Tree(), w.logp()
	return res
}

// RandomTree merges two random neighbours until one tree is left, each time under a random nonterminal of nt.
func RandomTree(r *rand.Rand, n, nt int) *Tree {
	t := &Tree{}
	forest := make([]int, n)
	for i := range forest {
		forest[i] = i
	}
	for m := range n - 1 {
		i := r.IntN(len(forest) - 1)
		t.Left, t.Right, t.Label = append(t.Left, forest[i]), append(t.Right, forest[i+1]), append(t.Label, r.IntN(nt))
		forest[i] = n + m
		forest = append(forest[:i+1], forest[i+2:]...)
	}
	return t
}
