package bench

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gfnem/gfnem/backend"
)

// A profile of mlp has all of its products: three forward, three for weights and two for activations.
func TestProfile(t *testing.T) {
	b, err := backend.Open("simd")
	if err != nil {
		t.Fatal(err)
	}
	m, costs, err := Profile(b, "mlp", Options{})
	if err != nil {
		t.Fatal(err)
	}
	if m.Workload != "mlp" || m.Reps < 5 || m.MinMS <= 0 || m.MinMS > m.MedianMS {
		t.Errorf("measurement %+v", m)
	}
	var flops float64
	for i, c := range costs {
		flops += c.Flops
		if i > 0 && c.Time > costs[i-1].Time {
			t.Errorf("step %d takes %v, the one before %v", i, c.Time, costs[i-1].Time)
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
	b, err := backend.Open("go")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := Profile(b, "mlp", Options{}); err == nil || !strings.Contains(err.Error(), "cannot be profiled") {
		t.Errorf("error %v", err)
	}
	if _, err := Run(b, "none", Options{}); err == nil {
		t.Error("a workload of any name runs")
	}
}

func TestReadBaseline(t *testing.T) {
	path := filepath.Join(t.TempDir(), "base.json")
	for _, c := range []struct{ text, err string }{
		{`{"workload": "a", "median_ms": 3}` + "\n\n" + `{"workload": "a", "median_ms": 2, "threads": 1}` + "\n" + `{"workload": "b", "median_ms": 5}`, ""},
		{"", "no measurement"},
		{`{"workload": "a", "median_ms": 3}` + "\n{", ":2: "},
		{`{"workload": "a"}`, `want an object with "workload" and "median_ms"`},
		{`{"median_ms": 3}`, `want an object with "workload" and "median_ms"`},
	} {
		if err := os.WriteFile(path, []byte(c.text), 0o666); err != nil {
			t.Fatal(err)
		}
		b, err := ReadBaseline(path)
		switch {
		case c.err != "":
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%q: error %v, want %q", c.text, err, c.err)
			}
		case err != nil:
			t.Error(err)
		case len(b) != 2 || b["a"].MedianMS != 2 || b["a"].Threads != 1 || b["b"].MedianMS != 5:
			t.Errorf("baseline %v", b)
		}
	}
}
