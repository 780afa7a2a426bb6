package vae

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gfnem/gfnem/report"
	"github.com/gfnem/gfnem/run"
)

// The rows are the paper's, with its figures, then those of preset quick.
func TestTableRows(t *testing.T) {
	rows := Task{}.Tables()["vae"]
	want := "vq-4 vq-8 vq-10 gfn-4 gfn-8 gfn-10 gfn-gd-4 gfn-gd-8 gfn-gd-10 gfn-gd-prior-4 gfn-gd-prior-8 gfn-gd-prior-10 " +
		"quick-vq quick-gfn quick-gfn-gd quick-gfn-gd-prior"
	if got := strings.Join(rows, " "); got != want {
		t.Errorf("rows %s", got)
	}
	for _, r := range tableRows() {
		if err := r.config.Validate(); err != nil {
			t.Errorf("%s: %v", r.key, err)
		}
		if !r.config.Eval.NLL {
			t.Errorf("%s estimates no likelihood", r.key)
		}
		if r.key == "gfn-10" && r.paper.String() != "70.67 ± 0.72" {
			t.Errorf("the paper's figure of %s is %s", r.key, r.paper)
		}
	}
}

// A table is made of runs that are reused, and leaves out what was not asked for.
func TestReproduce(t *testing.T) {
	var rows []tableRow
	for _, m := range []string{MethodVQ, MethodGD} {
		c := tinyConfig(m)
		c.TrainImages, c.TestImages, c.Epochs, c.Optim.DropOn, c.Data = 16, 4, 1, 0, "digits"
		rows = append(rows, tableRow{key: m + "-3", title: m, paper: report.MeanStd(1, 2, 2), config: c})
	}
	rows = append(rows, tableRow{key: "other", config: PaperConfig()}, tableRow{key: "quick", config: PaperConfig(), quick: true})
	s := run.Study{
		Grid: run.Grid{Dir: t.TempDir(), Task: Task{}, Backend: open(t), Name: "simd", Workers: 2},
		Rows: []string{"vq-3", "gfn-gd-3"}, Runs: 2, Seed: 5,
	}
	var texts []string
	for range 2 {
		r, err := reproduce(context.Background(), s, rows)
		if err != nil {
			t.Fatal(err)
		}
		data, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		if err := r.Print(&b); err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(data)+b.String())
		out := r.(*reproduced)
		if len(out.Rows) != 2 {
			t.Fatalf("%d rows", len(out.Rows))
		}
		for key, row := range out.Rows {
			if len(row.Runs) != 2 || row.Runs[0].Seed != 5 || row.Runs[1].Seed != 6 || row.Runs[0].NLL.NLL == row.Runs[1].NLL.NLL {
				t.Errorf("%s: %+v", key, row)
			}
			mean := (row.Runs[0].NLL.NLL + row.Runs[1].NLL.NLL) / 2
			near(t, key+": mean", row.NLL, mean, 1e-9)
			if published := row.Runs[0].Bound; key == "vq-3" && *row.Runs[0].Published != published {
				t.Errorf("the published figure of a VQ-VAE is %g, its bound %g", *row.Runs[0].Published, published)
			}
		}
	}
	if texts[0] != texts[1] {
		t.Errorf("made again, the table differs:\n%s\n%s", texts[0], texts[1])
	}
	if _, err := os.Stat(filepath.Join(s.Dir, "report.html")); err != nil {
		t.Error(err)
	}
	entries, err := os.ReadDir(s.Dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if slices.Contains(names, "other") || slices.Contains(names, "quick") {
		t.Errorf("made %s", fmt.Sprint(names))
	}
}
