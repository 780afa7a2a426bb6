package grammarcmd

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gomlx/compute"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/cli/command"
	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/grammar/induce"
	"github.com/gfnem/gfnem/grammar/parse"
	"github.com/gfnem/gfnem/internal/self"
	"github.com/gfnem/gfnem/report"
	"github.com/gfnem/gfnem/rng"
	"github.com/gfnem/gfnem/run"
	"github.com/gfnem/gfnem/treebank"
)

type parseCmd struct {
	grammarArg
	sentenceFlags
	Decode string `help:"Which tree: viterbi, mbr, sample, gfn or gfn-mbr." default:"viterbi"`
	Seed   uint64 `help:"Seed of --decode sample, gfn and gfn-mbr."`
	Format string `help:"How trees are printed: bracket, json or conllu (default: bracket)."`
	JSON   bool   `help:"The same as --format json: one JSON object a line."`
	SVG    string `name:"svg" help:"Draw the tree of line N into N.svg in a folder, too." placeholder:"DIR"`
}

// Help implements kong's detailed help.
func (parseCmd) Help() string {
	return `Examples:
  gfnem parse runs/wsj < sentences.txt > trees.txt
  gfnem parse runs/wsj --decode mbr --svg trees < raw.txt           and a picture of each tree
  gfnem parse runs/gfn --decode gfn --seed 3 < sentences.txt        a run of "train grammar --method gfn"
  echo "the dog barks" | gfnem parse english.json --json

Prints a tree of each sentence in brackets, such as (S (NP (D the) (N dog)) (V barks)), over the words as they were given:
  viterbi   the most probable derivation, preterminals included
  mbr       the tree with the greatest expected number of right spans; it has no labels, so all are written X
  sample    a draw from the posterior; the same seed and input give the same trees
  gfn       a draw from the run's GFlowNet, at temperature 1; preterminals are summed out, so words have none: (S (NP the dog) barks)
  gfn-mbr   as mbr, where 32 draws from the GFlowNet say which spans are right
The last two need a run of method gfn, and sentences no longer than those it has learned to read.

With --format json an object has words, tree, spans (first and last word, counted from 0, and label; parts come before the whole),
tags, log_prob (log p(x), in nats; null for a single word), and
  log_prob_derivation   log p(x,z,tags)                                                        viterbi
  expected_spans        the expected number of right spans, the whole sentence counted         mbr, gfn-mbr
  log_prob_tree         log p(x,z), left out where p(x,z) is 0                                 gfn
  log_forward           log P_F of the trajectory that was drawn                               gfn
  log_backward          log P_B of the same steps undone                                       gfn
With --format conllu words have their preterminals as language-specific parts of speech, and a comment has the tree.
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
	format, err := c.format()
	if err != nil {
		return err
	}
	p := &parsing{decode: parse.Decode(c.Decode), seed: c.Seed, format: format, svg: c.SVG}
	if c.SVG != "" {
		if err := os.MkdirAll(c.SVG, 0o777); err != nil {
			return err
		}
	}
	g, b, err := p.open(con, c.grammarArg)
	if err != nil {
		return err
	}
	p.names, p.exact = g, parse.NewExact(b, g)
	if p.decode.Unlabelled() {
		p.names = nameless
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
	a := answering{parsers: parsers, several: p.parse, word: p.single}
	if p.format == formatJSON {
		a.instead = complaint
	}
	return c.answer(con, g, a)
}

// format is how trees are printed.
func (c parseCmd) format() (string, error) {
	known := []string{formatBracket, formatJSON, formatCoNLL}
	switch {
	case c.Format != "" && !slices.Contains(known, c.Format):
		return "", command.Unknown("format", c.Format, known)
	case !c.JSON:
		return cmp.Or(c.Format, formatBracket), nil
	case c.Format != "" && c.Format != formatJSON:
		return "", badinput.Errorf("--json is --format json: leave out --json, or --format %s", c.Format)
	}
	return formatJSON, nil
}

// The formats of trees.
const (
	formatBracket = "bracket"
	formatJSON    = "json"
	formatCoNLL   = "conllu"
)

// complaint answers a line that cannot be used.
func complaint(l *parse.Line) string {
	return encode(struct {
		Line  int    `json:"line"`
		Error string `json:"error"`
	}{l.Number, l.Err.Error()})
}

// parsing answers sentences with trees.
type parsing struct {
	parse.Parser // that finds them
	exact        *parse.Exact
	decode       parse.Decode
	seed         uint64
	format, svg  string
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
	if p.format == formatJSON && p.decode == parse.GFNSample {
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
			LogProb: finite(logX[i]), LogProbDerivation: known(f.LogDerivation), ExpectedSpans: known(f.Spans),
			LogForward: known(f.LogForward), LogBackward: known(f.LogBack),
		}
		if p.decode == parse.GFNSample && !math.IsInf(logTree[i], -1) { // a tree that the grammar does not have can be drawn
			out.LogProbTree = &logTree[i]
		}
		if err := p.answer(l, f.Tree, out); err != nil {
			return err
		}
	}
	return nil
}

// single answers a line of one word, for which the grammar has no tree.
func (p *parsing) single(l *parse.Line) error {
	names := p.names
	defer func() { p.names = names }()
	p.names = &grammar.Grammar{Preterminals: []string{"X"}}
	return p.answer(l, &grammar.Tree{Tags: []int{0}}, parseJSON{Spans: []spanJSON{}})
}

// logX returns log p(x) where it is asked for, or anything that is -Inf for a sentence without a tree.
func (p *parsing) logX(sentences []treebank.Sentence, found []parse.Found) ([]float64, error) {
	if p.format == formatJSON && p.decode != parse.Sample || p.decode == parse.MBR {
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

// answer writes a tree in one of the formats, and draws it.
func (p *parsing) answer(l *parse.Line, t *grammar.Tree, out parseJSON) error {
	text := p.names.Format(t, l.Words)
	drawn := report.Tree{Words: l.Words}
	for _, span := range t.Spans() {
		label := p.names.Nonterminals[span.Label]
		out.Spans = append(out.Spans, spanJSON{span.First, span.Last, label})
		drawn.Constituents = append(drawn.Constituents, report.Constituent{First: span.First, Last: span.Last, Label: label})
	}
	for _, tag := range t.Tags {
		out.Tags = append(out.Tags, p.names.Preterminals[tag])
	}
	if drawn.Tags = out.Tags; p.decode.Unlabelled() {
		drawn = unlabelled(drawn)
	}
	switch p.format {
	case formatJSON:
		out.Words, out.Tree = l.Words, text
		l.Answer = encode(out)
	case formatCoNLL:
		l.Answer = conll(l, out.Tags, text)
	default:
		l.Answer = text
	}
	if p.svg == "" {
		return nil
	}
	svg, err := report.NewFigure(drawn).SVG()
	if err != nil {
		return err
	}
	return run.WriteFile(filepath.Join(p.svg, fmt.Sprintf("%d.svg", l.Number)), func(w io.Writer) error {
		_, err := w.Write(svg)
		return err
	})
}

// unlabelled leaves out the labels of a tree, which mean nothing.
func unlabelled(t report.Tree) report.Tree {
	t.Tags = nil
	for i := range t.Constituents {
		t.Constituents[i].Label = ""
	}
	return t
}

// conll writes a sentence as CoNLL-U, with its tree in a comment.
func conll(l *parse.Line, tags []string, tree string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# sent_id = %d\n# text = %s\n# tree = %s\n", l.Number, strings.Join(l.Words, " "), tree)
	for i, w := range l.Words {
		tag := "_"
		if tags != nil {
			tag = tags[i]
		}
		fmt.Fprintf(&b, "%d\t%s\t_\t_\t%s\t_\t_\t_\t_\t_\n", i+1, w, tag)
	}
	return b.String() // and the end of the line, which makes an empty one
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
	LogProb           *float64   `json:"log_prob"`
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
