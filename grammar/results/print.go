package results

import (
	"fmt"
	"io"

	"github.com/gfnem/gfnem/grammar/parse"
	"github.com/gfnem/gfnem/report"
)

// tables compare trees, split by split.
func (r *Result) tables() []*report.Table {
	var out []*report.Table
	for _, s := range r.Splits {
		t := &report.Table{
			Title:   fmt.Sprintf("%s: %d sentences, %.4f nats per word", s.Name, s.Sentences, s.NLL),
			Columns: report.Columns("trees", "sentence F1", "corpus F1", "sentence F1 as released"),
			Notes: []string{
				"nats per word: -log p(x), summed over sentences, by the number of words and sentence ends",
				fmt.Sprintf("%d of the nonterminals are used by most probable derivations, perplexity %.1f", s.Labels, s.LabelPerplexity),
			},
		}
		if s.TrueNLL != nil {
			t.Notes = append(t.Notes, fmt.Sprintf("the distribution that the sentences come from has %.4f nats per word", *s.TrueNLL))
		}
		if s.F1 == nil { // there are no gold trees
			t.Columns = report.Columns("", "nats per word")
			t.Add(report.Text("learned"), report.Number(s.NLL, 4))
			if s.TrueNLL != nil {
				t.Add(report.Text("the true distribution"), report.Number(*s.TrueNLL, 4))
			}
		}
		for _, f := range s.F1 {
			t.Add(report.Text(f.Trees), report.Number(f.Sentence, 2), report.Number(f.Corpus, 2), report.Number(f.Released, 2))
		}
		out = append(out, t)
		if s.ByLength != nil {
			out = append(out, s.lengthTable())
		}
		if s.GFlowNet != nil {
			out = append(out, s.gfnTable())
		}
		if s.Listed != nil {
			out = append(out, s.listedTable())
		}
	}
	return out
}

// Print implements run.Result.
func (r *Result) Print(w io.Writer) error {
	for _, t := range r.tables() {
		if _, err := fmt.Fprintln(w, t); err != nil {
			return err
		}
	}
	for _, note := range []string{r.Short, r.Start, r.Measured.Note()} {
		if note == "" {
			continue
		}
		if _, err := fmt.Fprintf(w, "Note: %s.\n", note); err != nil {
			return err
		}
	}
	return nil
}

// gfnTable compares a GFlowNet with exact inference.
func (s SplitResult) gfnTable() *report.Table {
	g := s.GFlowNet
	t := &report.Table{
		Title:   fmt.Sprintf("%s: the GFlowNet beside exact inference", s.Name),
		Columns: report.Columns("", "nats per word", "nats per sentence"),
		Notes: []string{
			"nats per word: summed over sentences, by the number of words and sentence ends; ± is the standard error of drawing, sentences given",
			fmt.Sprintf("bound: -E[log p(x,z) + log P_B - log P_F], from %d trajectories of each sentence at temperature 1, without moves", g.Samples),
			"KL over trajectories: the bound less the exact value; the KL over trees, from q(z) to the exact posterior, is no greater",
			fmt.Sprintf("KL over trees: q(z) from %d orders of a tree by P_B, without and with the one it was made in, too low and too high on average",
				g.Orders),
			fmt.Sprintf("%d of the nonterminals are used by the samples, perplexity %.1f", g.Labels, g.LabelPerplexity),
		},
	}
	if g.Flow != nil {
		t.Notes = append(t.Notes, "flow estimate: what the network takes -log p(x) for; it is no bound")
	}
	if g.Spearman != nil {
		t.Notes = append(t.Notes, fmt.Sprintf("Spearman correlation of log p(x) with its flow estimate: %.3f", *g.Spearman))
	}
	if g.Sentences < s.Sentences {
		t.Notes = append(t.Notes, fmt.Sprintf("of %d of the %d sentences: the others are longer than those that it reads", g.Sentences, s.Sentences))
	}
	exact := parse.Measure{
		PerWord: g.Bound.PerWord - g.KLTrajectories.PerWord, PerSentence: g.Bound.PerSentence - g.KLTrajectories.PerSentence,
	}
	for _, row := range []struct {
		name string
		*parse.Measure
	}{
		{"-log p(x), exact", &exact},
		{"bound", &g.Bound},
		{fmt.Sprintf("importance-weighted bound, %d samples", g.Samples), &g.ImportanceBound},
		{"flow estimate, no guarantee", g.Flow},
		{"KL over trajectories", &g.KLTrajectories},
		{"KL over trees, at least", &g.KLTreesLow},
		{"KL over trees, at most", &g.KLTreesHigh},
	} {
		if row.Measure == nil {
			continue
		}
		cell := report.Number(row.PerWord, 4)
		if row.Error > 0 {
			cell = report.MeanStd(row.PerWord, row.Error, 4)
		}
		t.Add(report.Text(row.name), cell, report.Number(row.PerSentence, 3))
	}
	return t
}

// listedTable says how near a GFlowNet is to the posterior where everything is listed.
func (s SplitResult) listedTable() *report.Table {
	t := &report.Table{
		Title:   fmt.Sprintf("%s: the GFlowNet beside the posterior, all trees listed", s.Name),
		Columns: report.Columns("sentences", "nats per word", "bound", "KL per word", "total variation", "of the worst sentence"),
		Notes: []string{
			"KL: from where trajectories end to the exact posterior, in nats",
			"total variation: between the two, mean of sentences",
		},
	}
	l := s.Listed
	t.Add(report.Int(l.Sentences), report.Number(l.NLL, 4), report.Number(l.Bound, 4), report.Number(l.KL, 4),
		report.Number(l.TotalVariation, 4), report.Number(l.Worst, 4))
	return t
}
