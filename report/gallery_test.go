package report

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
)

var galleryDir = flag.String("gallery", "", "write the figures and the page of the tests to this folder, to look at")

// TestGallery writes the gallery where a person can look at it.
func TestGallery(t *testing.T) {
	if *galleryDir == "" {
		t.Skip("no -gallery")
	}
	for name, f := range gallery(4000) {
		if err := f.Save(*galleryDir, name); err != nil {
			t.Error(err)
		}
	}
	if err := samplePage(4000).WriteFile(filepath.Join(*galleryDir, "page.html")); err != nil {
		t.Error(err)
	}
}

// gallery returns at least one figure of every kind, with n points where there are many.
func gallery(n int) map[string]Figure {
	points, super, petal := flower(n)
	return map[string]Figure{
		"lines":   NewFigure(curves()),
		"log":     NewFigure(losses()),
		"data":    NewFigure(Scatter{Axes: square("Data"), Points: points, Marks: []Marks{truth}}),
		"classes": NewFigure(tenClasses()),
		"grid":    posteriors(points, super, petal),
		"means":   estimates(points),
		"paths":   NewFigure(trajectories(points)),
		"walks":   smallWalks(points),
		"strip":   NewFigure(byMethod()),
		"bars":    NewFigure(usedLabels()),
		"ranks":   rankHistograms(),
		"tree":    {Panels: [][]Panel{{flatTree()}, {twentyWords()}}},
		"trees":   {Panels: [][]Panel{{flatTree(), flatTree()}}, Columns: []string{"gold", "learned"}},
		"mixed":   {Title: "Two kinds side by side", Panels: [][]Panel{{curves(), usedLabels()}, {byMethod(), nil}}},
		"empty":   NewFigure(Lines{Axes: Axes{Title: "Nothing to show", X: Axis{Label: "step"}}}),
	}
}

var (
	petals = [][2]float64{{-1.5, 0}, {1.5, 0}, {0, -1.5}, {0, 1.5}}
	truth  = Marks{Name: "true means", Shape: Star, At: petals}
)

func square(title string) Axes {
	return Axes{Title: title, X: Axis{Min: -3.2, Max: 3.2}, Y: Axis{Min: -3.2, Max: 3.2}}
}

// flower draws points around the four sums of two centres.
func flower(n int) (points [][2]float64, super, petal []int) {
	r := rand.New(rand.NewPCG(1, 2))
	for range n {
		i, j := r.IntN(4), r.IntN(4)
		points = append(points, [2]float64{
			petals[i][0] + petals[j][0]/4 + 0.1*r.NormFloat64(),
			petals[i][1] + petals[j][1]/4 + 0.1*r.NormFloat64(),
		})
		super, petal = append(super, i), append(petal, j)
	}
	return points, super, petal
}

func curves() Lines {
	r := rand.New(rand.NewPCG(3, 4))
	var x []float64
	runs := make([][]float64, 3)
	for t := range 60 {
		x = append(x, float64(t*500))
		for m := range runs {
			y := -5.6 - float64(m)*0.7 - 3.5*math.Exp(-float64(t)/(8+6*float64(m))) + 0.25*r.NormFloat64()
			runs[m] = append(runs[m], y)
		}
	}
	return Lines{
		Axes: Axes{Title: "Log-likelihood over training", X: Axis{Label: "update"}, Y: Axis{Label: "nats per point"}},
		Series: []Series{
			{Name: "exact EM", X: x, Y: runs[0]},
			{Name: "mean-field EM", X: x, Y: runs[1]},
			{Name: "GFlowNet-EM", X: x, Y: runs[2]},
		},
		Levels: []Level{{"true means", -5.62}},
	}
}

func losses() Lines {
	r := rand.New(rand.NewPCG(5, 6))
	l := Lines{Axes: Axes{
		Title: "Trajectory balance loss", X: Axis{Label: "gradient step"}, Y: Axis{Label: "loss", Log: true},
	}}
	for m := range 9 {
		s := Series{Name: fmt.Sprintf("setting %d", m+1)}
		for t := range 20000 {
			s.Y = append(s.Y, 80*math.Exp(-float64(t)/float64(1200+900*m)+0.05*r.NormFloat64())+0.05*float64(m+1))
		}
		l.Series = append(l.Series, s)
	}
	l.Series[1].Y[4000] = math.NaN()
	return l
}

func tenClasses() Scatter {
	r := rand.New(rand.NewPCG(7, 8))
	s := Scatter{Axes: Axes{Title: "Codes", X: Axis{Label: "first component"}, Y: Axis{Label: "second component"}}}
	for k := range 10 {
		sin, cos := math.Sincos(float64(k) * math.Pi / 5)
		for range 60 {
			s.Points = append(s.Points, [2]float64{40*cos + 7*r.NormFloat64(), 40*sin + 7*r.NormFloat64()})
			s.Class = append(s.Class, k)
		}
	}
	return s
}

