package task

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/gfnem/gfnem/report"
	"github.com/gfnem/gfnem/run"
)

// Report implements run.Session.
func (s *Session) Report(r *run.Run, dir string, result run.Result) error {
	return s.best.During(func() error { return s.report(r, dir, result) })
}

func (s *Session) report(r *run.Run, dir string, result run.Result) error {
	points, err := run.ReadMetrics(r.Dir())
	if err != nil {
		return err
	}
	page := Page(r, s, result, s.about)
	page.Section("Result").Note(run.Unfinished(s)).Table(result.(*Result).table())
	if s.learning.Pictures != nil {
		pictures, err := s.learning.Pictures(&s.Learned)
		if err != nil {
			return err
		}
		if err := page.Section("Pictures").Figures(dir, pictures...); err != nil {
			return err
		}
	}
	if figures := curves(points); len(figures) > 0 {
		if err := page.Section("Training").Figures(dir, figures...); err != nil {
			return err
		}
	}
	if !s.learning.Uncalibrated {
		if err := s.calibration(page, dir); err != nil {
			return err
		}
	}
	return Finish(page, r, dir)
}

// calibration adds that of q(z|x).
func (s *Session) calibration(page *report.Page, dir string) error {
	p, err := s.Posterior()
	if err != nil {
		return err
	}
	defer p.Close()
	c, err := p.Calibrate(s.learning.Calibrate)
	if err != nil {
		return err
	}
	var text strings.Builder
	if err := c.Print(&text); err != nil {
		return err
	}
	return page.Section("Posterior").Pre(text.String()).Figures(dir, c.Picture())
}

// curves are what was noted during the training; those without a point are left out.
func curves(points []run.Point) (out []report.Named) {
	plots := []report.Plot{
		{Name: "loss", Keys: []string{"e/loss"}, Y: report.Axis{Label: "loss"},
			Caption: "E-steps: the loss of q(z|x) on its own samples."},
		{Name: "sleep", Keys: []string{"sleep/loss"}, Y: report.Axis{Label: "nats"},
			Caption: "Sleep: −log q(z|x) of pairs that the model dreamt."},
		{Name: "model", Keys: []string{"m/loss"}, Y: report.Axis{Label: "loss"},
			Caption: "M-steps: the loss of the model, by default the mean of −log p(x,z) for latents drawn from q(z|x)."},
		{Name: "gate", Keys: []string{"gate/average", "gate/threshold"}, Names: []string{"moving average", "threshold"},
			Y:       report.Axis{Label: "loss"},
			Caption: "The gate: the moving average of the E-steps' loss and, if there is one, the threshold below which M-steps happen."},
		{Name: "accepted", Keys: []string{"m/accepted"}, Y: report.Axis{Label: "fraction"},
			Caption: "Metropolis-Hastings moves that were accepted before M-steps."},
		{Name: "gradients", Keys: []string{"e/grad_norm", "sleep/grad_norm", "m/grad_norm"}, Names: []string{"E-steps", "sleep", "M-steps"},
			Y: report.Axis{Label: "norm"}, Caption: "Norms of gradients, before they are clipped."},
		{Name: "msteps", Keys: []string{"m/updates"}, Y: report.Axis{Label: "M-steps"}, Caption: "M-steps so far."},
		{Name: "skipped", Keys: []string{"skipped"}, Y: report.Axis{Label: "updates"},
			Caption: "Updates that were skipped so far, since something was not finite."},
	}
	for _, key := range measured(points) {
		name := strings.TrimPrefix(key, watched)
		plots = append(plots, report.Plot{Name: "eval-" + fileName(name), Keys: []string{key},
			Y: report.Axis{Label: name}, Caption: name + ", measured while the model was trained."})
	}
	curve := func(key string) (x, y []float64) { return run.Curve(points, key) }
	for _, p := range plots {
		p.X.Label = "iterations"
		p.Y.Log = ranges(p.Keys, curve)
		if f, ok := p.Draw(curve); ok {
			out = append(out, f)
		}
	}
	return out
}

// ranges reports whether values are all positive and differ by a factor of 100 or more.
func ranges(keys []string, curve func(key string) (x, y []float64)) bool {
	var all []float64
	for _, key := range keys {
		_, y := curve(key)
		all = append(all, y...)
	}
	return len(all) > 0 && slices.Min(all) > 0 && slices.Max(all) >= 100*slices.Min(all)
}

// measured lists the keys of metrics that were measured while training.
func measured(points []run.Point) []string {
	keys := map[string]bool{}
	for _, p := range points {
		for key := range p.Values {
			if strings.HasPrefix(key, watched) {
				keys[key] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(keys))
}

var unusual = regexp.MustCompile(`[^a-z0-9]+`)

// fileName is a name as that of a file.
func fileName(name string) string {
	return strings.Trim(unusual.ReplaceAllString(strings.ToLower(name), "-"), "-")
}
