package main

import (
	"math"
	"slices"
	"strings"

	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/grammar/induce"
	"github.com/gfnem/gfnem/rng"
)

type parseCmd struct {
	grammarArg
	sentenceFlags
	Decode string `help:"Which tree: viterbi, mbr or sample." default:"viterbi"`
	Seed   uint64 `help:"Seed of --decode sample."`
	JSON   bool   `help:"Print one JSON object a line."`
}

// Help implements kong's detailed help.
func (parseCmd) Help() string {
	return `Examples:
  gfnem parse runs/wsj < sentences.txt > trees.txt
  gfnem parse runs/wsj --decode mbr --prepare < raw.txt
  echo "the dog barks" | gfnem parse english.json --json

Prints a tree of each sentence in brackets, such as (S (NP (D the) (N dog)) (V barks)), over the words as they were given:
  viterbi   the most probable derivation, preterminals included
  mbr       the tree with the greatest expected number of right spans; it has no labels, so all are written X
  sample    a draw from the posterior; the same seed and input give the same trees

With --json an object has words, tree, spans (first and last word, counted from 0, and label; parts come before the whole),
tags, log_prob (log p(x), in nats), and log_prob_derivation (viterbi) or expected_spans (mbr). A sentence without a tree is a line that cannot be used; one
that is skipped gives an object with line and error.

` + sentenceHelp
}

// Run parses sentences.
func (c parseCmd) Run(con console) error {
	if !slices.Contains(induce.Decodes(), c.Decode) {
		return unknown("decoder", c.Decode, induce.Decodes())
	}
	if err := checkSeed(c.Seed); err != nil {
		return err
	}
	s, err := openStream(con, c.grammarArg, c.sentenceFlags)
	if err != nil {
		return err
	}
	defer s.parser.Close()
	p := &parsing{stream: s, decode: induce.Decode(c.Decode), seed: c.Seed, json: c.JSON, names: s.grammar}
	if p.decode == induce.MBR {
		p.names = &grammar.Grammar{Nonterminals: []string{"X"}, Preterminals: []string{"X"}}
	}
	s.compute = p.parse
	if c.JSON {
		s.instead = func(s *sentence) string {
			return encode(struct {
				Line  int    `json:"line"`
				Error string `json:"error"`
			}{s.line, s.bad.err.Error()})
		}
	}
	return s.run()
}

// parsing answers sentences with trees.
type parsing struct {
	*stream
	decode induce.Decode
	seed   uint64
	json   bool
	names  *grammar.Grammar // of symbols
	calls  uint64
}

// parse answers sentences of about the same length.
func (p *parsing) parse(group []*sentence) error {
	ids := idsOf(group)
	seed := rng.New(p.seed, "parse", p.calls).Uint64()
	p.calls++
	trees, weights, err := p.parser.Parse(ids, p.decode, seed)
	if err != nil {
		return err
	}
	logs := weights // log p(x) of samples; not finite without a derivation, as that of the best one
	if p.decode == induce.MBR || p.decode == induce.Viterbi && p.json {
		if logs, err = p.parser.LogLikelihoods(ids); err != nil {
			return err
		}
	}
	for i, s := range group {
		if math.IsInf(logs[i], -1) {
			s.complain("without a tree", "the grammar has no tree for this sentence")
			continue
		}
		s.answer = p.format(s, trees[i], weights[i], logs[i])
	}
	return nil
}

// format writes a tree as text or as JSON.
func (p *parsing) format(s *sentence, t *grammar.Tree, weight, logProb float64) string {
	if p.decode == induce.MBR {
		t.Tags = make([]int, t.Words())
	}
	text := p.names.Format(t, s.words)
	if !p.json {
		return text
	}
	out := parseJSON{Words: s.words, Tree: text, LogProb: logProb}
	for _, span := range t.Spans() {
		out.Spans = append(out.Spans, spanJSON{span.First, span.Last, p.names.Nonterminals[span.Label]})
	}
	for _, tag := range t.Tags {
		out.Tags = append(out.Tags, p.names.Preterminals[tag])
	}
	switch p.decode {
	case induce.Viterbi:
		out.LogProbDerivation = &weight
	case induce.MBR:
		out.ExpectedSpans = &weight
	}
	return encode(out)
}

// encode writes one JSON object without the end of the line.
func encode(v any) string {
	var b strings.Builder
	if err := printJSON(&b, v); err != nil {
		panic(err) // what is not finite was sorted out before
	}
	return strings.TrimSuffix(b.String(), "\n")
}

type parseJSON struct {
	Words             []string   `json:"words"`
	Tree              string     `json:"tree"`
	Spans             []spanJSON `json:"spans"`
	Tags              []string   `json:"tags"`
	LogProb           float64    `json:"log_prob"`
	LogProbDerivation *float64   `json:"log_prob_derivation,omitempty"`
	ExpectedSpans     *float64   `json:"expected_spans,omitempty"`
}

type spanJSON struct {
	First int    `json:"first"`
	Last  int    `json:"last"`
	Label string `json:"label"`
}
