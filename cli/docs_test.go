package cli_test

import (
	"encoding/json"
	"go/format"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A fenced block of a document, and the first line of one that names its file.
var (
	fence = regexp.MustCompile("(?ms)^```([a-z]+)\n(.*?)^```$")
	named = regexp.MustCompile(`\A// ([\w/]+\.go)(, continued)?\n\n`)
)

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

// newDocumented writes the module whose files are the Go blocks of a document. A block belongs to the file that its
// first line names, or else to that of the block before; the first one to main.go.
func newDocumented(t *testing.T, document, name string) outside {
	t.Helper()
	o := outside{t, t.TempDir(), name}
	files, at := map[string]string{}, "main.go"
	for _, block := range blocks(t, document, "go") {
		if m := named.FindStringSubmatch(block); m != nil {
			at, block = m[1], strings.TrimPrefix(block, m[0])
		}
		if files[at] != "" {
			files[at] += "\n"
		}
		files[at] += block
	}
	for at, text := range files {
		if tidy, err := format.Source([]byte(text)); err != nil || string(tidy) != text {
			t.Errorf("%s of %s is not formatted as gofmt does it: %v", at, document, err)
		}
		path := filepath.Join(o.dir, at)
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
	o := newDocumented(t, "README.md", "readme")
	o.goes("build", "-o", "bin/", ".")
	var got struct {
		Metrics map[string]float64 `json:"metrics"`
	}
	if err := json.Unmarshal([]byte(o.says("readme", "train", "--out", "run", "--json")), &got); err != nil {
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
	if got := o.says("readme", "verify", "run"); !strings.Contains(got, " 0 damaged") {
		t.Errorf("verify says %q", got)
	}
}

// The guide's program is formatted Go that builds outside of this module, its tests pass, and its commands do what they
// are said to, here on little data. Killed and resumed it ends with the same bits.
func TestGuide(t *testing.T) {
	t.Parallel()
	const guide = "docs/own-model.md"
	o := newDocumented(t, guide, "words")
	if model, err := os.ReadFile(filepath.Join(o.dir, "words/words.go")); err != nil {
		t.Error(err)
	} else if lines := strings.Count(string(model), "\n"); lines > 150 {
		t.Errorf("the model has %d lines, not 150 as the guide says", lines)
	}
	o.goes("build", "-o", "bin/", ".", "./ask")
	little := []string{"--set", "sentences=100", "--set", "updates=60"}
	ran := map[string]string{}
	for _, line := range strings.Split(strings.Join(blocks(t, guide, "sh"), ""), "\n") {
		switch f := strings.Fields(line); {
		case len(f) < 3:
		case f[1] == "test":
			o.goes(f[1:]...)
		case f[2] == "./ask":
			ran[line] = o.says("ask", f[3:]...)
		case f[3] == "train":
			ran[line] = o.says("words", slices.Concat(f[3:], little)...)
		default:
			ran[line] = o.says("words", f[3:]...)
		}
	}
	for line, want := range map[string]string{
		"go run . train --out runs/a":        "evidence lower bound",
		"go run . resume runs/a":             "evidence lower bound",
		"go run . eval runs/a":               "effective sample size",
		"go run . report runs/a":             "report.html",
		"go run . verify runs/a":             " 0 damaged",
		"go run ./ask runs/a thedogseesacat": "effective sample size",
		"go run ./ask runs/a":                "log p(x,z)",
	} {
		found := false
		for said, out := range ran {
			found = found || strings.HasPrefix(said, line) && strings.Contains(out, want)
		}
		if !found {
			t.Errorf("%q does not say %q", line, want)
		}
	}
	o.kill(slices.Concat([]string{"train", "--out", "killed", "--save-every", "1ms"}, little)...)
	whole := o.result(o.says("words", "eval", "runs/a", "--json"))
	if got := o.result(o.says("words", "resume", "killed", "--json")); !reflect.DeepEqual(got, whole) {
		t.Errorf("killed and resumed %v, not killed %v", got, whole)
	}
	if a, b := o.says("ask", "runs/a", "thedogseesacat"), o.says("ask", "killed", "thedogseesacat"); a != b {
		t.Errorf("of equal runs: %q, %q", a, b)
	}
}
