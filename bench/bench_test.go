package bench

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gfnem/gfnem/backend"
	"github.com/gfnem/gfnem/config"
	"github.com/gfnem/gfnem/report"
)

// brief measures a workload as briefly as it can be.
func brief(t *testing.T, backendName, name string, o Options) ([]Result, error) {
	t.Helper()
	b, err := backend.Open(backendName)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range Workloads {
		if w.Name == name {
			var all []Result
			err := w.Run(b, o, func(r Result) error {
				all = append(all, r)
				if r.Reps < 1 || !(r.MinMS > 0) || r.MinMS > r.MedianMS || r.Threads < 1 {
					t.Errorf("result %+v", r)
				}
				return nil
			})
			return all, err
		}
	}
	t.Fatalf("no workload %s", name)
	return nil, nil
}

// A profile of mlp has all of its products: three forward, three for weights and two for activations.
func TestProfile(t *testing.T) {
	all, err := brief(t, "simd", "mlp", Options{Profile: true})
	if err != nil {
		t.Fatal(err)
	}
	m := all[0]
	if len(all) != 1 || m.Workload != "mlp" || m.Reps < 5 || m.FirstS <= 0 {
		t.Errorf("results %+v", all)
	}
	var flops float64
	for i, c := range m.Costs {
		flops += c.Flops
		if i > 0 && c.Time > m.Costs[i-1].Time {
			t.Errorf("step %d takes %v, the one before %v", i, c.Time, m.Costs[i-1].Time)
		}
		if c.What == "" || c.Runs < 8 || c.Bytes <= 0 {
			t.Errorf("step %d: %+v", i, c)
		}
	}
	const in, mid, out = 2 * 128, 128 * 128, 128 * 16
	products := 2 * 1024 * float64(3*(in+mid+out)-in)
	if flops < products || flops > 1.2*products { // what is not a product is small
		t.Errorf("%g operations, %g of them in products", flops, products)
	}
}

func TestProfileNeedsSIMD(t *testing.T) {
	_, err := brief(t, "go", "mlp", Options{Profile: true})
	if err == nil || !strings.Contains(err.Error(), "cannot be profiled") {
		t.Errorf("error %v", err)
	}
}

func TestNames(t *testing.T) {
	seen := map[string]bool{}
	for _, w := range Workloads {
		if seen[w.Name] || w.Name == "" || w.Help == "" {
			t.Errorf("workload %q: %q", w.Name, w.Help)
		}
		seen[w.Name] = true
	}
}

// A panel has a line for each method, in order of what varies, of the sizes at which all else is the same.
func TestDrawScaling(t *testing.T) {
	var all []Result
	for _, z := range [][2]float64{{20, 90}, {10, 90}, {20, 30}} {
		for _, name := range []string{"inside, CFG", "inside, Non-CFG"} {
			values := map[string]float64{"words": z[0], "symbols": z[1]}
			all = append(all, Result{Workload: "grammar-scaling " + name, MedianMS: z[0] + z[1], Values: values})
		}
	}
	for i, want := range [][2][]float64{{{10, 20}, {100, 110}}, {{30, 90}, {50, 110}}} {
		lines := drawScaling(all).Panels[0][i].(report.Lines).Series
		if len(lines) != 2 || lines[0].Name != "inside, CFG" || lines[1].Name != "inside, Non-CFG" {
			t.Fatalf("lines %+v", lines)
		}
		for _, l := range lines {
			if !slices.Equal(l.X, want[0]) || !slices.Equal(l.Y, want[1]) {
				t.Errorf("panel %d: %v, %v", i, l.X, l.Y)
			}
		}
	}
}

// Iterations with an M-step update the grammar, the others do not, and the programs say what they take.
func TestGrammar(t *testing.T) {
	all, err := brief(t, "simd", "grammar", Options{Preset: "quick", Vocabulary: 30, Set: config.Set{
		"model.nonterminals=2", "model.preterminals=3", "model.width=8", "batch=3", "max_length=4", "bucket=4",
		"sleep.leaves=5", "sleep.steps=4", "policy.width=8", "policy.layers=1", "policy.heads=2",
	}})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 2 || all[0].Workload != "grammar E" || all[1].Workload != "grammar E and M" {
		t.Fatalf("results %+v", all)
	}
	for i, r := range all {
		_, learns := r.PartsMS["learn"]
		_, maximizes := r.PartsMS["M-step"]
		if !learns || maximizes != (i == 1) || r.PartsMS["host"] <= 0 {
			t.Errorf("%s: parts %v", r.Workload, r.PartsMS)
		}
	}
}

func TestReadFigures(t *testing.T) {
	path := filepath.Join(t.TempDir(), "figures.json")
	for _, c := range []struct{ text, err string }{
		{`{"workload": "a", "median_ms": 3}` + "\n\n" + `{"workload": "a", "median_ms": 2, "threads": 1}` + "\n" + `{"workload": "b", "median_ms": 5}`, ""},
		{`{"workload": "a", "median_ms": 1, "threads": 1}` + "\n" + `{"workload": "a", "median_ms": 2, "threads": 1}` + "\n" +
			`{"workload": "a", "median_ms": 9, "threads": 1}` + "\n" + `{"workload": "b", "median_ms": 5}`, ""},
		{"", "no measurement"},
		{`{"workload": "a", "median_ms": 3}` + "\n{", ":2: "},
		{`{"workload": "a"}`, `want an object with "workload" and "median_ms"`},
		{`{"median_ms": 3}`, `want an object with "workload" and "median_ms"`},
	} {
		if err := os.WriteFile(path, []byte(c.text), 0o666); err != nil {
			t.Fatal(err)
		}
		b, err := ReadFigures(path)
		switch {
		case c.err != "":
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%q: error %v, want %q", c.text, err, c.err)
			}
		case err != nil:
			t.Error(err)
		case len(b) != 2 || b["a"].MedianMS != 2 || b["a"].Threads != 1 || b["b"].MedianMS != 5:
			t.Errorf("figures %v", b)
		}
	}
}
