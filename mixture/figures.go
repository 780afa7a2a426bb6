package mixture

import (
	"fmt"

	"github.com/gfnem/gfnem/report"
	"github.com/gfnem/gfnem/run"
)

// frame holds the axes of all scatter plots: the data's range.
func frame(title string, half float64) report.Axes {
	return report.Axes{Title: title, X: report.Axis{Min: -half, Max: half}, Y: report.Axis{Min: -half, Max: half}}
}

// half is the half-width of the paper's axes.
const half = 3.2

func places[P ~[]Point](points P) [][2]float64 {
	out := make([][2]float64, len(points))
	for i, p := range points {
		out[i] = p
	}
	return out
}

// dataScatter shows the points and the true means.
func dataScatter(p Problem, d Data) report.Scatter {
	return report.Scatter{
		Axes: frame("", half), Points: places(d.X),
		Marks: []report.Marks{{Name: "true means", Shape: report.Star, At: places(p.TrueMeans())}},
	}
}

// compare shows what each method made of the data, which show adds to a scatter plot.
func compare[T any](t *trainer, show func(*report.Scatter, T), exact, meanField, gfn T) report.Figure {
	f := report.Figure{
		Columns: []string{"exact EM", "mean-field EM", "GFlowNet-EM"}, Panels: [][]report.Panel{nil}, Shared: true,
	}
	for _, of := range []T{exact, meanField, gfn} {
		s := dataScatter(t.model.Problem, t.data)
		show(&s, of)
		f.Panels[0] = append(f.Panels[0], s)
	}
	return f
}

// meansFigure is the paper's Figure 3: the means that each method found.
func (t *trainer) meansFigure(r *result) report.Figure {
	return compare(t, func(s *report.Scatter, mu Means) {
		s.Marks = append(s.Marks, report.Marks{Name: "estimates", Shape: report.Dot, At: places(mu)})
	}, r.exact.Means, r.meanField.Means, r.Means)
}

// pathsFigure shows the way the means of each method went.
func (t *trainer) pathsFigure(r *result, trace []Means) report.Figure {
	return compare(t, func(s *report.Scatter, trace []Means) {
		for i := range trace[0] {
			var path [][2]float64
			for _, mu := range trace {
				path = append(path, mu[i])
			}
			s.Paths = append(s.Paths, path)
		}
	}, r.exact.Trace, r.meanField.Trace, trace)
}

// gridFigure shows the means after some of the iterations, in four rows of small panels.
func gridFigure(d Data, trace []Means) report.Figure {
	const rows, columns, shown = 4, 6, 500 // points are a backdrop here
	points := places(d.X[:min(shown, len(d.X))])
	f := report.Figure{Panels: make([][]report.Panel, rows), Shared: true}
	count := min(len(trace), rows*columns)
	for k := range count {
		at := 0
		if count > 1 {
			at = k * (len(trace) - 1) / (count - 1)
		}
		axes := frame(fmt.Sprintf("%d", at), 2*half)
		axes.NoTicks = true
		f.Panels[k/columns] = append(f.Panels[k/columns], report.Scatter{
			Axes: axes, Points: points, Marks: []report.Marks{{Shape: report.Dot, At: places(trace[at])}},
		})
	}
	f.Panels = f.Panels[:(count+columns-1)/columns]
	return f
}

// posteriorFigure is the paper's Figure 2: points coloured by the most probable supercluster and petal under several
// posteriors at the same means.
func posteriorFigure(d Data, mu Means, names []string, assigned [][]Pair) report.Figure {
	f := report.Figure{Columns: names, Rows: []string{"supercluster", "petal"}, Panels: make([][]report.Panel, 2), Shared: true}
	for _, z := range assigned {
		for row, of := range []func(Pair) int{func(p Pair) int { return p.I }, func(p Pair) int { return p.J }} {
			s := report.Scatter{Axes: frame("", half), Points: places(d.X), Marks: []report.Marks{{Shape: report.Dot, At: places(mu)}}}
			s.NoTicks = true
			for _, pair := range z {
				s.Class = append(s.Class, of(pair))
			}
			f.Panels[row] = append(f.Panels[row], s)
		}
	}
	return f
}

// trace reads the means after every M-step, from the initial ones on.
func (t *trainer) trace(points []run.Point) []Means {
	out := []Means{t.model.start}
	for _, p := range points {
		if _, ok := p.Values[meanKey(0, 0)]; !ok {
			continue
		}
		mu := make(Means, len(t.model.start))
		for i := range mu {
			mu[i] = Point{p.Values[meanKey(i, 0)], p.Values[meanKey(i, 1)]}
		}
		out = append(out, mu)
	}
	return out
}
