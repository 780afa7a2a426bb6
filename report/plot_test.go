package report

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A plot has a line for each metric that was measured, and none without any.
func TestPlot(t *testing.T) {
	p := Plot{
		Name: "nll", Caption: "What was learned.", X: Axis{Label: "updates"}, Y: Axis{Label: "nats", Log: true},
		Keys: []string{"valid/nll", "valid/bound", "never"}, Names: []string{"learned", "bound", "never"},
		Levels: []Level{{Name: "truth", Value: 1}},
	}
	measured := map[string][]float64{"valid/nll": {3, 2}, "valid/bound": {4}}
	f, ok := p.Draw(func(key string) (x, y []float64) { return []float64{0, 5}[:len(measured[key])], measured[key] })
	if !ok || f.Name != "nll" || f.Caption != "What was learned." {
		t.Errorf("drew %v, %q, %q", ok, f.Name, f.Caption)
	}
	want := Lines{
		Axes: Axes{X: p.X, Y: p.Y}, Levels: p.Levels,
		Series: []Series{
			{Name: "learned", X: []float64{0, 5}, Y: []float64{3, 2}},
			{Name: "bound", X: []float64{0}, Y: []float64{4}},
		},
	}
	if d := cmp.Diff(want, f.Panels[0][0]); d != "" {
		t.Errorf("plot (-want +got):\n%s", d)
	}
	if _, ok := p.Draw(func(string) (x, y []float64) { return nil, nil }); ok {
		t.Error("nothing was drawn")
	}

	dir := t.TempDir()
	var page Page
	if err := page.Section("Training").Figures(dir, f); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"nll.png", "nll.svg"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
}
