package forest_test

import (
	"math"
	"testing"

	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/backend"
	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/grammar/forest"
	"github.com/gfnem/gfnem/lvm"
	"github.com/gfnem/gfnem/lvm/lvmtest"
	"github.com/gfnem/gfnem/nn"
	"github.com/gfnem/gfnem/rng"
)

// ranked is a grammar as an lvm.Model: x are sentences, z whole trees of them. A nonterminal has no other children than
// later ones and preterminals, so that trees end of themselves, with four words at most.
type ranked struct {
	parents bool   // of a rule, the nonterminal above matters
	init    string // of a grammar.Neural, whose rules are cut down to these; "" means tables of numbers
	fault   string
}

const (
	nonterminals, preterminals, vocabulary = 2, 2, 3
	symbols                                = nonterminals + preterminals
	longest                                = 5 // one more than any tree has
)

func (m ranked) env() forest.Env { return forest.Env{Words: longest, Labels: nonterminals} }

func (m ranked) tables(theta *model.Scope, g *Graph) grammar.LogProbs {
	normal := func(name string, rows, columns int, impossible func(row, column int) bool) *Node {
		mask := make([]float64, rows*columns)
		for i := range mask {
			if impossible(i/columns, i%columns) {
				mask[i] = math.Inf(-1)
			}
		}
		logits := m.neural(theta, g, name, rows, columns)
		if logits == nil {
			logits = nn.Param(theta, g, dtypes.Float64, name, 1, rows, columns)
		}
		return LogSoftmax(Add(logits, Reshape(Const(g, mask), rows, columns)))
	}
	never := func(int, int) bool { return false }
	above, hosts := 1, 1
	if m.parents {
		above, hosts = nonterminals+1, nonterminals
	}
	t := grammar.LogProbs{
		Root: Reshape(normal("root", 1, nonterminals, never), nonterminals),
		Rules: normal("rules", nonterminals*above, symbols*symbols, func(row, column int) bool {
			return min(column/symbols, column%symbols) <= row/above
		}),
		Emit: Transpose(normal("emit", preterminals*hosts, vocabulary, never), 0, 1),
	}
	if !m.parents {
		t.Rules = Reshape(t.Rules, nonterminals, symbols, symbols)
		return t
	}
	t.Rules = Reshape(t.Rules, nonterminals, above, symbols, symbols)
	t.Emit = Reshape(t.Emit, vocabulary, preterminals, hosts)
	return t
}

// neural is one of the tables of a neural grammar, a row for each distribution; nil if there is none.
func (m ranked) neural(theta *model.Scope, g *Graph, name string, rows, columns int) *Node {
	if m.init == "" {
		return nil
	}
	kind := grammar.CFG
	if m.parents {
		kind = grammar.NCFG
	}
	t := grammar.Neural{
		Kind: kind, Nonterminals: nonterminals, Preterminals: preterminals, Words: vocabulary, Width: 4, DType: dtypes.Float64,
		ParentScale: 1, Init: m.init,
	}.LogProbs(theta, g)
	if name == "emit" {
		return Transpose(Reshape(t.Emit, columns, rows), 0, 1)
	}
	return Reshape(map[string]*Node{"root": t.Root, "rules": t.Rules}[name], rows, columns)
}

func (m ranked) LogJoint(theta *model.Scope, x gfn.Batch, z gfn.State) *Node {
	o := forest.Observed(x)
	s := m.tables(theta, o.Words.Graph()).For(o.Words, o.Lengths).ScoreTrees(forest.FromState(z).Trees())
	logP := Add(ReduceSum(s.Nodes, 1), s.Root)
	if m.fault == "root" { // counts the top twice
		logP = Add(logP, s.Root)
	}
	return logP
}

func (m ranked) Sample(theta *model.Scope, r *rng.Stream, n int) (gfn.Batch, gfn.State) {
	d := m.tables(theta, r.State().Graph()).Dream(r, n, longest)
	x := forest.Sentences{Words: d.Leaves, Lengths: d.Lengths}
	return x.Batch(), forest.FromTrees(d.Trees, d.Lengths).State()
}

// Grammars keep the laws of models, of the kind with parents, too; one that counts its root twice does not.
func TestModel(t *testing.T) {
	for name, m := range map[string]ranked{
		"cfg": {}, "ncfg": {parents: true}, "cfg, xavier": {init: grammar.Xavier}, "ncfg, xavier": {parents: true, init: grammar.Xavier},
	} {
		t.Run(name, func(t *testing.T) { lvmtest.Run(t, m, m.env()) })
	}
	b, err := backend.Open("")
	if err != nil {
		t.Fatal(err)
	}
	defer b.Finalize()
	broken := ranked{fault: "root"}
	if got := lvmtest.Check(b, broken, broken.env()); len(got) == 0 {
		t.Error("a root that counts twice is not found")
	}
}

var _ lvm.Model = ranked{}
