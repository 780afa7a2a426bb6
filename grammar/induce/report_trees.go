package induce

import (
	"fmt"
	"maps"
	"slices"

	"github.com/gfnem/gfnem/report"
	"github.com/gfnem/gfnem/treebank"
)

const (
	shownTrees = 8 // sentences whose trees are drawn
	sideBySide = 7 // words up to which two trees stand beside each other
)

// treeFigures draw most probable derivations beside gold trees, for a few sentences of different lengths.
func (p *parsed) treeFigures() ([]figure, error) {
	var out []figure
	for k, i := range spreadLengths(p.split.Sentences, shownTrees) {
		f, err := p.treeFigure(i)
		if err != nil {
			return nil, err
		}
		f.name = fmt.Sprintf("tree-%d", k+1)
		out = append(out, f)
	}
	return out, nil
}

// spreadLengths picks at most count sentences of different lengths, evenly from the shortest to the longest. Those of two
// words have one tree only and are left out, if there are others.
func spreadLengths(sentences []treebank.Sentence, count int) []int {
	first := map[int]int{} // by length
	for i, s := range sentences {
		if _, ok := first[len(s.Words)]; !ok {
			first[len(s.Words)] = i
		}
	}
	if len(first) > 1 {
		delete(first, 2)
	}
	lengths := slices.Sorted(maps.Keys(first))
	count = min(count, len(lengths))
	out := make([]int, count)
	for k := range out {
		at := 0
		if count > 1 {
			at = k * (len(lengths) - 1) / (count - 1)
		}
		out[k] = first[lengths[at]]
	}
	return out
}

// treeFigure draws the trees of one sentence.
func (p *parsed) treeFigure(i int) (figure, error) {
	sentence, tree := p.split.Sentences[i], p.trees[i]
	words := make([]string, len(sentence.Words))
	for k, id := range sentence.Words {
		words[k] = p.Words[id]
	}
	isGold := map[treebank.Span]bool{}
	gold := report.Tree{Title: "gold", Words: words}
	for _, s := range sentence.Gold {
		if !isGold[s] {
			isGold[s] = true
			gold.Constituents = append(gold.Constituents, report.Constituent{First: s[0], Last: s[1]})
		}
	}
	found := report.Tree{Title: "learned", Words: words, Caption: "log p = " + report.Number(p.logP[i], 2).String()}
	for _, tag := range tree.Tags {
		found.Tags = append(found.Tags, p.Preterminals[tag])
	}
	for _, s := range tree.Spans() {
		found.Constituents = append(found.Constituents, report.Constituent{
			First: s.First, Last: s.Last, Label: p.Nonterminals[s.Label], Mark: isGold[treebank.Span{s.First, s.Last}],
		})
	}
	caption := fmt.Sprintf("The most probable derivation of a sentence of %d words with log p(x) = %s", len(words), report.Number(p.logX[i], 2))
	if !p.split.Gold {
		return figure{caption: caption + ".", Figure: report.NewFigure(found)}, nil
	}
	found.Marked = "constituents of the gold tree"
	f1, err := treebank.F1([]treebank.Sentence{sentence}, spansOf(p.trees[i:i+1]), treebank.Standard)
	if err != nil {
		return figure{}, err
	}
	f := report.Figure{Panels: [][]report.Panel{{gold}, {found}}}
	if len(words) <= sideBySide {
		f.Panels = [][]report.Panel{{gold, found}}
	}
	return figure{caption: fmt.Sprintf("%s, and its gold tree; F1 %.1f.", caption, f1.Sentence), Figure: f}, nil
}
