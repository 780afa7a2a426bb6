package parse

import (
	"math"
	"sync"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/backend"
	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/grammar/forest"
	"github.com/gfnem/gfnem/internal/program"
	"github.com/gfnem/gfnem/nn"
	"github.com/gfnem/gfnem/rng"
	"github.com/gfnem/gfnem/treebank"
)

var simd = sync.OnceValue(func() compute.Backend {
	b, err := backend.Open("simd")
	if err != nil {
		panic(err)
	}
	return b
})

// newTiny is a GFlowNet of a tiny grammar, three nonterminals and sentences of two to five words. Both are as they
// begin.
func newTiny(t testing.TB, seed uint64, kind grammar.Kind) *GFlowNet {
	t.Helper()
	m := grammar.Paper(kind, 6, 0)
	m.Nonterminals, m.Preterminals, m.Width = 3, 4, 8
	set := program.NewSet(simd(), nn.NewStore(seed))
	t.Cleanup(set.Close)
	return NewGFlowNet(forest.NewSampler(set, forest.Network{
		Width: 8, Layers: 1, Heads: 2, FeedForward: 32, DType: dtypes.Float32,
		Words: m.Words, Labels: m.Nonterminals, Preterminals: m.Preterminals, Positions: 6,
	}, func(g *Graph) grammar.LogProbs { return m.LogProbs(set.Store.Scope(em.Theta), g) }), Batches{Rows: 8, Bucket: 5, Most: 5})
}

// exactOf does exact inference, in double precision, with the grammar that a GFlowNet samples from.
func exactOf(t testing.TB, p *GFlowNet, kind grammar.Kind) *Exact {
	t.Helper()
	type nodes struct{ Graph *Graph }
	tables, err := program.Once[struct{}, grammar.LogProbTensors](simd(), p.net.Set.Store, "tables", func(in nodes) grammar.LogProbs {
		return p.net.LogProbs(in.Graph)
	}, struct{}{})
	if err != nil {
		t.Fatal(err)
	}
	g := grammar.New(kind, make([]string, 3), make([]string, 4), make([]string, 6))
	if err := g.SetLogProbs(tables); err != nil {
		t.Fatal(err)
	}
	e := NewExact(simd(), g)
	t.Cleanup(e.Close)
	return e
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

// list enumerates all trees and trajectories of sentences of random words, one of each length.
func list(t *testing.T, p *GFlowNet, kind grammar.Kind, seed uint64, lengths ...int) []listed {
	t.Helper()
	exact := exactOf(t, p, kind)
	r := rng.New(seed, "sentences")
	var out []listed
	for _, n := range lengths {
		l := listed{}
		for range n {
			l.sentence.Words = append(l.sentence.Words, int32(r.IntN(6)))
		}
		x := []*tensors.Tensor{
			tensors.FromFlatDataAndDimensions(l.sentence.Words, 1, n), tensors.FromFlatDataAndDimensions([]int32{int32(n)}, 1),
		}
		all, err := listForests(simd(), forest.Env{Words: n, Labels: 3})
		if err != nil {
			t.Fatal(err)
		}
		l.DAG, l.trees = all.DAG, all.trees
		tables, err := l.Tabulate(simd(), p.net.Set.Store, em.Phi, forest.Policy{Network: p.net.Network}, x)
		if err != nil {
			t.Fatal(err)
		}
		l.Table = tables[0]
		same := make([]treebank.Sentence, len(l.trees))
		for i := range same {
			same[i] = l.sentence
		}
		if l.logR, err = exact.LogTrees(same, l.trees); err != nil {
			t.Fatal(err)
		}
		want, err := exact.LogLikelihoods(same[:1])
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
