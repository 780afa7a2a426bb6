package main

import (
	"fmt"
	"slices"
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
		Notes: []string{
			"log p(x) of a sentence and F1 of word ends are by dynamic programming; F1 by q and KL are by 64 samples of each",
		},
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

// figure shows how the training went, and a sentence as it is cut in the end.
func (r *result) figure() report.Figure {
	curve := func(name string, of []state, y func(state) float64) (s report.Series) {
		s.Name = name
		for _, at := range of {
			s.X, s.Y = append(s.X, float64(at.updates)), append(s.Y, y(at))
		}
		return s
	}
	lines := func(label string, log bool, y func(state) float64) report.Lines {
		return report.Lines{
			Axes: report.Axes{X: report.Axis{Label: "updates", Log: true}, Y: report.Axis{Label: label, Log: log}},
			Series: []report.Series{
				curve("exact EM", r.exact, y), curve("GFlowNet-EM", r.gflownet, y),
			},
		}
	}
	long := max(slices.IndexFunc(r.test, func(s Sentence) bool { return len(s.Letters) >= r.m.Max-2 }), 0)
	return report.Figure{Panels: [][]report.Panel{{
		lines("log p(x) of a sentence", false, func(s state) float64 { return s.logP }),
		lines("F1 of word ends", false, func(s state) float64 { return s.f1 }),
	}, {
		lines("KL from q to the posterior", true, func(s state) float64 { return s.kl }),
		brackets(r.test[long], r.cut[long]),
	}}}
}

// brackets draws a sentence with its words as they are cut, in colour if they are not among the true ones.
func brackets(s, cut Sentence) report.Tree {
	t := report.Tree{Words: strings.Split(s.Letters, "")}
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
