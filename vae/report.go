package vae

import (
	"fmt"
	"path/filepath"

	"github.com/gfnem/gfnem/report"
	"github.com/gfnem/gfnem/run"
)

// figure is a figure of a report, which is also saved under its name.
type figure struct {
	name, caption string
	report.Figure
}

// Report implements run.Session.
func (s *session) Report(r *run.Run, res run.Result) error {
	points, err := run.ReadMetrics(r.Dir())
	if err != nil {
		return err
	}
	images, err := s.imageFigures()
	if err != nil {
		return err
	}
	page := &report.Page{
		Title: "Discrete VAE",
		Lead:  fmt.Sprintf("Images of %dx%d pixels as %dx%d codes, by %s.", s.size.Height, s.size.Width, s.size.Rows, s.size.Columns, titles[s.Method]),
	}
	page.Section("Result").Table(res.(*Result).table())
	for _, part := range []struct {
		heading string
		figures []figure
	}{{"Images", images}, {"Training", curves(points)}} {
		section := page.Section(part.heading)
		for _, f := range part.figures {
			if err := f.Save(r.Dir(), f.name); err != nil {
				return err
			}
			section.Figure(f.Figure, f.caption)
		}
	}
	page.Section("Configuration").Pre(r.Config())
	page.Section("Provenance").Pre(r.Info().String())
	return page.WriteFile(filepath.Join(r.Dir(), "report.html"))
}

// curves are what was measured during the training; those without a point are left out.
func curves(points []run.Point) (out []figure) {
	for _, f := range []struct {
		name, caption, label string
		keys, names          []string
		log                  bool
	}{
		{"bound", fmt.Sprintf("Upper bound of −log p(x) from one latent per image, and −log p(x|z) of the most probable codes, "+
			"on at most %d test images.", watched),
			"nats per image", []string{"test/bound", "test/reconstruction"}, []string{"bound", "reconstruction"}, false},
		{"balance", "E-step: trajectory balance per position. With one log Z for all images it does not vanish " +
			"but ends at the variance of log p(x), by n².",
			"loss", []string{"e/loss"}, nil, true},
		{"sleep", "Sleep step: −log q(z|x) of dreamt pairs.", "nats", []string{"sleep/loss"}, nil, false},
		{"decoder", "M-step: −log p(x|z) per pixel, plus −log p(z) per position of a learned prior.", "nats", []string{"m/loss"}, nil, false},
		{"training", "−log p(x|z) of the training batches of the VQ-VAE.", "nats per image", []string{"reconstruction"}, nil, false},
		{"perplexity", "Perplexity of the codes of the training batches.", "codes", []string{"perplexity"}, nil, false},
	} {
		lines := report.Lines{Axes: report.Axes{X: report.Axis{Label: "updates"}, Y: report.Axis{Label: f.label, Log: f.log}}}
		for i, key := range f.keys {
			var c report.Series
			for _, p := range points {
				if v, ok := p.Values[key]; ok {
					c.X, c.Y = append(c.X, float64(p.Step)), append(c.Y, v)
				}
			}
			if f.names != nil {
				c.Name = f.names[i]
			}
			if len(c.Y) > 0 {
				lines.Series = append(lines.Series, c)
			}
		}
		if len(lines.Series) > 0 {
			out = append(out, figure{f.name, f.caption, report.NewFigure(lines)})
		}
	}
	return out
}
