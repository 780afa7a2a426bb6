package treebank

import (
	"fmt"
	"slices"

	"github.com/gfnem/gfnem/report"
	"github.com/gfnem/gfnem/rng"
)

// Stats are the counts of some sentences.
type Stats struct {
	Sentences, Words int
	UpTo10, UpTo20   int // sentences of at most so many words
	UpTo40           int
	Longest          int
	Types            int // different words, <unk> included
	Unknown          int // words that are <unk>, or of one of its classes
	Spans            int // different gold spans of two words or more, the whole sentence not counted
	Tokens           int // words and one end of sentence each: what a likelihood per word is divided by
}

// Stats counts a split.
func (d *Dataset) Stats(split *Split) Stats {
	st := Stats{Sentences: len(split.Sentences)}
	types := make(map[int32]bool)
	for _, s := range split.Sentences {
		n := len(s.Words)
		st.Words += n
		st.Tokens += n + 1
		st.Longest = max(st.Longest, n)
		for _, c := range []struct {
			count *int
			limit int
		}{{&st.UpTo10, 10}, {&st.UpTo20, 20}, {&st.UpTo40, 40}} {
			if n <= c.limit {
				*c.count++
			}
		}
		for _, id := range s.Words {
			types[id] = true
			if IsUnknown(d.Vocabulary.words[id]) {
				st.Unknown++
			}
		}
		inner := make(map[Span]bool)
		for _, g := range s.Gold {
			inner[g] = true
		}
		delete(inner, Span{0, n - 1})
		st.Spans += len(inner)
	}
	st.Types = len(types)
	return st
}

// Table returns the counts of all splits.
func (d *Dataset) Table() *report.Table {
	t := &report.Table{
		Title: d.Source,
		Columns: report.Columns("split", "read", "leaves", "sentences", "words", "≤10", "≤20", "≤40", "longest", "mean length", "types",
			"<unk> %", "gold spans", "too short", "too long"),
		Notes: append(slices.Clone(d.Notes),
			fmt.Sprintf("Vocabulary: %d words.", d.Vocabulary.Size()),
			"Read, leaves: trees or sentences, and their tokens, before preparation.",
			"≤10, ≤20, ≤40: sentences of at most so many words. Gold spans: different ones per sentence, without the whole sentence.",
			"Too short, too long: sentences left out.",
		),
	}
	for i := range d.Splits {
		s := &d.Splits[i]
		st := d.Stats(s)
		n := float64(st.Sentences)
		spans := report.Cell{}
		if s.Gold {
			spans = report.Number(float64(st.Spans)/n, 2)
		}
		t.Add(report.Text(s.Name), report.Int(st.Sentences+s.Dropped.Short+s.Dropped.Long), report.Int(s.Leaves), report.Int(st.Sentences), report.Int(st.Words), report.Int(st.UpTo10), report.Int(st.UpTo20),
			report.Int(st.UpTo40), report.Int(st.Longest), report.Number(float64(st.Words)/n, 2), report.Int(st.Types),
			report.Number(100*float64(st.Unknown)/float64(st.Words), 2), spans,
			report.Int(s.Dropped.Short), report.Int(s.Dropped.Long))
		if s.TrueLogProb != nil {
			t.Notes = append(t.Notes, fmt.Sprintf("True NLL per word of %s: %.4f nats, −log p(x) over Σ(n+1).",
				s.Name, -*s.TrueLogProb/float64(st.Tokens)))
		}
	}
	return t
}

// Baselines returns the F1 of trees made without learning, for each split with gold spans; nil if none has.
func (d *Dataset) Baselines() (*report.Table, error) {
	t := &report.Table{
		Title:   "Baselines: F1 in percent, unlabelled, without the whole sentence",
		Columns: report.Columns("split", "tree", "sentence F1", "corpus F1", "sentence F1, released metric"),
		Notes:   []string{"Released metric: that of the published GFlowNet-EM code, which leaves out a wrong span."},
	}
	for _, s := range d.Splits {
		if !s.Gold {
			continue
		}
		for _, b := range TrivialTrees(s.Sentences, rng.New(0, "treebank/random-merges")) {
			standard, err := F1(s.Sentences, b.Trees, Standard)
			if err != nil {
				return nil, err
			}
			released, err := F1(s.Sentences, b.Trees, Released)
			if err != nil {
				return nil, err
			}
			t.Add(report.Text(s.Name), report.Text(b.Name), report.Number(standard.Sentence, 2),
				report.Number(standard.Corpus, 2), report.Number(released.Sentence, 2))
		}
	}
	if len(t.Rows) == 0 {
		return nil, nil
	}
	return t, nil
}
