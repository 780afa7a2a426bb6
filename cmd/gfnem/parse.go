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
	Decode string `help:"Which tree: viterbi, mbr, sample, gfn or gfn-mbr." default:"viterbi"`
	Seed   uint64 `help:"Seed of --decode sample, gfn and gfn-mbr."`
	JSON   bool   `help:"Print one JSON object a line."`
}

// Help implements kong's detailed help.
func (parseCmd) Help() string {
	return `Examples:
  gfnem parse runs/wsj < sentences.txt > trees.txt
  gfnem parse runs/wsj --decode mbr --prepare < raw.txt
  gfnem parse runs/gfn --decode gfn --seed 3 < sentences.txt        a run of "train grammar --method gfn"
  echo "the dog barks" | gfnem parse english.json --json

Prints a tree of each sentence in brackets, such as (S (NP (D the) (N dog)) (V barks)), over the words as they were given:
  viterbi   the most probable derivation, preterminals included
  mbr       the tree with the greatest expected number of right spans; it has no labels, so all are written X
  sample    a draw from the posterior; the same seed and input give the same trees
  gfn       a draw from the run's GFlowNet, at temperature 1; preterminals are summed out, so words have none: (S (NP the dog) barks)
  gfn-mbr   as mbr, where 32 draws from the GFlowNet say which spans are right
The last two need a run of method gfn, and sentences no longer than those it has learned to read.

With --json an object has words, tree, spans (first and last word, counted from 0, and label; parts come before the whole),
tags, log_prob (log p(x), in nats), and
  log_prob_derivation   log p(x,z,tags)                                                        viterbi
  expected_spans        the expected number of right spans, the whole sentence counted         mbr, gfn-mbr
  log_prob_tree         log p(x,z), left out where p(x,z) is 0                                 gfn
  log_forward           log P_F of the trajectory that was drawn                               gfn
  log_backward          log P_B of the same steps undone                                       gfn
A sentence without a tree is a line that cannot be used; one that is skipped gives an object with line and error.

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
	decode := induce.Decode(c.Decode)
	open := openStream
	if byNetwork(decode) {
		open = openNetworkStream
	}
	s, err := open(con, c.grammarArg, c.sentenceFlags)
	if err != nil {
		return err
	}
	defer s.close()
	p := &parsing{stream: s, decode: decode, seed: c.Seed, json: c.JSON, names: s.grammar}
	if decode == induce.MBR || decode == induce.GFNMBR {
		p.names = &grammar.Grammar{Nonterminals: []string{"X"}, Preterminals: []string{"X"}}
	}
	s.compute = p.parse
	if byNetwork(decode) {
		s.compute = p.parseByNetwork
	}
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
	trees, weights, err := p.parser.Parse(ids, p.decode, p.nextSeed())
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
		out := parseJSON{LogProb: logs[i]}
		switch p.decode {
		case induce.Viterbi:
			out.LogProbDerivation = &weights[i]
		case induce.MBR:
			trees[i].Tags = make([]int, trees[i].Words())
			out.ExpectedSpans = &weights[i]
		}
		s.answer = p.format(s, trees[i], out)
	}
	return nil
}

// nextSeed is the seed of a group of sentences.
func (p *parsing) nextSeed() uint64 {
	seed := rng.New(p.seed, "parse", p.calls).Uint64()
	p.calls++
	return seed
}

// format writes a tree as text, or as JSON together with its probabilities.
func (p *parsing) format(s *sentence, t *grammar.Tree, out parseJSON) string {
	text := p.names.Format(t, s.words)
	if !p.json {
		return text
	}
	out.Words, out.Tree = s.words, text
	for _, span := range t.Spans() {
		out.Spans = append(out.Spans, spanJSON{span.First, span.Last, p.names.Nonterminals[span.Label]})
	}
	for _, tag := range t.Tags {
		out.Tags = append(out.Tags, p.names.Preterminals[tag])
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
	Tags              []string   `json:"tags,omitempty"`
	LogProb           float64    `json:"log_prob"`
	LogProbDerivation *float64   `json:"log_prob_derivation,omitempty"`
	ExpectedSpans     *float64   `json:"expected_spans,omitempty"`
	LogProbTree       *float64   `json:"log_prob_tree,omitempty"`
	LogForward        *float64   `json:"log_forward,omitempty"`
	LogBackward       *float64   `json:"log_backward,omitempty"`
}

type spanJSON struct {
	First int    `json:"first"`
	Last  int    `json:"last"`
	Label string `json:"label"`
}
