package mixture

import (
	"fmt"
	"path/filepath"

	"github.com/gfnem/gfnem/report"
	"github.com/gfnem/gfnem/run"
)

// methodNames are the columns of figures that compare methods.
var methodNames = []string{"exact EM", "mean-field EM", "GFlowNet-EM"}

// Report implements run.Session.
func (t *trainer) Report(r *run.Run, res run.Result) error {
	own := res.(*result)
	points, err := run.ReadMetrics(r.Dir())
	if err != nil {
		return err
	}
	trace := t.trace(points)
	figures := []struct {
		name, caption string
		figure        report.Figure
	}{
		{"means", "The means that each method found, from the same start on the same data.",
			meansFigure(t.problem, t.data, methodNames, []Means{own.exact.Means, own.meanField.Means, own.Means})},
		{"paths", "The way of the means, one step per iteration.",
			pathsFigure(t.problem, t.data, methodNames, [][]Means{own.exact.Trace, own.meanField.Trace, trace})},
		{"iterations", "GFlowNet-EM: the means after some of the iterations, axes twice the range of the data.",
			gridFigure(t.data, trace)},
		{"data", "The data and the true means.", dataFigure(t.problem, t.data)},
		{"loglik", "Log-likelihood per point after each M-step of GFlowNet-EM.", report.NewFigure(report.Lines{
			Axes:   report.Axes{X: report.Axis{Label: "E-updates"}, Y: report.Axis{Label: "log p(x)"}},
			Series: []report.Series{named(curve(points, "loglik"), "GFlowNet-EM")},
			Levels: []report.Level{{Name: "true means", Value: own.LogLik.Truth}},
		})},
		{"loss", "Trajectory-balance loss of the E-step.", report.NewFigure(report.Lines{
			Axes:   report.Axes{X: report.Axis{Label: "E-updates"}, Y: report.Axis{Label: "loss", Log: true}},
			Series: []report.Series{named(curve(points, "e/loss"), "")},
		})},
	}
	page := &report.Page{
		Title: "Hierarchical mixture",
		Lead:  "GFlowNet-EM beside exact and mean-field EM: four superclusters of four petals, of which only the supercluster means are learned.",
	}
	page.Section("Result").Table(own.table()).Paragraph(fmt.Sprintf(
		"The GFlowNet's q(i,j|x) is within total variation %.3f of its target on average; its evidence lower bound is %.4f.",
		own.TotalVariation, own.ELBO))
	section := page.Section("Figures")
	for _, f := range figures {
		if err := f.figure.Save(r.Dir(), f.name); err != nil {
			return err
		}
		section.Figure(f.figure, f.caption)
	}
	page.Section("Configuration").Pre(r.Config())
	page.Section("Provenance").Pre(r.Info().String())
	return page.WriteFile(filepath.Join(r.Dir(), "report.html"))
}

func named(s report.Series, name string) report.Series {
	s.Name = name
	return s
}
