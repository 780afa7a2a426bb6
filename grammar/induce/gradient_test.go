package induce

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/grammar/chain"
	"github.com/gfnem/gfnem/grammar/parse"
	"github.com/gfnem/gfnem/grammar/prior"
	"github.com/gfnem/gfnem/internal/program"
	"github.com/gfnem/gfnem/internal/testkit"
	"github.com/gfnem/gfnem/rng"
	"github.com/gfnem/gfnem/treebank"
)

// smallGrammar has 2 nonterminals, 2 preterminals, 3 words, and random probabilities.
func smallGrammar(r *rand.Rand, kind grammar.Kind) *grammar.Grammar {
	g := grammar.New(kind, numberedNames("N", 2), numberedNames("T", 2), numberedNames("w", 3))
	row := func(p []float64) {
		total := 0.0
		for i := range p {
			p[i] = math.Exp(r.NormFloat64())
			total += p[i]
		}
		for i := range p {
			p[i] /= total
		}
	}
	row(g.Root)
	for x := range 2 {
		for parent := range 3 {
			row(g.RuleRow(x, parent))
			row(g.EmitRow(parent%2, x))
		}
	}
	return g
}

// derivationsOf are all trees over a sentence with all labels and all tags.
func derivationsOf(n int) []*grammar.Tree {
	var out []*grammar.Tree
	for _, shape := range shapesOf(n) {
		for _, z := range labelled(shape, 2) {
			for tags := range 1 << n {
				d := &grammar.Tree{Left: z.Left, Right: z.Right, Label: z.Label}
				for i := range n {
					d.Tags = append(d.Tags, tags>>i&1)
				}
				out = append(out, d)
			}
		}
	}
	return out
}

// valueOf computes one number for each sentence from tables and what else is given.
type valueOf = func(p grammar.Potentials, in copyNodes) *Node

// copies are tables, and copies of a sentence with their weights, trees and tags, and a key.
type copies[G, Z, T any] struct {
	Tables                  G
	Weights, Words, Lengths T
	Trees                   Z
	Tags, Key               T
}

type copyNodes = copies[grammar.LogProbs, grammar.Trees, *Node]

type copyTensors = copies[grammar.LogProbTensors, grammar.TreeTensors, *tensors.Tensor]

// slope is values, and the gradient of their weighted sum by each of the tables.
type slope[T any] struct {
	Values   T
	Gradient []T
}

// gradients compiles a value, and returns its values and the gradient of its weighted sum in all tables, as one list.
func gradients(t *testing.T, value valueOf) func(copyTensors) (values, grad []float64) {
	t.Helper()
	set := program.NewSet(simd(), nil)
	t.Cleanup(set.Close)
	compute := func(in copyNodes) slope[*Node] {
		y := value(in.Tables.For(in.Words, in.Lengths), in)
		return slope[*Node]{y, Gradient(ReduceAllSum(Mul(y, in.Weights)), in.Tables.Root, in.Tables.Rules, in.Tables.Emit)}
	}
	p := program.New[copyTensors, slope[*tensors.Tensor]](set, "gradients", compute)
	return func(in copyTensors) ([]float64, []float64) {
		t.Helper()
		out, err := p.Call(in)
		if err != nil {
			t.Fatal(err)
		}
		var grad []float64
		for _, g := range out.Gradient {
			grad = append(grad, tensors.MustCopyFlatData[float64](g)...)
		}
		return tensors.MustCopyFlatData[float64](out.Values), grad
	}
}

// instance is a sentence with all of its derivations.
type instance struct {
	t           *testing.T
	tables      grammar.LogProbTensors
	words       []int32
	derivations []*grammar.Tree
}

func newInstance(t *testing.T, kind grammar.Kind, seed uint64) instance {
	tables := smallGrammar(rand.New(rand.NewPCG(seed, 3)), kind).LogProbs(dtypes.Float64)
	return instance{t, tables, []int32{2, 0, 1}, derivationsOf(3)}
}

// args are inputs of gradients for copies of the sentence with some trees.
func (x instance) args(weights []float64, trees []*grammar.Tree, key *tensors.Tensor) copyTensors {
	n := len(x.words)
	packed, err := grammar.PackTrees(trees, n)
	if err != nil {
		x.t.Fatal(err)
	}
	var words, lengths, tags []int32
	for _, z := range trees {
		words, lengths = append(words, x.words...), append(lengths, int32(n))
		for _, tag := range z.Tags {
			tags = append(tags, int32(tag))
		}
	}
	rows := len(trees)
	return copyTensors{
		Tables:  x.tables,
		Weights: tensors.FromFlatDataAndDimensions(weights, rows),
		Words:   tensors.FromFlatDataAndDimensions(words, rows, n),
		Lengths: tensors.FromFlatDataAndDimensions(lengths, rows),
		Trees:   packed,
		Tags:    tensors.FromFlatDataAndDimensions(tags, rows, n),
		Key:     key,
	}
}

