package results

import (
	"fmt"
	"maps"
	"slices"

	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/grammar/parse"
	"github.com/gfnem/gfnem/report"
	"github.com/gfnem/gfnem/treebank"
)

const (
	shownTrees = 8 // sentences whose trees are drawn
	sideBySide = 7 // words up to which two trees stand beside each other
)

// treeFigures draw most probable derivations beside gold trees, for a few sentences of different lengths.
func (p *parsed) treeFigures() ([]report.Named, error) {
	var out []report.Named
	for k, i := range spreadLengths(p.split.Sentences, shownTrees) {
		f, err := p.treeFigure(i)
		if err != nil {
			return nil, err
		}
		f.Name = fmt.Sprintf("tree-%d", k+1)
		out = append(out, f)
	}
	return out, nil
}

// spreadLengths picks at most count sentences of different lengths, evenly from the shortest to the longest. Those of
// two words have one tree only and are left out, if there are others.
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
		out[k] = first[lengths[k*(len(lengths)-1)/max(count-1, 1)]]
	}
	return out
}

// treeFigure draws the trees of one sentence.
func (p *parsed) treeFigure(i int) (report.Named, error) {
	sentence := p.split.Sentences[i]
	found := p.found(i, p.trees[i])
	found.Title = "learned"
	found.Caption = fmt.Sprintf("log p(x,z) = %s, log p(z|x) = %s", report.Number(p.logP[i], 2), report.Number(p.logP[i]-p.logX[i], 2))
	caption := fmt.Sprintf("The most probable derivation z of a sentence x of %d words. log p(x,z) is of both, log p(x) = %s of the words "+
		"by all trees together, ", len(sentence.Words), report.Number(p.logX[i], 2))
	drawn := p.gfn.panels(p, i, &found)
	if drawn != nil {
		caption += fmt.Sprintf("log q(z) what the GFlowNet gives a tree, of which there are %d draws; log q(z) = log p(x,z) − log p(x) "+
			"would be perfect", len(drawn))
	} else {
		caption += "log p(z|x) of the tree given the words"
	}
	trees := append([]report.Panel{found}, drawn...)
	if p.split.Gold {
		f1, err := treebank.F1([]treebank.Sentence{sentence}, parse.Spans(p.trees[i:i+1]), treebank.Standard)
		if err != nil {
			return report.Named{}, err
		}
		caption += fmt.Sprintf(". Beside it the gold tree; F1 %.1f", f1.Sentence)
		trees = slices.Insert(trees, 0, report.Panel(p.gold(i)))
	}
	columns := 1
	if len(sentence.Words) <= sideBySide {
		columns = 2
	}
	return report.Named{
		Caption: caption + ".", Figure: report.Figure{Panels: slices.Collect(slices.Chunk(trees, columns))},
	}, nil
}

// words of a sentence.
func (p *parsed) wordsOf(i int) []string {
	ids := p.split.Sentences[i].Words
	words := make([]string, len(ids))
	for k, id := range ids {
		words[k] = p.Words[id]
	}
	return words
}

// gold is the gold tree of a sentence.
func (p *parsed) gold(i int) report.Tree {
	gold := report.Tree{Title: "gold", Words: p.wordsOf(i)}
	seen := map[treebank.Span]bool{}
	for _, s := range p.split.Sentences[i].Gold {
		if !seen[s] {
			seen[s] = true
			gold.Constituents = append(gold.Constituents, report.Constituent{First: s[0], Last: s[1]})
		}
	}
	return gold
}

// found is a tree over a sentence, with the constituents of the gold tree marked.
func (p *parsed) found(i int, tree *grammar.Tree) report.Tree {
	found := report.Tree{Words: p.wordsOf(i)}
	for _, tag := range tree.Tags {
		found.Tags = append(found.Tags, p.Preterminals[tag])
	}
	gold := p.split.Sentences[i].Gold
	for _, s := range tree.Spans() {
		found.Constituents = append(found.Constituents, report.Constituent{
			First: s.First, Last: s.Last, Label: p.Nonterminals[s.Label], Mark: slices.Contains(gold, treebank.Span{s.First, s.Last}),
		})
	}
	if p.split.Gold {
		found.Marked = "constituents of the gold tree"
	}
	return found
}
