package bench

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/cli/command"
)

// lines writes a file of figures.
func lines(t *testing.T, name string, figures ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(strings.Join(figures, "\n")), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

func ran(c compareCmd) (out, warnings string, err error) {
	var o, e bytes.Buffer
	err = c.Run(command.Console{Out: &o, Err: &e})
	return o.String(), e.String(), err
}

func TestCompareFiles(t *testing.T) {
	theirs := lines(t, "torch.json",
		`{"workload": "mlp", "median_ms": 9, "min_ms": 7, "threads": 1}`,
		`{"workload": "mlp", "median_ms": 5, "min_ms": 3, "threads": 2}`,
		`{"workload": "mlp", "median_ms": 6, "min_ms": 4, "threads": 2}`,
		`{"workload": "mlp", "median_ms": 70, "min_ms": 5, "threads": 2}`,
		`{"workload": "inside", "median_ms": 1.5}`,
		`{"workload": "theirs alone", "median_ms": 1}`)
	ours := lines(t, "ours.json",
		`{"workload": "mlp", "median_ms": 2, "min_ms": 1, "threads": 2}`,
		`{"workload": "inside", "median_ms": 3, "min_ms": 2, "threads": 2}`,
		`{"workload": "ours alone", "median_ms": 3}`)
	out, warnings, err := ran(compareCmd{File: theirs, Ours: ours})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(warnings, "no figures for theirs alone") {
		t.Errorf("warnings %q", warnings)
	}
	if strings.Contains(out, "alone") || !strings.Contains(out, "torch.json") {
		t.Errorf("table %s", out)
	}
	rows := map[string][]string{}
	for line := range strings.Lines(out) {
		if f := strings.Fields(line); len(f) > 0 {
			rows[f[0]] = f
		}
	}
	for workload, want := range map[string]string{
		"mlp": "mlp 6.000 2 2.000 2 3.00 3.00", "inside": "inside 1.500 – 3.000 2 0.50 –",
	} {
		if got := strings.Join(rows[workload], " "); got != want {
			t.Errorf("row %q, want %q", got, want)
		}
	}

	out, _, err = ran(compareCmd{File: theirs, Ours: ours, Names: []string{"inside"}, JSON: true})
	var c comparison
	if err != nil || json.Unmarshal([]byte(out), &c) != nil || c.Workload != "inside" || c.Ratio != 0.5 || c.RatioOfFastest != 0 {
		t.Errorf("%s: %+v, error %v", out, c, err)
	}
}

func TestCompareMeasures(t *testing.T) {
	theirs := lines(t, "torch.json", `{"workload": "mlp", "median_ms": 1000, "min_ms": 900, "threads": 2}`)
	out, _, err := ran(compareCmd{File: theirs, Backend: command.Backend{Backend: "simd"}, JSON: true, Options: Options{
		Nonterminals: 30, Preterminals: 60, Words: 20, Sentences: 32, Vocabulary: 9672, Preset: "paper",
	}})
	var c comparison
	if err != nil || json.Unmarshal([]byte(out), &c) != nil {
		t.Fatalf("%s: %v", out, err)
	}
	if c.Theirs.MedianMS != 1000 || c.Ours.Reps < 5 || c.Ratio != 1000/c.Ours.MedianMS || c.RatioOfFastest != 900/c.Ours.MinMS {
		t.Errorf("%+v", c)
	}
}

func TestCompareRefuses(t *testing.T) {
	good := lines(t, "good.json", `{"workload": "mlp", "median_ms": 1}`)
	other := lines(t, "other.json", `{"workload": "else", "median_ms": 1}`)
	for want, c := range map[string]compareCmd{
		"no such file":            {File: "nothing.json"},
		"no measurement":          {File: lines(t, "empty.json")},
		`:1: `:                    {File: lines(t, "bad.json", "{")},
		`want an object`:          {File: lines(t, "less.json", `{"workload": "mlp"}`)},
		"unknown benchmark":       {File: good, Names: []string{"mpl"}},
		"nothing of":              {File: good, Ours: other},
		"is an option of measure": {File: good, Options: Options{Profile: true}},
	} {
		if _, _, err := ran(c); !errors.As(err, new(*badinput.Error)) || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: error %v, want %q", c, err, want)
		}
	}
}
