package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"image/png"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gonum.org/v1/plot"
)

func TestFigures(t *testing.T) {
	first, second := gallery(300), gallery(300)
	for name, f := range first {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := f.Save(filepath.Join(dir, "made"), name); err != nil {
				t.Fatal(err)
			}
			pngFile := read(t, filepath.Join(dir, "made", name+".png"))
			svgFile := read(t, filepath.Join(dir, "made", name+".svg"))
			if p, s, err := second[name].encode(); err != nil || !bytes.Equal(p, pngFile) || !bytes.Equal(s, svgFile) {
				t.Errorf("the same figure gave another image (%v)", err)
			}

			l, err := f.lay()
			if err != nil {
				t.Fatal(err)
			}
			image, err := png.Decode(bytes.NewReader(pngFile))
			if err != nil {
				t.Fatal(err)
			}
			wantX, wantY := int(l.width.Dots(pngDPI)+0.5), int(l.height.Dots(pngDPI)+0.5)
			if got := image.Bounds().Size(); got.X != wantX || got.Y != wantY {
				t.Errorf("the image is %v, want (%d,%d)", got, wantX, wantY)
			}
			checkSVG(t, svgFile)
		})
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// checkSVG checks that data is well-formed and that all its numbers are numbers.
func checkSVG(t *testing.T, data []byte) {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader(data))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatalf("not well-formed: %v", err)
		}
		start, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		for _, a := range start.Attr {
			if a.Name.Local != "aria-label" && regexp.MustCompile(`NaN|Inf`).MatchString(a.Value) {
				t.Fatalf("<%s %s=%q>", start.Name.Local, a.Name.Local, a.Value)
			}
		}
	}
}

// Values that cannot be drawn, limits that are far apart or close together, axes of both kinds: every panel still
// becomes a drawing of finite numbers.
func TestFiguresOfNastyValues(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, values := range [][]float64{
		{}, {nan}, {0}, {5}, {-3, -3, -3}, {inf, -inf, nan}, {1e308, -1e308}, {1e299, -1e299}, {5e-324, 0}, {0, 1e-320},
		{1e-200, 1e200}, {1e-149, 1e149}, {1, 1 + 1e-15}, {1e15, 1e15 + 1}, {3, nan, 4, inf, 5}, {123456789, 123456790},
	} {
		var points [][2]float64
		for i, v := range values {
			points = append(points, [2]float64{v, values[len(values)-1-i]})
		}
		for _, log := range []bool{false, true} {
			axes := Axes{X: Axis{Log: log}, Y: Axis{Log: log}}
			row := []Panel{
				Lines{axes, []Series{{X: values, Y: values}, {Y: values}}, []Level{{"", nan}, {"", 2}}},
				Scatter{Axes: axes, Points: points, Paths: [][][2]float64{points, {}}, Marks: []Marks{{At: points}}},
				Strip{axes, []Group{{"a", values}, {"b", nil}}},
			}
			if len(values) > 0 && !log {
				row = append(row, Bars{
					Axes: axes, Names: make([]string, len(values)), Values: values, Levels: []Level{{"", nan}, {"", inf}},
				})
			}
			_, svg, err := Figure{Panels: [][]Panel{row}}.encode()
			if err != nil {
				t.Fatal(err)
			}
			checkSVG(t, svg)
		}
	}
}

func TestFigureErrors(t *testing.T) {
	for want, f := range map[string]Figure{
		"no panels":              {},
		"differ":                 {Panels: [][]Panel{{Lines{}, Lines{Axes: Axes{X: Axis{Log: true}}}}}, Shared: true},
		`"y": bad limits [2, 1]`: NewFigure(Lines{Axes: Axes{Y: Axis{Label: "y", Min: 2, Max: 1}}}),
		"bad limits [0, 1]":      NewFigure(Scatter{Axes: Axes{X: Axis{Max: 1, Log: true}}}),
		"bad limits [0, 1e":      NewFigure(Lines{Axes: Axes{Y: Axis{Max: 1e301}}}),
		"2 values at 1 places":   NewFigure(Lines{Series: []Series{{X: []float64{1}, Y: []float64{1, 2}}}}),
		"1 points with 2":        NewFigure(Scatter{Points: make([][2]float64, 1), Class: []int{0, 1}}),
		"class 10 of point 0":    NewFigure(Scatter{Points: make([][2]float64, 1), Class: []int{10}}),
		"no groups":              NewFigure(Strip{}),
		"1 names for 0 values":   NewFigure(Bars{Names: []string{"a"}}),
		"begin at zero":          NewFigure(Bars{Axes: Axes{X: Axis{Log: true}}, Names: []string{"a"}, Values: []float64{1}}),
	} {
		if _, _, err := f.encode(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
		if err := f.Save(t.TempDir(), "f"); err == nil {
			t.Errorf("saved in spite of %q", want)
		}
	}
}

func TestEmbeddingBySize(t *testing.T) {
	for n, want := range map[int]string{svgMarks: "<svg ", svgMarks + 1: "<img "} {
		html, err := NewFigure(Scatter{Points: make([][2]float64, n)}).HTML("<dots>")
		if err != nil || !strings.HasPrefix(string(html), want) || !strings.Contains(string(html), `="&lt;dots&gt;" `) {
			t.Errorf("%d points are embedded as %.40s (%v), want %s", n, html, err, want)
		}
	}
}

// Shared limits hold all data.
func TestLayout(t *testing.T) {
	a := Scatter{Points: [][2]float64{{0, 0}, {1, 1}}}
	b := Scatter{Points: [][2]float64{{5, -5}}, Axes: Axes{X: Axis{Label: "long"}}}
	f := Figure{Panels: [][]Panel{{a, b}, {b}}, Shared: true}
	l, err := f.lay()
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range l.charts {
		if c.X.Min > 0 || c.X.Max < 5 || c.Y.Min > -5 || c.Y.Max < 1 {
			t.Errorf("panel %d shows [%g, %g] by [%g, %g]", i, c.X.Min, c.X.Max, c.Y.Min, c.Y.Max)
		}
	}
	shown := func(a plot.Axis) string { return strings.TrimSpace(a.Tick.Marker.Ticks(a.Min, a.Max)[0].Label) }
	if c := l.grid[0][1]; shown(c.X) == "" || shown(c.Y) != "" {
		t.Errorf("the panel above a hole and beside another has labels %q and %q, not the first alone", shown(c.X), shown(c.Y))
	}
}
