package induce

import (
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/gomlx/compute"

	"github.com/gfnem/gfnem/backend"
	"github.com/gfnem/gfnem/grammar"
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
	c := Quick()
	c.Method, c.Nonterminals, c.Preterminals, c.Width = method, 3, 4, 8
	c.MaxLength, c.Batch, c.Bucket, c.Pool, c.Updates, c.Warmup, c.LR, c.Chain, c.EvalEvery = 5, 8, 5, 3, 200, 0, 0.02, 30, 0
	c.EBMUpdates = 6
	c.ParentScale = 1 // parents matter from the start
	return c
}

func tinySession(t testing.TB, c Config) *session {
	t.Helper()
	return sessionOn(t, simd(), c)
}

func sessionOn(t testing.TB, b compute.Backend, c Config) *session {
	t.Helper()
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	s, err := newSession(b, c, tinyData(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func steps(t testing.TB, s *session, count int) {
	t.Helper()
	for range count {
		if _, err := s.Step(); err != nil {
			t.Fatal(err)
		}
	}
}

func stateOf(t testing.TB, s *session) run.State {
	t.Helper()
	state, err := s.State()
	if err != nil {
		t.Fatal(err)
	}
	return state
}

// shapesOf are all trees over n words, with label 0.
func shapesOf(n int) []*grammar.Tree {
	var build func(first, last int) [][]treebank.Span
	build = func(first, last int) [][]treebank.Span {
		if first == last {
			return [][]treebank.Span{nil}
		}
		var out [][]treebank.Span
		for mid := first; mid < last; mid++ {
			for _, l := range build(first, mid) {
				for _, r := range build(mid+1, last) {
					s := append(append([]treebank.Span{}, l...), r...)
					out = append(out, append(s, treebank.Span{first, last}))
				}
			}
		}
		return out
	}
	var out []*grammar.Tree
	for _, spans := range build(0, n-1) {
		out = append(out, treeOf(spans, n))
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
