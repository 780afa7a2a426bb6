package vae

import (
	"fmt"

	"github.com/gfnem/gfnem/report"
	"github.com/gfnem/gfnem/run"
	"github.com/gfnem/gfnem/task"
)

// Report implements run.Session.
func (s *session) Report(r *run.Run, dir string, res run.Result) error {
	points, err := run.ReadMetrics(r.Dir())
	if err != nil {
		return err
	}
	images, err := s.imageFigures()
	if err != nil {
		return err
	}
	z := s.size
	page, err := task.Page(r, s, res, fmt.Sprintf("Discrete VAE: images of %dx%d pixels as %dx%d codes, by %s, decoder: %s.",
		z.Height, z.Width, z.Rows, z.Columns, titles[s.Method], s.decoder()))
	if err != nil {
		return err
	}
	page.Section("Result").Note(run.Unfinished(s)).Table(res.(*Result).table())
	if err := page.Section("Images").Figures(dir, images...); err != nil {
		return err
	}
	if err := page.Section("Training").Figures(dir, curves(points, s.Eval.On)...); err != nil {
		return err
	}
	return task.Finish(page, r, dir)
}

// curves are what was measured during the training, on test or validation images; those without a point are left out.
func curves(points []run.Point, on string) (out []report.Named) {
	nats := report.Axis{Label: "nats"}
	perImage := report.Axis{Label: "nats per image"}
	for _, p := range []report.Plot{
		{Name: "bound", Y: perImage,
			Keys: []string{"test/bound", "test/reconstruction"}, Names: []string{"bound", "reconstruction"},
			Caption: fmt.Sprintf("Upper bound of −log p(x) from one latent per image, and −log p(x|z) of the most "+
				"probable codes, on at most %d %s images.", watched, on)},
		{Name: "balance", Y: report.Axis{Label: "loss", Log: true}, Keys: []string{"e/loss"},
			Caption: "E-step: trajectory balance per position. With one log Z for all images it does not vanish " +
				"but ends at the variance of log p(x), by n²."},
		{Name: "sleep", Y: nats, Keys: []string{"sleep/loss"}, Caption: "Sleep step: −log q(z|x) of dreamt pairs."},
		{Name: "decoder", Y: nats, Keys: []string{"m/loss"},
			Caption: "M-step: −log p(x|z) per pixel, plus −log p(z) per position of a learned prior."},
		{Name: "training", Y: perImage, Keys: []string{"reconstruction"},
			Caption: "−log p(x|z) of the training batches of the VQ-VAE."},
		{Name: "perplexity", Y: report.Axis{Label: "codes"}, Keys: []string{"perplexity"},
			Caption: "Perplexity of the codes of the training batches."},
	} {
		p.X.Label = "updates"
		if f, ok := p.Draw(func(key string) (x, y []float64) { return run.Curve(points, key) }); ok {
			out = append(out, f)
		}
	}
	return out
}
