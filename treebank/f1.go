package treebank

import (
	"fmt"
	"math/rand/v2"

	"github.com/gfnem/gfnem/rng"
)

// Metric is a way to compare predicted spans with gold ones. Both ways leave out the last gold span, which is one
// copy of the whole sentence, and compare sets.
type Metric int

const (
	// Standard also leaves the whole sentence out of the prediction, as Kim et al. do.
	Standard Metric = iota
	// Released is the metric of the published GFlowNet-EM code. It means to do the same, but leaves out one of the
	// predicted spans that end with the last word, whichever its hash table happens to put last. Here that span is
	// drawn uniformly, the same for the same predictions. Trees that branch to the right lose some points by it.
	Released
)

// Score is an F1 in percent, of predicted spans against gold spans.
type Score struct {
	Sentence float64 // mean of the sentences' F1
	Corpus   float64 // F1 of the counts over all sentences
}

// F1 compares predicted trees with the gold spans of sentences, prediction i with sentence i. A prediction is the
// spans of a tree; spans of one word and repetitions do not count.
//
// A sentence with no gold span but the whole sentence has F1 1 if it has two words, and 0 if it has more. One whose
// gold spans hold the whole sentence several times keeps a copy that no prediction can match, as in the published
// evaluations.
func F1(sentences []Sentence, predicted [][]Span, metric Metric) (Score, error) {
	if len(sentences) != len(predicted) {
		return Score{}, fmt.Errorf("F1: %d predictions for %d sentences", len(predicted), len(sentences))
	}
	if len(sentences) == 0 {
		return Score{}, fmt.Errorf("F1: no sentences")
	}
	r := rng.New(0, "treebank/released-f1")
	var sum float64
	var total matches
	for i, s := range sentences {
		if len(s.Gold) == 0 && len(s.Words) > 1 {
			return Score{}, fmt.Errorf("F1: sentence %d has no gold spans", i)
		}
		m, err := compare(s, predicted[i], metric, r)
		if err != nil {
			return Score{}, fmt.Errorf("F1: sentence %d: %w", i, err)
		}
		sum += m.sentenceF1()
		total = matches{total.both + m.both, total.predicted + m.predicted, total.gold + m.gold}
	}
	return Score{Sentence: 100 * sum / float64(len(sentences)), Corpus: 100 * total.corpusF1()}, nil
}

// matches counts spans.
type matches struct{ both, predicted, gold int }

// sentenceF1 is the formula of Kim et al., with their small constant against division by zero.
func (m matches) sentenceF1() float64 {
	const epsilon = 1e-8
	precision := float64(m.both) / (float64(m.predicted) + epsilon)
	recall := float64(m.both) / (float64(m.gold) + epsilon)
	if m.gold == 0 {
		recall = 1
		if m.predicted == 0 {
			precision = 1
		}
	}
	return 2 * precision * recall / (precision + recall + epsilon)
}

func (m matches) corpusF1() float64 {
	if m.predicted+m.gold == 0 {
		return 1
	}
	return 2 * float64(m.both) / float64(m.predicted+m.gold)
}

// compare counts the spans of one sentence.
func compare(s Sentence, predicted []Span, metric Metric, r *rand.Rand) (matches, error) {
	n := len(s.Words)
	guess := make(map[Span]bool, len(predicted))
	var final []Span // those that end with the last word, in order of prediction
	for _, p := range predicted {
		if p[0] < 0 || p[1] >= n || p[0] > p[1] {
			return matches{}, fmt.Errorf("span %v is not in a sentence of %d words", p, n)
		}
		if p[0] == p[1] || guess[p] {
			continue
		}
		guess[p] = true
		if p[1] == n-1 {
			final = append(final, p)
		}
	}
	if metric == Released && len(final) > 0 {
		delete(guess, final[r.IntN(len(final))])
	} else {
		delete(guess, Span{0, n - 1})
	}
	gold := make(map[Span]bool, len(s.Gold))
	for _, g := range s.Gold[:max(0, len(s.Gold)-1)] {
		gold[g] = true
	}
	m := matches{predicted: len(guess), gold: len(gold)}
	for p := range guess {
		if gold[p] {
			m.both++
		}
	}
	return m, nil
}
