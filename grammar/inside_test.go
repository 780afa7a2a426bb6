package grammar

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/internal/program"
	"github.com/gfnem/gfnem/internal/testkit"
)

// given is tables and sentences.
type given[G, T any] struct {
	Tables         G
	Words, Lengths T
}

// compiled runs a function of potentials on explicit grammars; it is compiled once for each shape.
type compiled[Out any] struct {
	*program.Program[given[LogProbTensors, *tensors.Tensor], Out]
}

func newProgram[Out, NodesOut any](f func(p Potentials) NodesOut) compiled[Out] {
	set := program.NewSet(newBackend(), nil)
	ask := func(in given[LogProbs, *Node]) NodesOut { return f(in.Tables.For(in.Words, in.Lengths)) }
	return compiled[Out]{program.New[given[LogProbTensors, *tensors.Tensor], Out](set, "test", ask)}
}

func (p compiled[Out]) run(t testing.TB, g *Grammar, words, lengths *tensors.Tensor) Out {
	t.Helper()
	return call(t, p.Program, given[LogProbTensors, *tensors.Tensor]{g.LogProbs(dtypes.Float64), words, lengths})
}

func call[In, Out any](t testing.TB, p *program.Program[In, Out], in In) Out {
	t.Helper()
	out, err := p.Call(in)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// floats returns the numbers of a tensor.
func floats(x *tensors.Tensor) (out []float64) {
	switch x.DType() {
	case dtypes.Int32:
		for _, v := range tensors.MustCopyFlatData[int32](x) {
			out = append(out, float64(v))
		}
	case dtypes.Float32:
		for _, v := range tensors.MustCopyFlatData[float32](x) {
			out = append(out, float64(v))
		}
	default:
		out = tensors.MustCopyFlatData[float64](x)
	}
	return out
}

// sizes of random grammars: few, since each is a program.
var sizes = []struct {
	kind    Kind
	nt, pt  int
	n       int
	lengths []int32
}{
	{CFG, 2, 2, 5, []int32{2, 3, 4, 5}},
	{CFG, 3, 1, 4, []int32{4, 2, 4, 3}},
	{CFG, 1, 3, 4, []int32{4, 4, 3, 2}},
	{CFG, 2, 2, 2, []int32{2, 2}},
	{CFG, 2, 2, 3, []int32{3, 2, 3}},
	{NCFG, 2, 2, 5, []int32{2, 3, 4, 5}},
	{NCFG, 3, 1, 4, []int32{4, 2, 4, 3}},
	{NCFG, 1, 3, 4, []int32{4, 4, 3, 2}},
	{NCFG, 2, 2, 2, []int32{2, 2}},
	{NCFG, 2, 2, 3, []int32{3, 2, 3}},
}

// forRandomGrammars calls f for a thousand grammars of all sizes, the same program for all of a size.
func forRandomGrammars[Out, NodesOut any](
	t *testing.T, f func(t *testing.T, r *rand.Rand, g *Grammar, n int, lengths []int32, p compiled[Out]),
	build func(Potentials) NodesOut,
) {
	r := rand.New(rand.NewPCG(testkit.Seed(t), 0))
	for _, s := range sizes {
		p := newProgram[Out](build)
		for i := range 100 {
			f(t, r, randomGrammar(r, s.kind, s.nt, s.pt, 3, []float64{0, 0.4}[i%2]), s.n, s.lengths, p)
			if t.Failed() {
				t.Fatalf("%s with %d nonterminals, %d preterminals, %d words, grammar %d", s.kind, s.nt, s.pt, s.n, i)
			}
		}
	}
}

func same(t *testing.T, what string, got, want []float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %d numbers, want %d", what, len(got), len(want))
		return
	}
	for i := range want {
		if !near(got[i], want[i]) || math.IsNaN(got[i]) {
			t.Errorf("%s[%d] = %v, want %v", what, i, got[i], want[i])
			return
		}
	}
}

// insideOut is marginals, the likelihood again, and its weighted gradient.
type insideOut[M, T any] struct {
	Marginals M
	LogX      T
	Gradient  slopes[T]
}

// slopes are gradients to potentials.
type slopes[T any] struct{ Root, Rules, Terms, Spans T }

// marginalTensors are Marginals on the host.
type marginalTensors struct {
	LogLikelihood, Spans, Labels, Tags, Root, Rules *tensors.Tensor
}

