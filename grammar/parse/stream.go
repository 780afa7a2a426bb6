package parse

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/gfnem/gfnem/grammar"
)

// What is read before anything is computed: enough lines that many have about the same length, and no more text than is
// cheap to hold.
const (
	WindowLines = 1024
	windowBytes = 16 << 20
)

// Sentences of a batch: at most maxRows, and fewer where their charts would take more than chartBytes.
const (
	maxRows    = 32
	chartBytes = 64 << 20
)

// Stream answers sentences, one a line, in their order.
type Stream struct {
	// Answer sets the answers to lines of about the same length, or complains.
	Answer func([]*Line) error
	// Word sets the answer to a line of one word: no nonterminal covers that.
	Word func(*Line) error
	// Instead, if not nil, is the answer to a line that cannot be used; otherwise that is empty.
	Instead func(*Line) string

	reader  *lineReader
	grammar *grammar.Grammar
	parsers []Parser

	lines   int
	usable  int            // of those read
	skipped map[string]int // bad lines by kind
	first   int            // the first bad line
}

// NewStream prepares to answer sentences with parsers of a grammar, which say how long these may be.
func NewStream(in io.Reader, g *grammar.Grammar, how Reading, parsers ...Parser) (*Stream, error) {
	r, err := newLineReader(in, g.Words, how)
	if err != nil {
		return nil, err
	}
	for _, p := range parsers {
		if most := p.Longest(); most > 0 && most < r.limit {
			r.limit, r.reason = most, "the GFlowNet has learned no longer ones, other decoders read them"
		}
	}
	return &Stream{reader: r, grammar: g, parsers: parsers, skipped: map[string]int{}}, nil
}

// Sentences is the number of those that were read so far and can be used.
func (s *Stream) Sentences() int { return s.usable }

// Run answers all sentences. At a line that cannot be used it stops, unless these are to be skipped, which it reports
// at the end; what comes before that line is answered.
func (s *Stream) Run(to, besides io.Writer) error {
	out := bufio.NewWriter(to)
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
			s.reportSkipped(besides)
			return nil
		case end != nil:
			return end
		}
	}
}

// read returns some lines. If an error ends them, it comes with them.
func (s *Stream) read() (window []*Line, err error) {
	for bytes := 0; len(window) < WindowLines && bytes < windowBytes; {
		one, err := s.reader.next()
		if err != nil {
			return window, err
		}
		window = append(window, one)
		if one.Err == nil {
			s.usable++
		}
		if one.Err != nil && !s.reader.SkipBad {
			break
		}
		bytes += len(s.reader.buffer)
	}
	return window, nil
}

// answer groups sentences by length, so that few programs serve all, and computes their answers.
func (s *Stream) answer(window []*Line) error {
	groups := map[int][]*Line{}
	for _, one := range window {
		if one.Err == nil && len(one.Words) == 1 {
			if err := s.Word(one); err != nil {
				return err
			}
		} else if one.Err == nil {
			n := lengthClass(len(one.Words), s.reader.limit)
			groups[n] = append(groups[n], one)
		}
	}
	for _, n := range slices.Sorted(maps.Keys(groups)) {
		for _, p := range s.parsers {
			p.SetBatches(s.rows(n), n)
		}
		if err := s.Answer(groups[n]); err != nil {
			return err
		}
	}
	return nil
}

// lengthClass returns the length that a sentence is padded to: 5, 10, 15, 20, 30, 40, 60, 80, 120, ..., at most the
// greatest length. A program is compiled for each, so there are few.
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
func (s *Stream) rows(n int) int {
	chart := n * n * (len(s.grammar.Nonterminals) + len(s.grammar.Preterminals)) * 8
	if s.grammar.Kind == grammar.NCFG {
		chart *= len(s.grammar.Nonterminals)
	}
	return min(max(chartBytes/chart, 1), maxRows)
}

// print writes the answers of a window.
func (s *Stream) print(out *bufio.Writer, window []*Line) error {
	for _, one := range window {
		s.lines++
		answer := one.Answer
		if one.Err != nil {
			if !s.reader.SkipBad {
				return one.Err
			}
			if len(s.skipped) == 0 {
				s.first = one.Number
			}
			s.skipped[one.kind]++
			if answer = ""; s.Instead != nil {
				answer = s.Instead(one)
			}
		}
		if _, err := out.WriteString(answer + "\n"); err != nil {
			return err
		}
	}
	return nil
}

// reportSkipped says how many lines were bad, and why.
func (s *Stream) reportSkipped(to io.Writer) {
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
	fmt.Fprintf(to, "skipped %d of %d lines: %s; the first is line %d\n",
		total, s.lines, strings.Join(kinds, ", "), s.first)
}
