package results

import (
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/gomlx/compute"

	"github.com/gfnem/gfnem/backend"
	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/grammar/induce"
	"github.com/gfnem/gfnem/treebank"
)

var simd = sync.OnceValue(func() compute.Backend {
	b, err := backend.Open("simd")
	if err != nil {
		panic(err)
	}
	return b
})

// tinyData is a treebank of a handful of words; all its trees are binary.
func tinyData(t testing.TB) *treebank.Dataset {
	t.Helper()
	patterns := []struct {
		tags string
		gold []treebank.Span
	}{
		{"NV", []treebank.Span{{0, 1}}},
		{"DNV", []treebank.Span{{0, 1}, {0, 2}}},
		{"NVN", []treebank.Span{{1, 2}, {0, 2}}},
		{"NVDN", []treebank.Span{{2, 3}, {1, 3}, {0, 3}}},
		{"DNVDN", []treebank.Span{{0, 1}, {3, 4}, {2, 4}, {0, 4}}},
	}
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
func tinyConfig(method string) induce.Config {
	c := induce.QuickConfig()
	c.Method, c.Model.Nonterminals, c.Model.Preterminals, c.Model.Width = method, 3, 4, 8
	c.AsPublished(4)
	c.MaxLength, c.Batch, c.Bucket, c.Pool, c.Updates, c.Optim.Warmup, c.Optim.Theta.Rate, c.Chain, c.Eval.Every = 5, 8, 5, 3, 200, 0, 0.02, 30, 0
	c.Model.ParentScale = 1 // parents matter from the start
	return c
}

// tinyGFN is one of a GFlowNet.
func tinyGFN(seed uint64, kind grammar.Kind) induce.Config {
	c := tinyConfig(induce.GFN)
	c.Seed, c.Model.Grammar, c.Policy.Width, c.Policy.Layers, c.Policy.Heads = seed, string(kind), 8, 1, 2
	c.Sleep.Leaves, c.Sleep.Steps, c.Gate.Threshold, c.Gate.ThresholdEnd, c.MaxIterations = 6, 4, 1e9, 1e9, 40
	c.Moves.Count, c.Moves.Steps, c.Moves.FirstSteps = 2, 4, 2
	return c
}

func tinySession(t testing.TB, c induce.Config, data *treebank.Dataset) session {
	t.Helper()
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	s, err := induce.NewSession(simd(), c, data)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return session{s}
}
