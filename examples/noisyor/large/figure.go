package main

import (
	"fmt"
	"path/filepath"

	"github.com/gfnem/gfnem/report"
)

const every = 13 // how many links there are for each that is drawn

// draw shows learned beside true p(effect | cause), link by link, and a dotted line where both are equal.
func (e experiment) draw(path string, models []*learnt) error {
	truth := models[0]
	f := report.Figure{
		Title: fmt.Sprintf("p(effect | cause) of %d links of %d, learned and true", len(truth.chances)/every+1,
			len(truth.chances)),
		Shared: true, Panels: [][]report.Panel{nil},
	}
	for _, l := range models[1:] {
		s := report.Scatter{Axes: report.Axes{
			Title: l.name, X: report.Axis{Label: "true", Max: 0.6}, Y: report.Axis{Label: "learned", Max: 0.6},
		}}
		for i := 0; i < len(truth.chances); i += every {
			s.Points, s.Class = append(s.Points, [2]float64{truth.chances[i], l.chances[i]}), append(s.Class, 0)
		}
		for p := 0.0; p <= 0.6; p += 0.02 {
			s.Points, s.Class = append(s.Points, [2]float64{p, p}), append(s.Class, 1)
		}
		f.Panels[0] = append(f.Panels[0], s)
	}
	return f.Save(filepath.Dir(path), filepath.Base(path))
}