func fill(n int, v float64) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = v
	}
	return out
}

var (
	ofSentence   = func(p grammar.Potentials, _ copyNodes) *Node { return grammar.LogLikelihood(p) }
	ofDerivation = func(p grammar.Potentials, in copyNodes) *Node { return p.LogDerivation(in.Trees, in.Tags) }
	ofTree       = func(p grammar.Potentials, in copyNodes) *Node { return p.LogTree(in.Trees) }
	ofShape      = func(p grammar.Potentials, in copyNodes) *Node { return p.LogShape(in.Trees) }
)

// Over the posterior, the mean gradient of log p(x,z,tags), that of log p(x,z), and that of log p(x,s) of shapes, is
// the gradient of log p(x): exactly, by enumeration of all derivations.
func TestPosteriorGradient(t *testing.T) {
	seed, key := testkit.Seed(t), rng.Key(0, "unused")
	for _, kind := range []grammar.Kind{grammar.CFG, grammar.NCFG} {
		x := newInstance(t, kind, seed)
		all := len(x.derivations)
		logX, want := gradients(t, ofSentence)(x.args(fill(1, 1), x.derivations[:1], key))
		score := gradients(t, ofDerivation)
		logD, _ := score(x.args(fill(all, 1), x.derivations, key))
		posterior := make([]float64, all)
		total := 0.0
		for i, v := range logD {
			posterior[i] = math.Exp(v - logX[0])
			total += posterior[i]
		}
		if !(math.Abs(total-1) <= 1e-10) {
			t.Errorf("%s: the posterior sums to %v", kind, total)
		}
		_, tagged := score(x.args(posterior, x.derivations, key))
		_, untagged := gradients(t, ofTree)(x.args(posterior, x.derivations, key))
		_, shaped := gradients(t, ofShape)(x.args(posterior, x.derivations, key))
		far := func(a, b float64) bool { return !(math.Abs(a-b) <= 1e-10) }
		for i := range want {
			if far(tagged[i], want[i]) || far(untagged[i], want[i]) || far(shaped[i], want[i]) {
				t.Errorf("%s, entry %d: %v with tags, %v without, %v of shapes, want %v",
					kind, i, tagged[i], untagged[i], shaped[i], want[i])
			}
		}
	}
}

// The mean gradient of exact sampling is that of log p(x). The gradient of a derivation counts its rules and words, at
// most 3 of each; mean and variance over the posterior are known by enumeration. Bernstein's inequality makes false
// alarms rarer than 1e-5. Most probable derivations instead of samples are caught, and so is the shape that is drawn
// less often of the two.
func TestSampledGradient(t *testing.T) {
	seed := testkit.Seed(t)
	const draws = 4000
	for _, kind := range []grammar.Kind{grammar.CFG, grammar.NCFG} {
		x := newInstance(t, kind, seed)
		mean, variance := x.moments()
		logRate := math.Log(2 * float64(len(mean)) / 1e-5)
		worstOf := func(z *grammar.Tree, value valueOf) float64 {
			_, grad := gradients(t, value)(x.args(fill(draws, 1.0/draws), slices.Repeat([]*grammar.Tree{z}, draws), rng.Key(seed, "draws")))
			most := 0.0 // of the distances from the mean, in units of what is allowed
			for i := range grad {
				allowed := logRate + math.Sqrt(logRate*logRate+2*logRate*draws*variance[i])
				most = max(most, draws*math.Abs(grad[i]-mean[i])/allowed)
			}
			return most
		}
		worst := func(value valueOf) float64 { return worstOf(x.derivations[0], value) }
		sampled := worst(func(p grammar.Potentials, in copyNodes) *Node {
			s := p.Sample(rng.In(in.Key))
			return p.LogDerivation(s.Trees, s.Tags)
		})
		if sampled > 1 {
			t.Errorf("%s: an entry of the gradient is %.2f times as far from its mean as allowed", kind, sampled)
		}
		// Shapes vary less. Four samples of each sentence share a chart.
		shaped := worst(func(p grammar.Potentials, in copyNodes) *Node {
			s := p.Samples(rng.In(in.Key), 4)
			return MulScalar(ReduceSum(Reshape(p.Repeat(4).LogShape(s.Trees), 4, draws), 0), 0.25)
		})
		if shaped > 1 {
			t.Errorf("%s: an entry of the gradient of shapes is %.2f times as far from its mean as allowed", kind, shaped)
		}
		if best := worst(func(p grammar.Potentials, _ copyNodes) *Node {
			s := p.Viterbi()
			return p.LogDerivation(s.Trees, s.Tags)
		}); best < 1 {
			t.Errorf("%s: the test does not tell samples from most probable derivations: %.2f of what is allowed", kind, best)
		}
		if one := max(worstOf(x.derivations[0], ofShape), worstOf(x.derivations[len(x.derivations)-1], ofShape)); one < 1 {
			t.Errorf("%s: the test does not tell samples from always the same shape: %.2f of what is allowed", kind, one)
		}
	}
}

