package induce

import (
	"math"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/grammar/forest"
	"github.com/gfnem/gfnem/rng"
	"github.com/gfnem/gfnem/treebank"
)

// tinyGFN is a GFlowNet of a tiny grammar, three nonterminals and sentences of two to five words.
func tinyGFN(seed uint64, kind grammar.Kind) Config {
	c := tinyConfig(GFN)
	c.Seed, c.Grammar, c.GFNWidth, c.GFNLayers, c.GFNHeads = seed, string(kind), 8, 1, 2
	c.DreamLeaves, c.DreamSteps, c.Threshold, c.ThresholdEnd, c.MaxIterations = 6, 4, 1e9, 1e9, 40
	c.Moves, c.BackSteps, c.BackStart, c.Updates = 2, 4, 2, 10
	return c
}

// listed is everything about one sentence, by enumeration in double precision.
type listed struct {
	sentence treebank.Sentence
	*gfn.DAG
	gfn.Table
	trees []*grammar.Tree // by object
	logR  []float64
}

func (l listed) logX() float64  { return gfn.LogSumExp(l.logR) }
func (l listed) bound() float64 { return l.ELBO(l.Table, l.logR) }
func (l listed) q() []float64   { return l.Terminating(l.Table) }

// list enumerates all trees and trajectories of sentences of random words, one of each length, under the grammar and the network of a
// session as they are.
func list(t *testing.T, s *session, seed uint64, lengths ...int) []listed {
	t.Helper()
	if _, err := s.parser.LogLikelihoods(s.data.Splits[0].Sentences[:1]); err != nil { // makes the variables, if there are none yet
		t.Fatal(err)
	}
	g, err := s.table(s.set.Backend, stateOf(t, s))
	if err != nil {
		t.Fatal(err)
	}
	parser, err := NewParser(s.set.Backend, g)
	if err != nil {
		t.Fatal(err)
	}
	defer parser.Close()
	r := rng.New(seed, "sentences")
	var out []listed
	for _, n := range lengths {
		l := listed{}
		for range n {
			l.sentence.Words = append(l.sentence.Words, int32(r.IntN(len(g.Words))))
		}
		x := []*tensors.Tensor{
			tensors.FromFlatDataAndDimensions(l.sentence.Words, 1, n), tensors.FromFlatDataAndDimensions([]int32{int32(n)}, 1),
		}
		all, err := listForests(s.set.Backend, n, s.Nonterminals)
		if err != nil {
			t.Fatal(err)
		}
		l.DAG, l.trees = all.DAG, all.trees
		tables, err := l.Tabulate(s.set.Backend, s.set.Store, em.Phi, forest.Policy{Network: s.gfn.Network}, x)
		if err != nil {
			t.Fatal(err)
		}
		l.Table = tables[0]
		same := make([]treebank.Sentence, len(l.trees))
		for i := range same {
			same[i] = l.sentence
		}
		if l.logR, err = parser.LogTrees(same, l.trees); err != nil {
			t.Fatal(err)
		}
		want, err := parser.LogLikelihoods(same[:1])
		if err != nil {
			t.Fatal(err)
		}
		if !(math.Abs(l.logX()-want[0]) <= 1e-9) {
			t.Fatalf("%d words: all trees together have log p %v, the sentence has %v", n, l.logX(), want[0])
		}
		out = append(out, l)
	}
	return out
}
