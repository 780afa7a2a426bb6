package grammarcmd

import (
	"bufio"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/cli/command"
	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/grammar/induce"
	"github.com/gfnem/gfnem/rng"
)

// SampleFlags implements command.Sampler.
func (Task) SampleFlags() command.SampleFlags { return &sampleFlags{} }

// sampleFlags say which sentences are drawn and how they are printed.
type sampleFlags struct {
	Longest int    `help:"Of a grammar: words of the longest sentence; longer ones are drawn again (default: 40)." placeholder:"N"`
	Trees   string `help:"Of a grammar: bracket, json, or none for sentences alone (default: bracket)." placeholder:"FORMAT"`
}

// Given implements command.SampleFlags.
func (f *sampleFlags) Given() (flags []string) {
	if f.Longest != 0 {
		flags = append(flags, "--longest")
	}
	if f.Trees != "" {
		flags = append(flags, "--trees")
	}
	return flags
}

const formatNone = "none"

// hopeless is how many draws in a row may be too long: a grammar whose sentences nearly all are has grown without end.
const hopeless = 10_000

// Sample implements command.SampleFlags: it draws sentences with their trees.
func (f *sampleFlags) Sample(c command.Console, from command.Draw) error {
	format, longest, known := cmp.Or(f.Trees, formatBracket), cmp.Or(f.Longest, 40), []string{formatBracket, formatJSON, formatNone}
	if !slices.Contains(known, format) {
		return command.Unknown("format of trees", format, known)
	}
	if longest < 2 {
		return badinput.Errorf("--longest %d: a sentence has at least 2 words", longest)
	}
	b, err := from.Open()
	if err != nil {
		return err
	}
	g, warnings, err := induce.ReadGrammar(b, from.Run)
	if err := cmp.Or(from.Allow(c, from.Run, warnings), err); err != nil {
		return err
	}
	out, r := bufio.NewWriter(c.Out), rng.New(from.Seed, "grammar/sample")
	for range from.Count {
		var d *grammar.Drawn
		for tries := 0; d == nil; tries++ {
			if tries == hopeless {
				return badinput.Errorf("%d sentences in a row have more than %d words: raise --longest, or train for longer", hopeless, longest)
			}
			d = g.Draw(r, longest)
		}
		if _, err := fmt.Fprintln(out, drawnText(g, d, format)); err != nil {
			return err
		}
	}
	return out.Flush()
}

// drawnText writes a sentence that was drawn.
func drawnText(g *grammar.Grammar, d *grammar.Drawn, format string) string {
	words := make([]string, len(d.Words))
	for i, w := range d.Words {
		words[i] = g.Words[w]
	}
	tree := g.Format(d.Tree, words)
	switch format {
	case formatNone:
		return strings.Join(words, " ")
	case formatJSON:
		return encode(struct {
			Words   []string `json:"words"`
			Tree    string   `json:"tree"`
			LogProb float64  `json:"log_prob_derivation"`
		}{words, tree, d.LogP})
	}
	return tree
}
