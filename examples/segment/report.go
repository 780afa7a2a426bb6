package main

import (
	"fmt"

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
	return report.Figure{Panels: [][]report.Panel{{
		lines("log p(x) of a held-out sentence", func(s state) float64 { return s.logP }),
		lines("F1 of word ends", func(s state) float64 { return s.f1 }),
	}}}
}
