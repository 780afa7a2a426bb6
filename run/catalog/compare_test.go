package catalog_test

import (
	"encoding/json"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gfnem/gfnem/run/catalog"
)

// Three settings with five seeds each: means, deviations and curves are those of the formulas that made the runs.
func TestCompare(t *testing.T) {
	top := t.TempDir()
	for k, slope := range []float64{10, 2, 0.5} {
		for seed := range uint64(5) {
			job := &counting{total: 30, seed: seed + 1, slope: slope}
			must(t, train(t, filepath.Join(top, string(rune('a'+k)), string(rune('1'+seed))), "m", job))
		}
	}
	runs, err := catalog.Find(top)
	must(t, err)
	runs = append(runs, catalog.Run{Dir: "bad", Status: catalog.Broken, Wrong: "no reason"})
	c, err := catalog.Compare(runs, catalog.Options{})
	must(t, err)
	if !slices.Equal(c.Keys, []string{"model.slope"}) || !slices.Equal(c.Figures, []string{"sum"}) || len(c.Groups) != 3 {
		t.Fatalf("keys %q, figures %q, %d groups", c.Keys, c.Figures, len(c.Groups))
	}
	std := math.Sqrt(2.5) // of 1 to 5
	for i, slope := range []float64{0.5, 2, 10} {
		g := c.Groups[i]
		if s := g.Stat("sum"); len(g.Runs) != 5 || math.Abs(s.Mean-slope-3) > 1e-12 || math.Abs(s.Std-std) > 1e-12 || s.N != 5 {
			t.Errorf("%s: %+v", g.Label(c.Keys), s)
		}
		b, err := g.Band("loss", 30)
		must(t, err)
		for k, x := range b.X {
			if math.Abs(b.Mean[k]-slope*x-3) > 1e-9 || math.Abs(b.Std[k]-std) > 1e-9 || b.N[k] != 5 {
				t.Fatalf("%s at %g: %g ± %g", g.Label(c.Keys), x, b.Mean[k], b.Std[k])
			}
		}
	}
	table := c.Table().String()
	for _, want := range []string{"model.slope", "3.5 ± 1.6", "5.0 ± 1.6", "13.0 ± 1.6", "bad is left out: no reason", "15 runs by setting"} {
		if !strings.Contains(table, want) {
			t.Errorf("the table lacks %q:\n%s", want, table)
		}
	}
	rows := c.Rows()
	if at := slices.Index(rows[0], "sum"); len(rows) != 4 || rows[1][0] != "0.5" || rows[1][1] != "5" || rows[1][at] != "3.5" {
		t.Errorf("rows %q", rows)
	}
	var decoded struct {
		Settings []struct {
			Values  map[string]string
			Seeds   []uint64
			Figures map[string]struct {
				Mean, Std *float64
				N         int
			}
		}
	}
	text, err := json.Marshal(c)
	must(t, err)
	must(t, json.Unmarshal(text, &decoded))
	if s := decoded.Settings[2]; s.Values["model.slope"] != "10" || len(s.Seeds) != 5 || *s.Figures["sum"].Mean != 13 ||
		s.Figures["inner.nan"].Mean != nil || s.Figures["good"].N != 5 {
		t.Errorf("%s", text)
	}
	page, err := c.Page(nil)
	must(t, err)
	var html strings.Builder
	must(t, page.Write(&html))
	for _, want := range []string{
		"<h1>count · 15 runs, 3 settings</h1>", "model.slope=0.5", "model.slope=10", "In common", "method = m", `class="h"`,
	} {
		if !strings.Contains(html.String(), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	// One run has no deviation, and the page shows none.
	single, err := catalog.Compare(runs[:1], catalog.Options{})
	must(t, err)
	page, err = single.Page(nil)
	must(t, err)
	html.Reset()
	must(t, page.Write(&html))
	if text := html.String(); !strings.Contains(text, `class="h"`) || strings.Contains(text, " ± 0") {
		t.Error("the page of one run has deviations, or no strips")
	}
	if _, err := c.Page([]string{"lost"}); err == nil || !strings.Contains(err.Error(), `did you mean "loss"?`) {
		t.Errorf("error %v", err)
	}
	if _, err := catalog.Compare(runs, catalog.Options{By: []string{"model.slop"}}); err == nil || !strings.Contains(err.Error(), "model.slope") {
		t.Errorf("error %v", err)
	}
	if one, err := catalog.Compare(runs, catalog.Options{By: []string{"method"}, Figures: []string{"inner.two"}}); err != nil ||
		len(one.Groups) != 1 || one.Groups[0].Stat("inner.two").Mean != 2 {
		t.Errorf("%+v, %v", one, err)
	}
	runs = slices.DeleteFunc(runs, func(r catalog.Run) bool { return strings.HasSuffix(r.Dir, filepath.Join("a", "1")) })
	if c, _ := catalog.Compare(runs, catalog.Options{}); !strings.Contains(strings.Join(c.Notes(), "\n"), "not all settings have the same seeds") {
		t.Errorf("notes %q", c.Notes())
	}
}
