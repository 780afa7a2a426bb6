package grammarcmd

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/cli/command"
	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/grammar/parse"
)

// nameless names the symbols of trees without labels.
var nameless = &grammar.Grammar{Nonterminals: []string{"X"}, Preterminals: []string{"X"}}

// sentence is a line of text that is looked at.
type sentence struct {
	Sentence string `json:"sentence" help:"a line of text"`
	AsIs     bool   `json:"as_is,omitempty" help:"words as they stand between spaces, whatever the training text went through"`
}

// Check implements command.Checked.
func (s sentence) Check() error { return sentences{Sentences: []string{s.Sentence}}.Check() }

// read returns the sentence with its words as numbers.
func (m *inspected) read(s sentence, parsers ...parse.Parser) (line *parse.Line, err error) {
	lines, err := m.stream([]string{s.Sentence}, s.AsIs, answering{
		parsers: parsers,
		several: func(lines []*parse.Line) error {
			line = lines[0]
			line.Answer = "null"
			return nil
		},
		word: func(l *parse.Line) error {
			l.Complain("of one word", "a sentence of one word has no tree")
			return nil
		},
	})
	if err == nil && line == nil && len(lines) > 0 {
		err = badinput.Errorf("%s", lines[0])
	}
	if err == nil && line == nil {
		err = badinput.Errorf("the sentence is empty")
	}
	return line, err
}

type (
	chart struct {
		Words   []string   `json:"words"`
		LogProb float64    `json:"log_prob" help:"log p(x), in nats"`
		Spans   []spanProb `json:"spans" help:"constituents of two words or more that are not improbable"`
	}
	spanProb struct {
		First       int         `json:"first"`
		Last        int         `json:"last"`
		Probability float64     `json:"probability"`
		Labels      []labelProb `json:"labels" help:"the most probable first"`
	}
	labelProb struct {
		Label       string  `json:"label"`
		Probability float64 `json:"probability"`
	}
)

// leastSpan is the probability from which a span is shown.
const leastSpan = 1e-3

func (m *inspected) chart(q sentence) (out chart, err error) {
	l, err := m.read(q, m.exact)
	if err != nil {
		return out, err
	}
	c, err := m.charts.Of(l.Sentence)
	if err != nil {
		return out, err
	}
	if c.Impossible() {
		return out, badinput.Errorf("the grammar has no tree for this sentence")
	}
	out.Words, out.LogProb = l.Words, c.LogP
	for first := range l.Words {
		for last := first + 1; last < len(l.Words); last++ {
			s := spanProb{First: first, Last: last}
			for label, p := range c.Labels(first, last) {
				s.Probability += p
				if p >= leastSpan {
					s.Labels = append(s.Labels, labelProb{m.grammar.Nonterminals[label], p})
				}
			}
			sortLabels(s.Labels)
			if s.Labels = s.Labels[:min(len(s.Labels), 5)]; s.Probability >= leastSpan {
				out.Spans = append(out.Spans, s)
			}
		}
	}
	return out, nil
}

func sortLabels(l []labelProb) {
	slices.SortStableFunc(l, func(a, b labelProb) int { return cmp.Compare(b.Probability, a.Probability) })
}

type (
	stepsRequest struct {
		sentence
		Seed uint64 `json:"seed,omitempty"`
		Most int    `json:"most,omitempty" help:"actions shown at each step; 8 if left out"`
	}
	built struct {
		Words []string    `json:"words"`
		Steps []builtStep `json:"steps"`
	}
	builtStep struct {
		Chosen  join   `json:"chosen"`
		Options []join `json:"options" help:"the most probable first"`
	}
	join struct {
		Gap         int     `json:"gap" help:"the trees that meet after the word of this number are joined"`
		Label       string  `json:"label,omitempty" help:"left out where labels are summed out"`
		Probability float64 `json:"probability"`
	}
)

// Check implements command.Checked.
func (q stepsRequest) Check() error {
	if q.Most < 0 || q.Most > 100 {
		return fmt.Errorf("most %d is not between 0 and 100", q.Most)
	}
	return cmp.Or(q.sentence.Check(), command.CheckSeed(q.Seed))
}

func (m *inspected) steps(q stepsRequest) (out built, err error) {
	if err := m.need(); err != nil {
		return out, err
	}
	l, err := m.read(q.sentence, m.net)
	if err != nil {
		return out, err
	}
	steps, err := m.stepper.Steps(l.Sentence, cmp.Or(q.Most, 8), q.Seed)
	named := func(j parse.Join) join {
		out := join{Gap: j.Gap, Probability: j.Probability}
		if j.Label >= 0 {
			out.Label = m.grammar.Nonterminals[j.Label]
		}
		return out
	}
	out.Words = l.Words
	for _, s := range steps {
		one := builtStep{Chosen: named(s.Chosen)}
		for _, o := range s.Options {
			one.Options = append(one.Options, named(o))
		}
		out.Steps = append(out.Steps, one)
	}
	return out, err
}

type (
	rulesRequest struct {
		Symbol string `json:"symbol" help:"a nonterminal or a preterminal"`
		Parent string `json:"parent,omitempty" help:"what is above it, in an ncfg: ROOT or a nonterminal"`
		Most   int    `json:"most,omitempty" help:"how many; 30 if left out"`
	}
	rules struct {
		Symbol string `json:"symbol"`
		Parent string `json:"parent,omitempty"`
		Total  int    `json:"total" help:"rules of the symbol that are not impossible"`
		Rules  []rule `json:"rules"`
	}
	rule struct {
		Right       []string `json:"right"`
		Probability float64  `json:"probability"`
	}
)

// Check implements command.Checked.
func (q rulesRequest) Check() error {
	if q.Most < 0 || q.Most > 1000 {
		return fmt.Errorf("most %d is not between 0 and 1000", q.Most)
	}
	return nil
}

func (m *inspected) rules(q rulesRequest) (out rules, err error) {
	g := m.grammar
	out.Symbol = q.Symbol
	parents := append([]string{grammar.RootName}, g.Nonterminals...)
	x, t := slices.Index(g.Nonterminals, q.Symbol), slices.Index(g.Preterminals, q.Symbol)
	if t >= 0 {
		parents = g.Nonterminals
	}
	above := 0
	if g.Kind == grammar.NCFG {
		out.Parent = cmp.Or(q.Parent, parents[0])
		if above = slices.Index(parents, out.Parent); above < 0 {
			return out, command.Unknown("parent", q.Parent, parents)
		}
	}
	switch {
	case x >= 0:
		s := len(g.Nonterminals) + len(g.Preterminals)
		for k, p := range g.RuleRow(x, above) {
			if p > 0 {
				out.Rules = append(out.Rules, rule{[]string{g.Symbol(k / s), g.Symbol(k % s)}, p})
			}
		}
	case t >= 0:
		for w, p := range g.EmitRow(t, above) {
			if p > 0 {
				out.Rules = append(out.Rules, rule{[]string{g.Words[w]}, p})
			}
		}
	default:
		return out, command.Unknown("symbol", q.Symbol, slices.Concat(g.Nonterminals, g.Preterminals))
	}
	out.Total = len(out.Rules)
	slices.SortStableFunc(out.Rules, func(a, b rule) int { return cmp.Compare(b.Probability, a.Probability) })
	out.Rules = out.Rules[:min(len(out.Rules), cmp.Or(q.Most, 30))]
	return out, nil
}
