package grammarcmd

import (
	"cmp"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/gomlx/compute"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/cli/command"
	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/grammar/induce"
	"github.com/gfnem/gfnem/grammar/parse"
	"github.com/gfnem/gfnem/internal/self"
	"github.com/gfnem/gfnem/rng"
	"github.com/gfnem/gfnem/run"
	"github.com/gfnem/gfnem/treebank"
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

` + sentenceHelp + "\n\n" + command.FallbackHelp
}

// Run parses sentences.
func (c parseCmd) Run(con command.Console) error {
	if !slices.Contains(parse.Decodes(), c.Decode) {
		return command.Unknown("decoder", c.Decode, parse.Decodes())
	}
	if err := command.CheckSeed(c.Seed); err != nil {
		return err
	}
	p := &parsing{decode: parse.Decode(c.Decode), seed: c.Seed, json: c.JSON}
	g, b, err := p.open(con, c.grammarArg)
	if err != nil {
		return err
	}
	p.names, p.exact = g, parse.NewExact(b, g)
	if p.decode.Unlabelled() {
		p.names = unlabelled
	}
	parsers := []parse.Parser{p.exact}
	if p.Parser == nil {
		p.Parser = p.exact
	} else {
		parsers = append(parsers, p.Parser)
	}
	for _, one := range parsers {
		defer one.Close()
	}
	var instead func(*parse.Line) string
	if c.JSON {
		instead = func(l *parse.Line) string {
			return encode(struct {
				Line  int    `json:"line"`
				Error string `json:"error"`
			}{l.Number, l.Err.Error()})
		}
	}
	return c.answer(con, g, parsers, p.parse, instead)
}

// parsing answers sentences with trees.
type parsing struct {
	parse.Parser // that finds them
	exact        *parse.Exact
	decode       parse.Decode
	seed         uint64
	json         bool
	names        *grammar.Grammar // of symbols
	calls        uint64
}

// open reads the grammar, and the GFlowNet of a run if that is asked for.
func (p *parsing) open(c command.Console, arg grammarArg) (*grammar.Grammar, compute.Backend, error) {
	if !p.decode.ByGFlowNet() {
		return arg.open(c)
	}
	info, err := os.Stat(arg.Grammar)
	if err != nil {
		return nil, nil, badinput.Errorf("%s is not a run folder: %w", arg.Grammar, err)
	}
	if !info.IsDir() {
		return nil, nil, badinput.Errorf(
			"%s is a file with a grammar and has no GFlowNet: give the folder of a run of %s",
			arg.Grammar, self.Command("train grammar --method gfn"))
	}
	r, err := run.Read(arg.Grammar)
	if err != nil {
		return nil, nil, err
	}
	b, err := arg.Open()
	if err != nil {
		return nil, nil, err
	}
	g, net, warnings, err := induce.ReadGFlowNet(b, r)
	if err := cmp.Or(arg.Allow(c, r, warnings), err); err != nil {
		return nil, nil, err
	}
	p.Parser = net
	return g, b, nil
}

// parse answers sentences of about the same length.
func (p *parsing) parse(lines []*parse.Line) error {
	sentences := parse.Sentences(lines)
	found, err := p.Parse(sentences, p.decode, p.nextSeed())
	if err != nil {
		return err
	}
	logX, err := p.logX(sentences, found)
	if err != nil {
		return err
	}
	logTree := make([]float64, len(found))
	if p.json && p.decode == parse.GFNSample {
		if logTree, err = p.exact.LogTrees(sentences, parse.Trees(found)); err != nil {
			return err
		}
	}
	for i, l := range lines {
		if math.IsInf(logX[i], -1) {
			l.Complain("without a tree", "the grammar has no tree for this sentence")
			continue
		}
		f := found[i]
		if p.decode.Unlabelled() {
			f.Tree.Tags = make([]int, f.Tree.Words())
		}
		out := parseJSON{
			LogProb: logX[i], LogProbDerivation: known(f.LogDerivation), ExpectedSpans: known(f.Spans),
			LogForward: known(f.LogForward), LogBackward: known(f.LogBack),
		}
		if p.decode == parse.GFNSample && !math.IsInf(logTree[i], -1) { // a tree that the grammar does not have can be drawn
			out.LogProbTree = &logTree[i]
		}
		l.Answer = p.format(l, f.Tree, out)
	}
	return nil
}

// logX returns log p(x) where it is asked for, or anything that is -Inf for a sentence without a tree.
func (p *parsing) logX(sentences []treebank.Sentence, found []parse.Found) ([]float64, error) {
	if p.json && p.decode != parse.Sample || p.decode == parse.MBR {
		return p.exact.LogLikelihoods(sentences)
	}
	out := make([]float64, len(found))
	for i, f := range found {
		switch p.decode {
		case parse.Sample:
			out[i] = f.LogP
		case parse.Viterbi:
			out[i] = f.LogDerivation
		}
	}
	return out, nil
}

// known is nil for NaN.
func known(x float64) *float64 {
	if math.IsNaN(x) {
		return nil
	}
	return &x
}

// nextSeed is the seed of a group of sentences.
func (p *parsing) nextSeed() uint64 {
	seed := rng.New(p.seed, "parse", p.calls).Uint64()
	p.calls++
	return seed
}

// format writes a tree as text, or as JSON together with its probabilities.
func (p *parsing) format(l *parse.Line, t *grammar.Tree, out parseJSON) string {
	text := p.names.Format(t, l.Words)
	if !p.json {
		return text
	}
	out.Words, out.Tree = l.Words, text
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
	if err := command.PrintJSON(&b, v); err != nil {
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
