package induce

import (
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/backend"
	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/grammar/chain"
	"github.com/gfnem/gfnem/grammar/prior"
	"github.com/gfnem/gfnem/run"
	"github.com/gfnem/gfnem/treebank"
)

var simd = sync.OnceValue(func() compute.Backend {
	b, err := backend.Open("simd")
	if err != nil {
		panic(err)
	}
	return b
})

// patterns are sentences of determiners, nouns and verbs with their binary gold trees.
var patterns = []struct {
	tags string
	gold []treebank.Span
}{
	{"NV", []treebank.Span{{0, 1}}},
	{"DNV", []treebank.Span{{0, 1}, {0, 2}}},
	{"NVN", []treebank.Span{{1, 2}, {0, 2}}},
	{"NVDN", []treebank.Span{{2, 3}, {1, 3}, {0, 3}}},
	{"DNVDN", []treebank.Span{{0, 1}, {3, 4}, {2, 4}, {0, 4}}},
}

// tinyData is a treebank of a handful of words; all its trees are binary.
func tinyData(t testing.TB) *treebank.Dataset {
	t.Helper()
	words := map[rune][]string{'D': {"the", "a"}, 'N': {"cat", "dog"}, 'V': {"saw", "bit"}}
	v, err := treebank.NewVocabulary(strings.Fields("the a cat dog saw bit"))
	if err != nil {
		t.Fatal(err)
	}
	d := &treebank.Dataset{Source: "test", Vocabulary: v}
	r := rand.New(rand.NewPCG(5, 6))
	for _, split := range []struct {
		name string
		size int
	}{{treebank.Train, 70}, {treebank.Valid, 20}, {treebank.Test, 12}} {
		s := treebank.Split{Name: split.name, Gold: true}
		for range split.size {
			p := patterns[r.IntN(len(patterns))]
			x := treebank.Sentence{Gold: p.gold}
			for _, tag := range p.tags {
				x.Words = append(x.Words, v.ID(words[tag][r.IntN(2)]))
			}
			s.Sentences = append(s.Sentences, x)
		}
		d.Splits = append(d.Splits, s)
	}
	return d
}

// tinyConfig is a training of a second.
func tinyConfig(method string) Config {
	c := QuickConfig()
	c.Method, c.Model.Nonterminals, c.Model.Preterminals, c.Model.Width = method, 3, 4, 8
	c.AsPublished(4)
	c.MaxLength, c.Batch, c.Bucket, c.Pool, c.Updates, c.Optim.Warmup, c.Optim.Theta.Rate, c.Chain, c.Eval.Every = 5, 8, 5, 3, 200, 0, 0.02, 30, 0
	c.Prior.Updates = 6
	c.Model.ParentScale = 1 // parents matter from the start
	return c
}

func tinySession(t testing.TB, c Config) *Session {
	t.Helper()
	return sessionOn(t, simd(), c)
}

func sessionOn(t testing.TB, b compute.Backend, c Config) *Session {
	t.Helper()
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	s, err := NewSession(b, c, tinyData(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func steps(t testing.TB, s *Session, count int) {
	t.Helper()
	for range count {
		if _, err := s.Step(); err != nil {
			t.Fatal(err)
		}
	}
}

func stateOf(t testing.TB, s *Session) run.State {
	t.Helper()
	state, err := s.State()
	if err != nil {
		t.Fatal(err)
	}
	return state
}

// shapesOf are all trees over n words, with label 0.
func shapesOf(n int) (out []*grammar.Tree) {
	type node struct {
		word        int
		left, right *node
	}
	var over func(first, last int) []*node
	over = func(first, last int) (out []*node) {
		if first == last {
			return []*node{{word: first}}
		}
		for mid := first; mid < last; mid++ {
			for _, l := range over(first, mid) {
				for _, r := range over(mid+1, last) {
					out = append(out, &node{left: l, right: r})
				}
			}
		}
		return out
	}
	for _, top := range over(0, n-1) {
		z := &grammar.Tree{}
		var add func(at *node) int
		add = func(at *node) int {
			if at.left == nil {
				return at.word
			}
			l, r := add(at.left), add(at.right)
			z.Left, z.Right, z.Label = append(z.Left, l), append(z.Right, r), append(z.Label, 0)
			return n + len(z.Left) - 1
		}
		add(top)
		out = append(out, z)
	}
	return out
}

// labelled are all ways to give a tree labels below nt.
func labelled(z *grammar.Tree, nt int) []*grammar.Tree {
	out := []*grammar.Tree{{Left: z.Left, Right: z.Right}}
	for range z.Left {
		var longer []*grammar.Tree
		for _, t := range out {
			for x := range nt {
				label := append(append([]int{}, t.Label...), x)
				longer = append(longer, &grammar.Tree{Left: z.Left, Right: z.Right, Label: label})
			}
		}
		out = longer
	}
	return out
}

// spreadPrior is a prior in which the least and the greatest energy of trees over n words differ by 1.5.
func spreadPrior(r *rand.Rand, n int) []float64 {
	p := prior.NewParameters(r)
	for i := range p {
		p[i] *= 2 // so that inputs of elu have both signs
	}
	least, most := math.Inf(1), math.Inf(-1)
	for _, z := range shapesOf(n) {
		e := prior.NewNet(p).Energy(chain.NewTree(z))
		least, most = min(least, e), max(most, e)
	}
	last := p[len(p)-33:] // the energy is linear in the last layer
	for i := range last {
		last[i] *= 1.5 / (most - least)
	}
	return p
}

// tinyGFN is a GFlowNet of a tiny grammar, three nonterminals and sentences of two to five words.
func tinyGFN(seed uint64, kind grammar.Kind) Config {
	c := tinyConfig(GFN)
	c.Seed, c.Model.Grammar, c.Policy.Width, c.Policy.Layers, c.Policy.Heads = seed, string(kind), 8, 1, 2
	c.Sleep.Leaves, c.Sleep.Steps, c.Gate.Threshold, c.Gate.ThresholdEnd, c.MaxIterations = 6, 4, 1e9, 1e9, 40
	c.Moves.Count, c.Moves.Steps, c.Moves.FirstSteps, c.Updates = 2, 4, 2, 10
	return c
}

// sigmas is how many standard errors an estimate may be off: a normal number is further away once in 150,000 times.
const sigmas = 4.5

// widened are numbers of single precision.
func widened(t *tensors.Tensor) []float64 {
	values := tensors.MustCopyFlatData[float32](t)
	out := make([]float64, len(values))
	for i, v := range values {
		out[i] = float64(v)
	}
	return out
}