func posteriors(points [][2]float64, super, petal []int) Figure {
	f := Figure{
		Title:   "Most probable assignment after one E-step",
		Columns: []string{"exact", "factorised", "GFlowNet"},
		Rows:    []string{"supercluster", "petal"},
		Shared:  true,
	}
	for _, class := range [][]int{super, petal} {
		s := Scatter{Axes: square(""), Points: points, Class: class}
		s.NoTicks = true
		s.Marks = []Marks{{Name: "means", Shape: Dot, At: petals}}
		f.Panels = append(f.Panels, []Panel{s, s, s})
	}
	return f
}

func estimates(points [][2]float64) Figure {
	f := Figure{Shared: true}
	for k, name := range []string{"exact EM", "mean-field EM", "GFlowNet-EM"} {
		var at [][2]float64
		for _, p := range petals {
			at = append(at, [2]float64{p[0] + 0.4*float64(k%2), p[1] + 0.05})
		}
		s := Scatter{Axes: square(name), Points: points, Marks: []Marks{truth, {Name: "estimated means", At: at}}}
		f.Panels = append(f.Panels[:0], append(slices.Concat(f.Panels...), s))
	}
	return f
}

func walks(steps int, seed uint64) [][][2]float64 {
	r := rand.New(rand.NewPCG(9, seed))
	var ps [][][2]float64
	for _, p := range petals {
		var path [][2]float64
		at := [2]float64{2 * r.NormFloat64(), 2 * r.NormFloat64()}
		for range steps {
			path = append(path, at)
			for d := range at {
				at[d] += 0.15*(p[d]-at[d]) + 0.05*r.NormFloat64()
			}
		}
		ps = append(ps, path)
	}
	return ps
}

func trajectories(points [][2]float64) Scatter {
	return Scatter{
		Axes: square("Means after each iteration"), Points: points, Paths: walks(40, 1), Marks: []Marks{truth},
	}
}

func smallWalks(points [][2]float64) Figure {
	var ps []Panel
	for k := range 18 {
		s := Scatter{Points: points[:len(points)/4], Paths: walks(18, 2), Axes: square(fmt.Sprintf("iteration %d", k+1))}
		s.NoTicks = true
		for i := range s.Paths {
			s.Paths[i] = s.Paths[i][:k+1]
		}
		ps = append(ps, s)
	}
	return Figure{Shared: true, Panels: slices.Collect(slices.Chunk(ps, 5))}
}

func usedLabels() Bars {
	b := Bars{Axes: Axes{Title: "Labels", X: Axis{Label: "fraction of constituents"}}, Levels: []Level{{"uniform", 1.0 / 12}}}
	for i := range 12 {
		b.Names = append(b.Names, fmt.Sprintf("N%d", i))
		b.Values = append(b.Values, math.Exp(-float64(i)/3))
	}
	b.Values[11] = math.NaN()
	return b
}

// rankHistograms are uniform, peaked at both ends, and without a band.
func rankHistograms() Figure {
	r := rand.New(rand.NewPCG(12, 13))
	f := Figure{Shared: true, Panels: [][]Panel{nil}}
	for k, name := range []string{"log p(x,z)", "z[0]", "z[1]"} {
		h := Ranks{Axes: Axes{Title: name, X: Axis{Label: "rank"}}, Counts: make([]int, 16), Low: 31, High: 98}
		for range 1000 {
			u := r.Float64()
			if k == 1 && r.Float64() < 0.2 {
				u = math.Mod(0.96+0.08*u, 1)
			}
			h.Counts[int(16*u)]++
		}
		if k == 2 {
			h.Low, h.High = 0, 0
		}
		f.Panels[0] = append(f.Panels[0], h)
	}
	return f
}

func byMethod() Strip {
	r := rand.New(rand.NewPCG(10, 11))
	s := Strip{
		Axes: Axes{Title: "Likelihood of each run", X: Axis{Label: "log-likelihood, nats per point"}},
	}
	for m, name := range []string{"exact EM", "mean-field EM", "GFlowNet-EM, released settings", "GFlowNet-EM"} {
		g := Group{Name: name}
		for range []int{200, 200, 40, 20}[m] {
			v := -5.62 + 0.015*r.NormFloat64()
			if r.Float64() < []float64{0.05, 0.9, 0.4, 0.1}[m] {
				v = -6.5 - 3*r.Float64()
			}
			g.Values = append(g.Values, v)
		}
		s.Groups = append(s.Groups, g)
	}
	return s
}
