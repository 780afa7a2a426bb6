package cli_test

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var fence = regexp.MustCompile("(?ms)^```([a-z]+)\n(.*?)^```$")

// blocks are the fenced blocks of a document in a language.
func blocks(t *testing.T, document, language string) (out []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", document))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range fence.FindAllStringSubmatch(string(text), -1) {
		if m[1] == language {
			out = append(out, m[2])
		}
	}
	return out
}

// newDocumented writes a module of the given files.
func newDocumented(t *testing.T, files map[string]string) outside {
	t.Helper()
	o := outside{t, t.TempDir()}
	for name, text := range files {
		path := filepath.Join(o.dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	o.require()
	return o
}

// The program of the README works as it is printed, and finds what it is said to find.
func TestReadmeProgram(t *testing.T) {
	t.Parallel()
	programs := blocks(t, "README.md", "go")
	if len(programs) != 1 {
		t.Fatalf("%d programs", len(programs))
	}
	o := newDocumented(t, map[string]string{"main.go": programs[0]})
	o.goes("build", "-o", "bin/", ".")
	var got struct {
		Metrics map[string]float64 `json:"metrics"`
	}
	if err := json.Unmarshal([]byte(o.says("outside", "train", "--out", "run", "--json")), &got); err != nil {
		t.Fatal(err)
	}
	var weights []float64
	for _, w := range got.Metrics {
		weights = append(weights, w)
	}
	slices.Sort(weights)
	t.Logf("the things weigh %.3f", weights)
	for i, want := range []float64{1, 2, 4} {
		if len(weights) != 3 || math.Abs(weights[i]-want) > 0.05 {
			t.Fatalf("the things weigh %v, want 1, 2 and 4", weights)
		}
	}
	for _, want := range []string{"run", "0 damaged"} {
		if got := o.says("outside", "verify", "run"); !strings.Contains(got, want) {
			t.Errorf("verify says %q", got)
		}
	}
}
