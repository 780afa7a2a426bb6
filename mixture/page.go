package mixture

import (
	"fmt"

	"github.com/gfnem/gfnem/report"
	"github.com/gfnem/gfnem/run"
	"github.com/gfnem/gfnem/task"
)

// Report implements run.Session.
func (t *trainer) Report(r *run.Run, dir string, res run.Result) error {
	own := res.(*result)
	points, err := run.ReadMetrics(r.Dir())
	if err != nil {
		return err
	}
	trace := t.trace(points)
	draw := func(p report.Plot) report.Named {
		p.X.Label = "E-updates"
		f, _ := p.Draw(func(key string) (x, y []float64) { return run.Curve(points, key) })
		return f
	}
	figures := []report.Named{
		{Name: "means", Caption: "The means that each method found, from the same start on the same data.",
			Figure: t.meansFigure(own)},
		{Name: "paths", Caption: "The way of the means, one step per iteration.",
			Figure: t.pathsFigure(own, trace)},
		{Name: "iterations", Figure: gridFigure(t.data, trace),
			Caption: "GFlowNet-EM: the means after some of the iterations, axes twice the range of the data."},
		{Name: "data", Caption: "The data and the true means.",
			Figure: report.NewFigure(dataScatter(t.model.Problem, t.data))},
		draw(report.Plot{Name: "loglik", Caption: "Log-likelihood per point after each M-step of GFlowNet-EM.",
			Keys: []string{"loglik"}, Names: []string{"GFlowNet-EM"}, Y: report.Axis{Label: "log p(x)"},
			Levels: []report.Level{{Name: "true means", Value: own.LogLik.Truth}}}),
		draw(report.Plot{Name: "loss", Caption: "Trajectory-balance loss of the E-step.",
			Keys: []string{"e/loss"}, Y: report.Axis{Label: "loss", Log: true}}),
	}
	page := task.Page(r, t, res, fmt.Sprintf("Hierarchical mixture, by GFlowNet-EM beside exact and mean-field EM: "+
		"%d superclusters of %d petals, of which only the supercluster means are learned.", t.config.Model.Super, t.config.Model.Petals))
	page.Section("Result").Note(run.Unfinished(t)).Table(own.table()).Paragraph(fmt.Sprintf(
		"The GFlowNet's q(i,j|x) is within total variation %.3f of its target on average; its evidence lower bound is %.4f.",
		own.TotalVariation, own.ELBO))
	if err := page.Section("Figures").Figures(dir, figures...); err != nil {
		return err
	}
	return task.Finish(page, r, dir)
}