// The likelihood, the marginals and the gradient of the likelihood are those of an enumeration of all derivations.
func TestMarginalsAgainstEnumeration(t *testing.T) {
	build := func(p Potentials) insideOut[Marginals, *Node] {
		m := p.Marginals()
		weight := Const(p.Root.Graph(), []float64{1, -2, 0.5, 3}[:p.Terms.Shape().Dim(0)])
		p.Spans = Zeros(p.Root.Graph(), m.Spans.Shape())
		like := LogLikelihood(p)
		// A sentence without derivations has no gradient.
		finite := Where(GreaterThan(like, ConstAs(like, never)), like, ZerosLike(like))
		grads := Gradient(ReduceAllSum(Mul(finite, weight)), p.Root, p.Rules, p.Terms, p.Spans)
		return insideOut[Marginals, *Node]{m, like, program.Of[slopes[*Node]](grads)}
	}
	type result = insideOut[marginalTensors, *tensors.Tensor]
	forRandomGrammars(t, func(t *testing.T, r *rand.Rand, g *Grammar, n int, lengths []int32, p compiled[result]) {
		flat, words, lens := sentences(r, n, 3, lengths)
		one, weighted := newTally(g, n, len(lengths)), newTally(g, n, len(lengths))
		var likes []float64
		for b, l := range lengths {
			all := enumerate(g, flat[b*n:][:l])
			likes = append(likes, logTotal(all))
			one.add(g, b, all, 1)
			weighted.add(g, b, all, []float64{1, -2, 0.5, 3}[b])
		}
		out := p.run(t, g, words, lens)
		same(t, "log p(x)", floats(out.Marginals.LogLikelihood), likes)
		same(t, "root", floats(out.Marginals.Root), one.root)
		same(t, "rules", floats(out.Marginals.Rules), one.rules)
		same(t, "tags", floats(out.Marginals.Tags), one.tags)
		same(t, "labels", floats(out.Marginals.Labels), one.labels)
		same(t, "spans", floats(out.Marginals.Spans), one.spans)
		same(t, "differentiable log p(x)", floats(out.LogX), likes)
		same(t, "gradient to root", floats(out.Gradient.Root), weighted.root)
		same(t, "gradient to rules", floats(out.Gradient.Rules), weighted.rules)
		same(t, "gradient to terms", floats(out.Gradient.Terms), weighted.terms)
		same(t, "gradient to spans", floats(out.Gradient.Spans), weighted.spans)
	}, build)
}

// tally counts parts of derivations in the shapes of potentials and marginals.
type tally struct {
	n                                       int
	root, rules, terms, tags, labels, spans []float64
}

func newTally(g *Grammar, n, b int) *tally {
	nt, pt := len(g.Nonterminals), len(g.Preterminals)
	return &tally{
		n: n, root: make([]float64, nt), rules: make([]float64, len(g.Rules)), terms: make([]float64, b*n*pt*g.hosts()),
		tags: make([]float64, b*n*pt), labels: make([]float64, b*n*n*nt), spans: make([]float64, b*n*n),
	}
}

// add counts all derivations of sentence b by their posterior probability, times a weight.
func (c *tally) add(g *Grammar, b int, all []*derivation, weight float64) {
	nt, pt := len(g.Nonterminals), len(g.Preterminals)
	total := logTotal(all)
	for _, d := range all {
		p := weight * math.Exp(d.logp-total)
		c.root[d.symbol] += p
		c.node(g, b, d, 0, p, nt, pt)
	}
}

func (c *tally) node(g *Grammar, b int, d *derivation, parent int, p float64, nt, pt int) {
	if d.left == nil {
		at := (b*c.n+d.start)*pt + d.symbol - nt
		c.tags[at] += p
		if g.Kind == NCFG {
			c.terms[at*nt+parent-1] += p
		} else {
			c.terms[at] += p
		}
		return
	}
	at := (b*c.n+d.start)*c.n + d.width - 1
	c.spans[at] += p
	c.labels[at*nt+d.symbol] += p
	row := d.symbol*g.parents() + min(parent, g.parents()-1)
	c.rules[(row*g.symbols()+d.left.symbol)*g.symbols()+d.right.symbol] += p
	c.node(g, b, d.left, d.symbol+1, p, nt, pt)
	c.node(g, b, d.right, d.symbol+1, p, nt, pt)
}