// moments are the mean and variance of the gradient of log p(x,z,tags) over the posterior.
func (x instance) moments() (mean, variance []float64) {
	score := gradients(x.t, ofDerivation)
	var logs []float64
	var grads [][]float64
	total := 0.0
	for _, d := range x.derivations {
		v, g := score(x.args(fill(1, 1), []*grammar.Tree{d}, rng.Key(0, "unused")))
		logs, grads = append(logs, v[0]), append(grads, g)
		total += math.Exp(v[0])
	}
	mean, variance = make([]float64, len(grads[0])), make([]float64, len(grads[0]))
	for k, g := range grads {
		p := math.Exp(logs[k]) / total
		for i, v := range g {
			mean[i] += p * v
			variance[i] += p * v * v
		}
	}
	for i, m := range mean {
		variance[i] = max(0, variance[i]-m*m)
	}
	return mean, variance
}

// The chains of a session draw trees in proportion to p(x,z) exp(-E(z)/T), by enumeration of the trees over three
// words. The chi-square test has a false-alarm rate of 1e-5; without the prior the distribution is another, which is
// seen.
func TestChainsWithPrior(t *testing.T) {
	c := tinyConfig(MCEM)
	c.Prior.On, c.Model.Nonterminals, c.Model.Width, c.Seed = true, 2, 128, testkit.Seed(t) // wide networks begin with flat distributions
	s := tinySession(t, c)
	s.prior.Params = spreadPrior(rng.New(c.Seed, "test"), 3)
	const chains, temperature = 1500, 0.9
	sentence := treebank.Sentence{Words: []int32{0, 2, 4}}
	b := parse.Batches{Rows: chains, Bucket: 1, Most: 3}.Pad([]treebank.Sentence{sentence})
	e := s.loop.E.(chainStep)
	w, err := e.weigh.Call(b.SentenceTensors)
	if err != nil {
		t.Fatal(err)
	}
	scores, err := chain.NewWeights(w, tensors.MustCopyFlatData[int32](b.Lengths))
	if err != nil {
		t.Fatal(err)
	}
	posterior, grammarAlone := map[string]float64{}, map[string]float64{}
	sum, sumAlone := 0.0, 0.0
	for _, shape := range shapesOf(3) {
		for _, z := range labelled(shape, 2) {
			p := math.Exp(scores.LogTree(0, z))
			q := p * math.Exp(-prior.NewNet(s.prior.Params).Energy(chain.NewTree(z))/temperature)
			posterior[z.Shape()], grammarAlone[z.Shape()] = q, p
			sum, sumAlone = sum+q, sumAlone+p
		}
	}
	for k := range posterior {
		posterior[k] /= sum
		grammarAlone[k] /= sumAlone
	}
	// The prior cools with the number of M-steps.
	logPrior := func(m uint64) float64 {
		return e.logPrior(em.Moment{Iteration: 3, M: m}, 1)(0, chain.NewTree(labelled(shapesOf(3)[0], 2)[0]))
	}
	if got, want := logPrior(0)/logPrior(uint64(s.Horizon)), s.Prior.TemperatureEnd/s.Prior.Temperature; math.Abs(got/want-1) > 1e-9 {
		t.Errorf("over the horizon the prior fades by %g, want %g", got, want)
	}
	s.Chain = 60
	e.logPrior = func(_ em.Moment, sentences int) func(int, *chain.Tree) float64 {
		return s.prior.LogPrior(sentences, temperature)
	}
	results, err := e.run(em.Moment{}, b)
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for _, r := range results {
		counts[r.Tree.Shape()]++
	}
	if q := testkit.ChiSquare(counts, posterior); q < 1e-5 {
		t.Errorf("chains end at %v, want %v: improbable by %.1g", counts, posterior, q)
	}
	if q := testkit.ChiSquare(counts, grammarAlone); q > 1e-5 {
		t.Errorf("the test does not see the prior: %s", fmt.Sprint(counts, grammarAlone))
	}
}
