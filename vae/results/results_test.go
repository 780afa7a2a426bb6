package results

import (
	"encoding/json"
	"maps"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gfnem/gfnem/backend"
	"github.com/gfnem/gfnem/config"
	"github.com/gfnem/gfnem/run"
	"github.com/gfnem/gfnem/vae"
)

// tiny is what makes rows trainings of a moment.
var tiny = config.Set{
	"train_images=434", "test_images=6", "batch=4", "epochs=1", "optim.drop_on=0", "model.channels=2", "model.rows=2",
	"model.columns=2", "model.codes=3", "policy.width=8", "policy.layers=1", "eval.samples=4", "eval.images=4", "eval.fit_updates=3",
	"eval.extra_e_updates=0", "eval.every=0",
}

// The rows of the published table are the paper's, with its figures, then those of preset quick.
func TestPublished(t *testing.T) {
	rows := Task{}.Tables()["vae"]
	want := "vq-4 vq-8 vq-10 gfn-4 gfn-8 gfn-10 gfn-gd-4 gfn-gd-8 gfn-gd-10 gfn-gd-prior-4 gfn-gd-prior-8 gfn-gd-prior-10 " +
		"quick-vq quick-gfn quick-gfn-gd quick-gfn-gd-prior"
	if got := strings.Join(rows, " "); got != want {
		t.Errorf("rows %s", got)
	}
	for _, r := range published().rows {
		if r.key == "gfn-10" && r.paper.String() != "70.67 ± 0.72" {
			t.Errorf("the paper's figure of %s is %s", r.key, r.paper)
		}
	}
}

// Titles say where a row is not what its method or its name is elsewhere.
func TestTitles(t *testing.T) {
	for _, table := range tables() {
		for _, r := range table.rows {
			c, err := table.config(run.Study{}, r, 0)
			if err != nil {
				t.Fatal(err)
			}
			gd := strings.Contains(r.title, "+ GD")
			if says, is := strings.Contains(r.title, "the best of drawn"), c.MStep.Latents == "best"; gd && says != is {
				t.Errorf("%s: %q learns from latents %q", r.key, r.title, c.MStep.Latents)
			}
			paper := vae.PaperConfig()
			if says := strings.Contains(r.title, "but for rates"); says != (gd && c.Optim.Phi.Rate != paper.Optim.Phi.Rate && !r.extra) {
				t.Errorf("%s: %q has rate %g", r.key, r.title, c.Optim.Phi.Rate)
			}
		}
	}
}

// Every row of every table has a configuration that passes its checks, of its own, and estimates a likelihood.
func TestRows(t *testing.T) {
	for _, table := range tables() {
		seen := map[string]string{}
		for _, r := range table.rows {
			c, err := table.config(run.Study{}, r, 7)
			if err != nil {
				t.Errorf("%s, %s: %v", table.name, r.key, err)
				continue
			}
			if !c.Eval.NLL || c.Seed != 7 {
				t.Errorf("%s, %s: %+v", table.name, r.key, c)
			}
			text, err := config.Encode(c)
			if err != nil {
				t.Fatal(err)
			}
			if other, ok := seen[text]; ok {
				t.Errorf("%s: %s and %s are the same", table.name, r.key, other)
			}
			seen[text] = r.key
		}
	}
	best := vae.BestConfig()
	best.Method = vae.MethodGFN
	for _, r := range ablation().rows {
		if r.key != "weights" {
			continue
		}
		c, err := ablation().config(run.Study{}, r, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := best.Validate(); err != nil {
			t.Fatal(err)
		}
		keys, err := config.Changed(&best, c)
		if got := strings.Join(keys, " "); err != nil || got != "eval.on eval.images" {
			t.Errorf("the last step of the ablation differs from preset best in %s: %v", got, err)
		}
	}
}

func study(t *testing.T, dir, table string, rows ...string) run.Study {
	t.Helper()
	b, err := backend.Open("simd")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Finalize)
	s := run.Study{
		Grid:  run.Grid{Dir: dir, Task: Task{}, Backend: b, Name: "simd", Workers: 2},
		Table: table, Rows: rows, Runs: 2, Seed: 5,
	}
	s.Set = tiny
	return s
}

// A table is made of runs that are reused, and leaves out what was not asked for.
func TestReproduce(t *testing.T) {
	s := study(t, t.TempDir(), "vae-decoders", "vq-norm", "gfn-norm")
	var texts []string
	for range 2 {
		r, err := Task{}.Reproduce(t.Context(), s)
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
		out := r.(*made)
		if len(out.Rows) != 2 || strings.Count(b.String(), "batch norm, codes of 16 numbers") != 2 {
			t.Fatalf("rows %v:\n%s", maps.Keys(out.Rows), b.String())
		}
		for key, row := range out.Rows {
			one, two := row.Runs[0], row.Runs[1]
			if len(row.Runs) != 2 || one.Seed != 5 || two.Seed != 6 || one.NLL.NLL == two.NLL.NLL {
				t.Errorf("%s: %+v", key, row)
			}
			if math.Abs(row.NLL-(one.NLL.NLL+two.NLL.NLL)/2) > 1e-9 {
				t.Errorf("%s: mean %g", key, row.NLL)
			}
			if key == "vq-norm" && *one.Published != one.Bound {
				t.Errorf("the published figure of a VQ-VAE is %g, its bound %g", *one.Published, one.Bound)
			}
			if one.Parameters.Model == 0 || one.Parameters.Posterior == 0 {
				t.Errorf("%s: parameters %+v", key, one.Parameters)
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
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), "plain") {
			t.Errorf("made %s", e.Name())
		}
	}
}

// The ablation trains its rows on other images than it measures, and times them.
func TestAblation(t *testing.T) {
	s := study(t, t.TempDir(), "vae-ablation", "published", "memory")
	s.Runs = 1
	r, err := Task{}.Reproduce(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	for key, row := range r.(*made).Rows {
		if !(row.Milliseconds > 0) || row.Runs[0].On != "validation" {
			t.Errorf("%s: %g ms, measured on %s", key, row.Milliseconds, row.Runs[0].On)
		}
	}
	s.Set = append(s.Set, "wake.memory=3")
	s.Rows = []string{"memory"}
	if _, err := (Task{}).Reproduce(t.Context(), s); err == nil || !strings.Contains(err.Error(), "has wake.memory of its own") {
		t.Errorf("error %v", err)
	}
}
