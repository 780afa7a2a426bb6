package results

import (
	"fmt"
	"math"

	"github.com/gfnem/gfnem/grammar/parse"
	"github.com/gfnem/gfnem/report"
	"github.com/gfnem/gfnem/treebank"
)

// bounds of the lengths that the literature tells apart, in words.
var bounds = []int{10, 20, 40}

// Length is the quality of a grammar on the sentences of a split that have at most so many words.
type Length struct {
	Most      int     `json:"most"`
	Sentences int     `json:"sentences"`
	NLL       float64 `json:"nll_per_word"`
	F1        []F1    `json:"f1,omitempty"`
}

// upTo are the sentences of at most so many words, and what else there is for each.
func upTo[T any](most int, sentences []treebank.Sentence, of []T) (some []treebank.Sentence, theirs []T) {
	for i, s := range sentences {
		if len(s.Words) <= most {
			some, theirs = append(some, s), append(theirs, of[i])
		}
	}
	return some, theirs
}

// byLength are the bounds that tell sentences apart, and the longest sentence; nil if none of them does.
func byLength(sentences []treebank.Sentence, logX []float64) (out []Length) {
	longest := parse.Longest(sentences)
	for _, most := range append(bounds[:len(bounds):len(bounds)], longest) {
		some, theirs := upTo(most, sentences, logX)
		if len(some) > 0 && (most < longest || most == longest && len(out) > 0) {
			out = append(out, Length{Most: most, Sentences: len(some), NLL: parse.NatsPerWord(theirs, some)})
		}
	}
	return out
}

// scoreLengths adds the F1 of trees of some sentences: at bounds up to which these are all of the split.
func (r *SplitResult) scoreLengths(name string, sentences []treebank.Sentence, spans [][]treebank.Span) error {
	for i := range r.ByLength {
		l := &r.ByLength[i]
		some, theirs := upTo(l.Most, sentences, spans)
		if len(some) < l.Sentences {
			break
		}
		one, err := f1Of(name, some, theirs)
		if err != nil {
			return err
		}
		l.F1 = append(l.F1, one)
	}
	return nil
}

// f1Of compares trees with gold trees by both metrics.
func f1Of(name string, sentences []treebank.Sentence, spans [][]treebank.Span) (F1, error) {
	own, err := treebank.F1(sentences, spans, treebank.Standard)
	if err != nil {
		return F1{}, err
	}
	released, err := treebank.F1(sentences, spans, treebank.Released)
	return F1{Trees: name, Sentence: own.Sentence, Corpus: own.Corpus, Released: released.Sentence}, err
}

// of is the sentence F1 of some trees, NaN where these sentences have none.
func (l Length) of(trees string) float64 {
	for _, f := range l.F1 {
		if f.Trees == trees {
			return f.Sentence
		}
	}
	return math.NaN()
}

// lengthTable shows quality by length.
func (r *SplitResult) lengthTable() *report.Table {
	columns, counts, nats := []string{""}, []report.Cell{report.Text("sentences")}, []report.Cell{report.Text("nats per word")}
	for i, l := range r.ByLength {
		name := fmt.Sprintf("≤ %d words", l.Most)
		if i == len(r.ByLength)-1 {
			name = "all"
		}
		columns = append(columns, name)
		counts, nats = append(counts, report.Int(l.Sentences)), append(nats, report.Number(l.NLL, 4))
	}
	t := &report.Table{
		Title: r.Name + ", by length", Columns: report.Columns(columns...),
		Notes: []string{fmt.Sprintf("below nats per word: sentence F1; the longest sentence has %d words", r.ByLength[len(r.ByLength)-1].Most)},
	}
	t.Add(counts...)
	t.Add(nats...)
	for _, f := range r.ByLength[0].F1 { // shorter sentences have all kinds of trees
		row := []report.Cell{report.Text(f.Trees)}
		for _, l := range r.ByLength {
			row = append(row, report.Number(l.of(f.Trees), 2))
		}
		t.Add(row...)
	}
	return t
}
