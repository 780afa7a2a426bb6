package main

import (
	"strings"

	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/rng"
)

// Observe turns sentences into observations, [B,Max] int32: letters are 1 to 26, and 0 is behind the end.
func (m *Lexicon) Observe(sentences ...string) *tensors.Tensor {
	x := make([]int32, len(sentences)*m.Max)
	for i, s := range sentences {
		for t := range s {
			x[i*m.Max+t] = int32(code(s[t]))
		}
	}
	return tensors.FromFlatDataAndDimensions(x, len(sentences), m.Max)
}

// without takes the spaces out of a sentence.
func without(spaces string) (s Sentence) {
	for i, w := range strings.Fields(spaces) {
		if i > 0 {
			s.Ends[len(s.Ends)-1] = true
		}
		s.Letters += w
		s.Ends = append(s.Ends, make([]bool, len(w))...)
	}
	return s
}

// rules are a small grammar: a symbol in capitals becomes one of its lines, the first ones more often.
var rules = map[string][]string{
	"S":      {"WHO SEES WHO", "WHO SLEEPS", "WHO SLEEPS NEAR WHO", "WHO IS ADJ", "ADV WHO SLEEPS", "WHO SLEEPS ADV"},
	"WHO":    {"DET NOUN", "NAME", "DET ADJ NOUN"},
	"DET":    {"the", "a", "my", "this", "some", "her"},
	"NOUN":   {"cat", "dog", "girl", "man", "tree", "boat", "bird", "horse", "queen", "child", "fish", "house", "mouse", "river", "garden"},
	"NAME":   {"she", "he", "it", "anna", "you", "tom", "peter", "mary", "we", "john"},
	"ADJ":    {"old", "small", "red", "happy", "young", "wise", "green", "quiet", "cold"},
	"SEES":   {"sees", "likes", "finds", "has", "wants", "hears", "paints", "keeps", "follows"},
	"SLEEPS": {"sleeps", "sings", "waits", "runs", "plays", "swims", "works"},
	"IS":     {"is", "was", "looks"},
	"NEAR":   {"near", "with", "by", "under", "for"},
	"ADV":    {"now", "often", "here", "today", "again", "then"},
}

// Made are n sentences of at most so many letters, of our own making.
func Made(seed uint64, stream string, n, largest int) (all []Sentence) {
	r := rng.New(seed, stream)
	var expand func(symbol string) string
	expand = func(symbol string) string {
		lines, ok := rules[symbol]
		if !ok {
			return symbol
		}
		u := r.Float64()
		line := lines[int(u*u*float64(len(lines)))]
		var out []string
		for _, s := range strings.Fields(line) {
			out = append(out, expand(s))
		}
		return strings.Join(out, " ")
	}
	for len(all) < n {
		if s := without(expand("S")); len(s.Letters) <= largest {
			all = append(all, s)
		}
	}
	return all
}
