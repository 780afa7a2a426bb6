package grammar

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/internal/testkit"
)

// program runs a function of potentials on explicit grammars; it is compiled once for each shape.
type compiled struct{ exec *Exec }

func newProgram(t testing.TB, f func(p Potentials) []*Node) compiled {
	t.Helper()
	exec, err := NewExec(newBackend(), func(in []*Node) []*Node {
		return f(LogProbs{in[0], in[1], in[2]}.For(in[3], in[4]))
	})
	if err != nil {
		t.Fatal(err)
	}
	return compiled{exec}
}

func (p compiled) run(t testing.TB, g *Grammar, words, lengths *tensors.Tensor) [][]float64 {
	t.Helper()
	tables := g.LogProbs(dtypes.Float64)
	return p.call(t, tables.Root, tables.Rules, tables.Emit, words, lengths)
}

func (p compiled) call(t testing.TB, args ...any) [][]float64 {
	t.Helper()
	out, err := p.exec.Call(args...)
	if err != nil {
		t.Fatal(err)
	}
	res := make([][]float64, len(out))
	for i, x := range out {
		switch x.DType() {
		case dtypes.Int32:
			for _, v := range tensors.MustCopyFlatData[int32](x) {
				res[i] = append(res[i], float64(v))
			}
		case dtypes.Float32:
			for _, v := range tensors.MustCopyFlatData[float32](x) {
				res[i] = append(res[i], float64(v))
			}
		default:
			res[i] = tensors.MustCopyFlatData[float64](x)
		}
	}
	return res
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
func forRandomGrammars(t *testing.T, f func(t *testing.T, r *rand.Rand, g *Grammar, n int, lengths []int32, p compiled), build func(Potentials) []*Node) {
	r := rand.New(rand.NewPCG(testkit.Seed(t), 0))
	for _, s := range sizes {
		p := newProgram(t, build)
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

// The likelihood, the marginals and the gradient of the likelihood are those of an enumeration of all derivations.
func TestMarginalsAgainstEnumeration(t *testing.T) {
	build := func(p Potentials) []*Node {
		m := p.Marginals()
		weight := Const(p.Root.Graph(), []float64{1, -2, 0.5, 3}[:p.Terms.Shape().Dim(0)])
		p.Spans = Zeros(p.Root.Graph(), m.Spans.Shape())
		like := LogLikelihood(p)
		// A sentence without derivations has no gradient.
		finite := Where(GreaterThan(like, ConstAs(like, never)), like, ZerosLike(like))
		grads := Gradient(ReduceAllSum(Mul(finite, weight)), p.Root, p.Rules, p.Terms, p.Spans)
		return append([]*Node{m.LogLikelihood, m.Root, m.Rules, m.Tags, m.Labels, m.Spans, like}, grads...)
	}
	forRandomGrammars(t, func(t *testing.T, r *rand.Rand, g *Grammar, n int, lengths []int32, p compiled) {
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
		same(t, "log p(x)", out[0], likes)
		same(t, "root", out[1], one.root)
		same(t, "rules", out[2], one.rules)
		same(t, "tags", out[3], one.tags)
		same(t, "labels", out[4], one.labels)
		same(t, "spans", out[5], one.spans)
		same(t, "differentiable log p(x)", out[6], likes)
		same(t, "gradient to root", out[7], weighted.root)
		same(t, "gradient to rules", out[8], weighted.rules)
		same(t, "gradient to terms", out[9], weighted.terms)
		same(t, "gradient to spans", out[10], weighted.spans)
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
