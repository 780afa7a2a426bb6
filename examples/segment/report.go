package main

import (
	"fmt"
	"strings"

	"github.com/gomlx/gomlx/support/xslices"

	"github.com/gfnem/gfnem/report"
)

// table has a row for each seed, and their mean.
func table(all []*result) *report.Table {
	first := all[0]
	t := &report.Table{
		Title: fmt.Sprintf("%d held-out sentences after %d updates", len(first.test), first.updates),
		Columns: report.Columns("seed", "exact EM, log p(x)", "GFlowNet-EM, log p(x)", "GFlowNet − exact", "F1, exact",
			"F1, GFlowNet-EM", "F1 by q", "KL from q to the posterior"),
		Notes: []string{"log p(x) of a sentence is exact, by dynamic programming; so is F1, of word ends, but by q"},
	}
	columns := []struct {
		decimals int
		of       func(r *result) float64
	}{
		{4, func(r *result) float64 { return last(r.exact).logP }},
		{4, func(r *result) float64 { return last(r.gflownet).logP }},
		{4, func(r *result) float64 { return last(r.gflownet).logP - last(r.exact).logP }},
		{3, func(r *result) float64 { return last(r.exact).f1 }},
		{3, func(r *result) float64 { return last(r.gflownet).f1 }},
		{3, func(r *result) float64 { return last(r.gflownet).f1ByQ }},
		{4, func(r *result) float64 { return last(r.gflownet).kl }},
	}
	for _, r := range all {
		row := []report.Cell{report.Text(fmt.Sprint(r.seed))}
		for _, c := range columns {
			row = append(row, report.Number(c.of(r), c.decimals))
		}
		t.Add(row...)
	}
	if len(all) > 1 {
		row := []report.Cell{report.Text("mean")}
		for _, c := range columns {
			row = append(row, report.Summarize(xslices.Map(all, c.of)).Cell(c.decimals))
		}
		t.Add(row...)
	}
	return t
}

// examples are held-out sentences as they are cut in the end, one on a line.
func (r *result) examples(n int) string {
	return strings.Join(xslices.Map(r.cut[:min(n, len(r.cut))], Sentence.String), "\n")
}

// figure shows how the training went, and sentences as they are cut in the end.
func (r *result) figure() report.Figure {
	curve := func(of []state, y func(state) float64) (s report.Series) {
		for _, s1 := range of {
			s.X, s.Y = append(s.X, float64(s1.updates)), append(s.Y, y(s1))
		}
		return s
	}
	lines := func(label string, y func(state) float64) report.Lines {
		exact, gflownet := curve(r.exact, y), curve(r.gflownet, y)
		exact.Name, gflownet.Name = "exact EM", "GFlowNet-EM"
		return report.Lines{Series: []report.Series{exact, gflownet}, Axes: report.Axes{
			X: report.Axis{Label: "updates"}, Y: report.Axis{Label: label},
		}}
	}
	rows := [][]report.Panel{{
		lines("log p(x) of a held-out sentence", func(s state) float64 { return s.logP }),
		lines("F1 of word ends", func(s state) float64 { return s.f1 }),
	}}
	for i := 0; i+1 < min(len(r.cut), 6); i += 2 {
		rows = append(rows, []report.Panel{brackets(r.test[i], r.cut[i]), brackets(r.test[i+1], r.cut[i+1])})
	}
	return report.Figure{Panels: rows}
}

// brackets draws a sentence with its words as they are cut, in colour if they are not among the true ones.
func brackets(s Sentence, cut Sentence) report.Tree {
	t := report.Tree{Words: strings.Split(s.Letters, ""), Marked: "not a word of the sentence"}
	begin, beginTrue := 0, 0
	for i, end := range cut.Ends {
		if end {
			t.Constituents = append(t.Constituents, report.Constituent{
				First: begin, Last: i, Label: s.Letters[begin : i+1], Mark: beginTrue != begin || !s.Ends[i],
			})
			begin = i + 1
		}
		if s.Ends[i] {
			beginTrue = i + 1
		}
	}
	return t
}
