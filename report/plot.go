package report

import "fmt"

// Named is a figure with a caption, which is also a file of its own.
type Named struct {
	Name, Caption string
	Figure
}

// Figures saves figures to a folder and appends them.
func (s *Section) Figures(dir string, figures ...Named) error {
	for _, f := range figures {
		if err := f.Save(dir, f.Name); err != nil {
			return err
		}
		s.Figure(f.Figure, f.Caption)
	}
	return nil
}

// Plot is a figure of metrics over time.
type Plot struct {
	Name, Caption string
	X, Y          Axis
	Keys, Names   []string // of metrics; Names may be nil
	Levels        []Level
}

// Draw takes the points of each metric from curve. Noisy ones are drawn as moving averages, over what was logged. It reports
// false if there is nothing to draw.
func (p Plot) Draw(curve func(key string) (x, y []float64)) (Named, bool) {
	lines := Lines{Axes: Axes{X: p.X, Y: p.Y}, Levels: p.Levels}
	over := 0
	for i, key := range p.Keys {
		var s Series
		if s.X, s.Y = curve(key); len(s.Y) == 0 {
			continue
		}
		if p.Names != nil {
			s.Name = p.Names[i]
		}
		over = max(over, s.smooth(p.Y))
		lines.Series = append(lines.Series, s)
	}
	caption := p.Caption
	if over > 0 {
		caption += fmt.Sprintf(" Pale: as logged; strong: the moving average over about %d points.", over)
	}
	return Named{p.Name, caption, NewFigure(lines)}, lines.Series != nil
}
