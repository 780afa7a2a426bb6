// Package grammar holds probabilistic grammars over binary trees and exact inference with them.
//
// A derivation of a sentence is a binary tree. Its inner nodes are nonterminals, each over two words or more; every
// word has a preterminal above it. A context-free grammar (CFG) draws the top nonterminal, the two children of every
// nonterminal, and the word of every preterminal. In a non-context-free grammar (NCFG) the children of a nonterminal
// depend on its parent, too, and the word of a preterminal on the nonterminal above.
//
// Probabilities come from a file (Grammar), or from networks (Neural). Either way they become LogProbs in a graph, then
// Potentials of a batch of sentences, and of these everything is computed: LogLikelihood, Marginals, Viterbi, Sample,
// MBR, and the probability of given trees.
package grammar

import (
	"fmt"
	"math"
	"slices"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/treebank"
)

// Kind says what an expansion depends on.
type Kind string

// The kinds of grammars.
const (
	CFG  Kind = "cfg"  // on the expanded symbol
	NCFG Kind = "ncfg" // on the expanded symbol and its parent
)

// RootName stands for what is above the top nonterminal.
const RootName = "ROOT"

// Grammar is a table of probabilities with names. Symbols of a right-hand side are numbered nonterminals first, then
// preterminals; parents are numbered ROOT first, then nonterminals.
type Grammar struct {
	Kind                              Kind
	Nonterminals, Preterminals, Words []string
	Root                              []float64 // [N]
	Rules                             []float64 // [N,S,S]; NCFG [N,P,S,S]
	Emit                              []float64 // [T,V]; NCFG [T,N,V], by the nonterminal above
	// Prepared is what the text went through that the grammar was learned from, for new text; nil if that is not known.
	Prepared *treebank.Preparation
}

// New returns a grammar whose probabilities are all zero.
func New(kind Kind, nonterminals, preterminals, words []string) *Grammar {
	g := &Grammar{Kind: kind, Nonterminals: nonterminals, Preterminals: preterminals, Words: words}
	n, t, s := len(nonterminals), len(preterminals), len(nonterminals)+len(preterminals)
	g.Root = make([]float64, n)
	g.Rules = make([]float64, n*g.parents()*s*s)
	g.Emit = make([]float64, t*g.hosts()*len(words))
	return g
}

// parents is how many parents the rules of a nonterminal tell apart, and hosts is the same of emissions.
func (g *Grammar) parents() int {
	if g.Kind == NCFG {
		return len(g.Nonterminals) + 1
	}
	return 1
}

func (g *Grammar) hosts() int {
	if g.Kind == NCFG {
		return len(g.Nonterminals)
	}
	return 1
}

// symbols is S.
func (g *Grammar) symbols() int { return len(g.Nonterminals) + len(g.Preterminals) }

// RuleRow is p(left, right | x, parent), [S,S] as one row that may be written to. The parent (0 is ROOT) is ignored by
// a CFG.
func (g *Grammar) RuleRow(x, parent int) []float64 {
	if g.Kind != NCFG {
		parent = 0
	}
	size := g.symbols() * g.symbols()
	return g.Rules[(x*g.parents()+parent)*size:][:size]
}

// EmitRow is p(word | t, x), [V], that may be written to. The nonterminal x above the preterminal is ignored by a CFG.
func (g *Grammar) EmitRow(t, x int) []float64 {
	if g.Kind != NCFG {
		x = 0
	}
	return g.Emit[(t*g.hosts()+x)*len(g.Words):][:len(g.Words)]
}

// Symbol names a symbol of a right-hand side.
func (g *Grammar) Symbol(s int) string {
	if s < len(g.Nonterminals) {
		return g.Nonterminals[s]
	}
	return g.Preterminals[s-len(g.Nonterminals)]
}

// Parent names a parent.
func (g *Grammar) Parent(p int) string {
	if p == 0 {
		return RootName
	}
	return g.Nonterminals[p-1]
}

// ruleName and emitName name rows as in a file.
func (g *Grammar) ruleName(x, p int) string {
	if g.Kind != NCFG {
		return g.Nonterminals[x]
	}
	return g.Nonterminals[x] + "|" + g.Parent(p)
}

func (g *Grammar) emitName(t, x int) string {
	if g.Kind != NCFG {
		return g.Preterminals[t]
	}
	return g.Preterminals[t] + "|" + g.Nonterminals[x]
}

// LogProbs are the logarithms of all probabilities, to be fed to a graph. The dtype is
// Float32 or Float64; the latter gives log-likelihoods to twelve digits.
func (g *Grammar) LogProbs(dtype dtypes.DType) LogProbTensors {
	n, t, s, v := len(g.Nonterminals), len(g.Preterminals), g.symbols(), len(g.Words)
	byWord := make([]float64, len(g.Emit))
	rows := t * g.hosts()
	for r := range rows {
		for w := range v {
			byWord[w*rows+r] = g.Emit[r*v+w]
		}
	}
	ruleDims, emitDims := []int{n, s, s}, []int{v, t}
	if g.Kind == NCFG {
		ruleDims, emitDims = []int{n, n + 1, s, s}, []int{v, t, n}
	}
	logs := logTensor[float64]
	if dtype == dtypes.Float32 {
		logs = logTensor[float32]
	}
	return LogProbTensors{logs(g.Root, n), logs(g.Rules, ruleDims...), logs(byWord, emitDims...)}
}

func logTensor[F float32 | float64](p []float64, dims ...int) *tensors.Tensor {
	out := make([]F, len(p))
	for i, v := range p {
		out[i] = F(math.Log(v))
	}
	return tensors.FromFlatDataAndDimensions(out, dims...)
}

// SetLogProbs fills in probabilities from logarithms, as float32 or float64, and normalises every
// row in double precision. Rows that are all zero stay so.
func (g *Grammar) SetLogProbs(t LogProbTensors) error {
	n, s, v := len(g.Nonterminals), g.symbols(), len(g.Words)
	for _, c := range []struct {
		what string
		from *tensors.Tensor
		to   []float64
	}{{"root", t.Root, g.Root}, {"rules", t.Rules, g.Rules}, {"emissions", t.Emit, g.Emit}} {
		if c.from.Shape().Size() != len(c.to) {
			return fmt.Errorf("grammar: %s of shape %s for %d probabilities", c.what, c.from.Shape(), len(c.to))
		}
	}
	exp := expInto[float64]
	if t.Root.DType() == dtypes.Float32 {
		exp = expInto[float32]
	}
	byWord := make([]float64, len(g.Emit))
	exp(g.Root, t.Root)
	exp(g.Rules, t.Rules)
	exp(byWord, t.Emit)
	normalise(g.Root, n)
	normalise(g.Rules, s*s)
	rows := len(g.Preterminals) * g.hosts()
	for r := range rows {
		for w := range v {
			g.Emit[r*v+w] = byWord[w*rows+r]
		}
	}
	normalise(g.Emit, v)
	return nil
}

func expInto[F float32 | float64](to []float64, from *tensors.Tensor) {
	for i, v := range tensors.MustCopyFlatData[F](from) {
		to[i] = math.Exp(float64(v))
	}
}

// normalise makes every row of a table sum to one.
func normalise(table []float64, row int) {
	for r := range slices.Chunk(table, row) {
		total := 0.0
		for _, p := range r {
			total += p
		}
		if total == 0 {
			continue
		}
		for i := range r {
			r[i] /= total
		}
	}
}
