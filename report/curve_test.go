package report

import (
	"image/color"
	"math"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// Only what goes up and down is smoothed: not a staircase, a slope or a short curve.
func TestNoisy(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for name, c := range map[string]struct {
		of    func(i int) float64
		count int
		want  bool
	}{
		"noise":     {func(int) float64 { return r.NormFloat64() }, 400, true},
		"slope":     {func(i int) float64 { return float64(i) + 3*r.NormFloat64() }, 400, true},
		"line":      {func(i int) float64 { return float64(i) }, 400, false},
		"staircase": {func(i int) float64 { return float64(i / 7) }, 400, false},
		"wave":      {func(i int) float64 { return math.Sin(float64(i) / 9) }, 400, false},
		"short":     {func(int) float64 { return r.NormFloat64() }, 40, false},
		"nothing":   {func(int) float64 { return math.NaN() }, 400, false},
	} {
		var s Series
		for i := range c.count {
			s.Y = append(s.Y, c.of(i))
		}
		raw := s.Y
		over := s.smooth(Axis{})
		if (over > 0) != c.want || (s.Raw != nil) != c.want {
			t.Errorf("%s: the average is over %d points, want some: %t", name, over, c.want)
		}
		if c.want && spreadOf(s.Y) >= spreadOf(raw)/2 {
			t.Errorf("%s: steps of %g are smoothed to %g", name, spreadOf(raw), spreadOf(s.Y))
		}
	}
}

// spreadOf is the mean step.
func spreadOf(y []float64) float64 {
	sum := 0.0
	for i := 1; i < len(y); i++ {
		sum += math.Abs(y[i] - y[i-1])
	}
	return sum
}

// On a logarithmic axis the average is that of logarithms: of 1 and 100 it is 10.
func TestSmoothOnLogAxis(t *testing.T) {
	var s Series
	for i := range 200 {
		s.Y = append(s.Y, math.Pow(100, float64(i%2)))
	}
	if s.smooth(Axis{Log: true}) == 0 || math.Abs(math.Log(s.Y[100]/10)) > 0.3 {
		t.Errorf("the average is %g", s.Y[100])
	}
}

// What a strip of a panel shows are values of the series, at the place of the strip.
func TestHover(t *testing.T) {
	y, z := make([]float64, 1000), make([]float64, 500)
	for i := range y {
		y[i] = float64(i * i)
	}
	l := Lines{Axes: Axes{X: Axis{Label: "step"}}, Series: []Series{{Name: "a<b", Y: y}, {Name: "short", Y: z}}}
	places := l.hover()
	if len(places) < spots/2 || len(places) > spots || places[0].x != 0 || places[len(places)-1].x != 999 {
		t.Fatalf("%d places from %g to %g", len(places), places[0].x, places[len(places)-1].x)
	}
	for _, p := range places {
		want := 2
		if p.x > 499 {
			want = 1
		}
		if len(p.values) != want || p.values[0].y != p.x*p.x || p.values[0].name != "a<b" {
			t.Errorf("at %g: %+v", p.x, p.values)
		}
	}
	html, err := NewFigure(l).HTML("curves")
	if err != nil {
		t.Fatal(err)
	}
	text := string(html)
	if strings.Count(text, `<g class="h">`) != len(places) || !strings.Contains(text, "a&lt;b: 998001") || strings.Contains(text, "<script") {
		t.Error("the figure does not have the strips")
	}
	// Strips lie side by side: each begins where the one before ends.
	end := 0.0
	for i, m := range regexp.MustCompile(`<g class="h"><rect x="([0-9.]+)" y="[0-9.]+" width="([0-9.]+)"`).FindAllStringSubmatch(text, -1) {
		x, _ := strconv.ParseFloat(m[1], 64)
		width, _ := strconv.ParseFloat(m[2], 64)
		if i > 0 && math.Abs(x-end) > 0.15 {
			t.Fatalf("strip %d begins at %g, the one before ends at %g", i, x, end)
		}
		end = x + width
	}
	file, _, err := NewFigure(l).encode()
	if _, svg, _ := NewFigure(l).encode(); err != nil || len(file) == 0 || strings.Contains(string(svg), `class="h"`) {
		t.Error("a file has strips, which need the style of a page")
	}
}

// The spread that a strip names is that above the curve: the lower half of a band may be cut at the end of a logarithm. A
// place without a band has none.
func TestHoverSpread(t *testing.T) {
	nan := math.NaN()
	l := Lines{Axes: Axes{Y: Axis{Log: true}}, Series: []Series{{
		Y: []float64{1, 10, 100}, Low: []float64{0.5, 7, nan}, High: []float64{4, 13, nan},
	}}}
	places := l.hover()
	if len(places) != 3 {
		t.Fatalf("%d places", len(places))
	}
	for i, want := range []float64{3, 3, nan} {
		if got := places[i].values[0].spread; got != want && !(math.IsNaN(got) && math.IsNaN(want)) {
			t.Errorf("place %d has the spread %g, want %g", i, got, want)
		}
	}
}

// Every colour of a figure that the dark changes is a variable, with its value in the page's style.
func TestTheme(t *testing.T) {
	p := &Page{Title: "t"}
	p.Section("s").Figure(NewFigure(Lines{Series: []Series{{Name: "a", Y: []float64{1, 2, 3}, Low: []float64{0, 1, 2}, High: []float64{2, 3, 4}}}}), "c")
	html := write(t, p)
	for _, m := range regexp.MustCompile(`(?:fill|stroke):#([0-9a-fA-F]{6})`).FindAllStringSubmatch(html, -1) {
		if c := parseHex(strings.ToLower(m[1])); dark(c) != c {
			t.Errorf("#%s stays in the dark", m[1])
		}
	}
	used := regexp.MustCompile(`var\(--c([0-9a-f]{6}),`).FindAllStringSubmatch(html, -1)
	if len(used) < 5 {
		t.Fatalf("%d colours are variables", len(used))
	}
	for _, m := range used {
		if !strings.Contains(html, " --c"+m[1]+": "+hex(dark(parseHex(m[1])))+";") {
			t.Errorf("--c%s has no value in the dark", m[1])
		}
	}
	for _, c := range okabeIto { // as legible as WCAG asks of graphics
		d := dark(c).(color.NRGBA)
		if ratio := (luminance(d) + 0.05) / (luminance(darkCard) + 0.05); ratio < 3 {
			t.Errorf("%s is %s in the dark, of contrast %.1f", hex(c), hex(d), ratio)
		}
	}
}

func TestTablesFitScreens(t *testing.T) {
	narrow, wide := &Table{Columns: Columns("a", "b")}, &Table{Columns: Columns("run", "figure")}
	narrow.Add(Text("x"), Int(1))
	wide.Add(Text(strings.Repeat("long", 12)), Number(1, 3))
	p := &Page{Title: "t", Facts: []Fact{{"status", "finished"}}}
	p.Section("narrow").Table(narrow)
	p.Section("wide").Table(wide)
	p.Section("empty").Table(&Table{Title: "nothing", Columns: Columns("a")})
	html := write(t, p)
	checkBalanced(t, html)
	if strings.Count(html, `class="table"`) != 1 || strings.Count(html, `class="table wide"`) != 1 || !strings.Contains(html, `data-h="figure"`) {
		t.Error("one table is wide and one is not")
	}
	if strings.Contains(html, "nothing") || strings.Contains(html, "<h2>empty") {
		t.Error("an empty table is shown, or its section")
	}
	if !strings.Contains(html, "<dt>status</dt><dd>finished</dd>") {
		t.Error("the facts are missing")
	}
	many := &Table{Columns: Columns("a", "b", "c")}
	many.Add(Cell{}, Int(1))
	many.DropMissing()
	if len(many.Columns) != 1 || many.Columns[0].Name != "b" || len(many.Rows[0]) != 1 {
		t.Errorf("%+v", many)
	}
}

func TestMeanSpread(t *testing.T) {
	for want, c := range map[string]Cell{
		"−2.8228 ± 0.0034": MeanSpread(-2.822781, 0.003412), "5 ± 0": MeanSpread(5, 0), "0.50000 ± 0.00000": MeanSpread(0.5, 0),
		"1234 ± 56": MeanSpread(1234.4, 56.2), "3.1416": MeanSpread(math.Pi, math.NaN()), "–": MeanSpread(math.NaN(), math.NaN()),
		"120000": Figures(120000), "0.00012346": Figures(0.000123456),
	} {
		if c.String() != want {
			t.Errorf("%s, want %s", c, want)
		}
	}
}
