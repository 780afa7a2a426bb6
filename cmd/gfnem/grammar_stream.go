package main

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/gomlx/compute"
	"golang.org/x/term"

	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/grammar/induce"
	"github.com/gfnem/gfnem/treebank"
)

// What is read before anything is computed: enough lines that many have about the same length, and no more text than is
// cheap to hold.
const (
	windowLines = 1024
	windowBytes = 16 << 20
)

// Sentences of a batch: at most maxRows, and fewer where their charts would take more than chartBytes.
const (
	maxRows    = 32
	chartBytes = 64 << 20
)

// stream answers sentences with a grammar, in order.
type stream struct {
	console
	reader  *sentenceReader
	grammar *grammar.Grammar
	parser  *induce.Parser
	network *induce.GFNParser // nil where nobody asked for it
	// compute answers sentences of about the same length, or says why there is no answer.
	compute func([]*sentence) error
	// instead is the answer of a bad line.
	instead func(*sentence) string

	lines   int
	skipped map[string]int // bad lines by kind
	first   int            // the first bad line
}

// openStream prepares to answer the sentences on standard input; close it at the end.
func openStream(c console, arg grammarArg, flags sentenceFlags) (*stream, error) {
	g, b, err := arg.open(c)
	if err != nil {
		return nil, err
	}
	return newStream(c, b, g, flags)
}

func newStream(c console, b compute.Backend, g *grammar.Grammar, flags sentenceFlags) (*stream, error) {
	r, err := newSentenceReader(c.in, g.Words, flags)
	if err != nil {
		return nil, err
	}
	p, err := induce.NewParser(b, g)
	if err != nil {
		return nil, err
	}
	return &stream{
		console: c, reader: r, grammar: g, parser: p, skipped: map[string]int{},
		instead: func(*sentence) string { return "" },
	}, nil
}

// close releases what the stream computes with.
func (s *stream) close() {
	s.parser.Close()
	if s.network != nil {
		s.network.Close()
	}
}

// run answers all sentences. At a line that cannot be used it stops, unless these are to be skipped; what comes before that
// line is answered.
func (s *stream) run() error {
	if f, ok := s.in.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		fmt.Fprintln(s.err, "Type sentences, one a line, and end with Ctrl-D.")
	}
	out := bufio.NewWriter(s.out)
	for {
		window, end := s.read()
		if err := s.answer(window); err != nil {
			return err
		}
		err := s.print(out, window)
		if e := out.Flush(); err == nil {
			err = e
		}
		switch {
		case err != nil:
			return err
		case end == io.EOF:
			s.reportSkipped()
			return nil
		case end != nil:
			return end
		}
	}
}

// read returns some lines. If an error ends them, it comes with them.
func (s *stream) read() (window []*sentence, err error) {
	for bytes := 0; len(window) < windowLines && bytes < windowBytes; {
		one, err := s.reader.next()
		if err != nil {
			return window, err
		}
		window = append(window, one)
		if one.bad != nil && !s.reader.SkipBad {
			break
		}
		bytes += len(s.reader.buffer)
	}
	return window, nil
}

// answer groups sentences by length, so that few programs serve all, and computes their answers.
func (s *stream) answer(window []*sentence) error {
	groups := map[int][]*sentence{}
	for _, one := range window {
		if one.bad == nil {
			n := lengthClass(len(one.ids), s.reader.limit)
			groups[n] = append(groups[n], one)
		}
	}
	for _, n := range slices.Sorted(maps.Keys(groups)) {
		s.parser.Bucket, s.parser.Rows = n, s.rows(n)
		if s.network != nil {
			s.network.Bucket, s.network.Rows = n, s.parser.Rows
		}
		if err := s.compute(groups[n]); err != nil {
			return err
		}
	}
	return nil
}

// lengthClass returns the length that a sentence is padded to: 5, 10, 15, 20, 30, 40, 60, 80, 120, ..., at most the greatest
// length. A program is compiled for each, so there are few.
func lengthClass(n, most int) int {
	class := 5
	for step := 5; class < n; class += step {
		if class == 4*step {
			step *= 2
		}
	}
	return min(class, most)
}

// rows is the number of sentences of a batch whose charts are small enough together.
func (s *stream) rows(n int) int {
	chart := n * n * (len(s.grammar.Nonterminals) + len(s.grammar.Preterminals)) * 8
	if s.grammar.Kind == grammar.NCFG {
		chart *= len(s.grammar.Nonterminals)
	}
	return min(max(chartBytes/chart, 1), maxRows)
}

// print writes the answers of a window.
func (s *stream) print(out *bufio.Writer, window []*sentence) error {
	for _, one := range window {
		s.lines++
		answer := one.answer
		if one.bad != nil {
			if !s.reader.SkipBad {
				return one.bad.err
			}
			if len(s.skipped) == 0 {
				s.first = one.line
			}
			s.skipped[one.bad.kind]++
			answer = s.instead(one)
		}
		if _, err := out.WriteString(answer + "\n"); err != nil {
			return err
		}
	}
	return nil
}

// reportSkipped says how many lines were bad, and why.
func (s *stream) reportSkipped() {
	if len(s.skipped) == 0 {
		return
	}
	total := 0
	var kinds []string
	for kind, n := range s.skipped {
		total += n
		kinds = append(kinds, fmt.Sprintf("%d %s", n, kind))
	}
	slices.Sort(kinds)
	fmt.Fprintf(s.err, "skipped %d of %d lines: %s; the first is line %d\n", total, s.lines, strings.Join(kinds, ", "), s.first)
}

// idsOf makes sentences as a parser takes them.
func idsOf(group []*sentence) []treebank.Sentence {
	out := make([]treebank.Sentence, len(group))
	for i, s := range group {
		out[i].Words = s.ids
	}
	return out
}
