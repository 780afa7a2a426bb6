package main

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gfnem/gfnem/run"
	"github.com/gfnem/gfnem/run/runtest"
)

// must runs a command in this process.
func must(t *testing.T, args ...string) {
	t.Helper()
	var out, errOut bytes.Buffer
	if code := execute(args, &out, &errOut); code != exitOK {
		t.Fatalf("%s: exit code %d: %s", strings.Join(args, " "), code, errOut.String())
	}
}

// beforehand is a line that says what run.toml names, or what is read of a data set.
var beforehand = regexp.MustCompile(`^(reading|(train|valid|test): \d+ sentences?|sentences\.trees: trees in brackets\n)`)

// refuses runs a command that must end with exit code 2, no result, and one line that says why.
func refuses(t *testing.T, why string, args ...string) {
	t.Helper()
	var out, errOut bytes.Buffer
	code := execute(args, &out, &errOut)
	text := errOut.String()
	for beforehand.MatchString(text) {
		_, text, _ = strings.Cut(text, "\n")
	}
	if code != exitBadInput || out.Len() > 0 || strings.Count(text, "\n") != 1 || !strings.Contains(text, why) ||
		!strings.Contains(text, " at step ") {
		t.Errorf("%s: exit code %d, result %q, says %q, want %q", strings.Join(args, " "), code, out.String(), text, why)
	}
}

// saved returns the newest state of a run.
func saved(t *testing.T, dir string) run.State {
	t.Helper()
	r, err := run.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	s, _, err := r.Load()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// reseal makes a state the only checkpoint of a run, with the right hashes.
func reseal(t *testing.T, dir string, s run.State) {
	t.Helper()
	r, err := run.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, _, err := r.Load(); err != nil {
		t.Fatal(err)
	}
	old, err := filepath.Glob(filepath.Join(dir, "state", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range old {
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Save(s); err != nil {
		t.Fatal(err)
	}
}

// A checkpoint whose hashes are right, with variables or counters that are not those of its run, or with numbers that
// are not finite, is refused by every command in one line, whatever the task and its method.
func TestMisfits(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	tinyOf := func(task string) string { return filepath.Join("testdata", "tiny", task+".toml") }
	must(t, "data", "treebank", filepath.Join("testdata", "tiny", "sentences.trees"),
		"--valid-fraction", "0.2", "--test-fraction", "0.1", "--out", at("data"))
	if err := os.WriteFile(at("codes"), []byte("0 1 2 3\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	treebank := []string{"--data", at("data")}
	must(t, append([]string{"train", "grammar", "--out", at("given"), "--config", tinyOf("grammar")}, treebank...)...)
	byGFN := append(slices.Clone(treebank), "--method", "gfn")
	vae := func(method string) []string { return []string{"--method", method} }
	for name, c := range map[string]struct {
		task     string
		args     []string
		theta    string // a variable of the model
		phi      string // and one of the GFlowNet; "" if there is none
		counters string // that are renamed
	}{
		"mixture":          {"mixture", nil, "/theta/means", "/phi/0/weights", "Iteration"},
		"mixture, moves":   {"mixture", []string{"--set", "moves.count=1"}, "/theta/means", "/phi/1/bias", "InARow.Sleep"},
		"vq":               {"vae", vae("vq"), "/theta/codebook/sum", "", "height"},
		"gfn":              {"vae", vae("gfn"), "/theta/dictionary/embedding", "/phi/log z/zeta", "trainer.M"},
		"gfn-gd":           {"vae", vae("gfn-gd"), "/theta/decoder/out/bias", "/phi/state/0/bias", "trainer.Gate"},
		"gfn-gd-prior":     {"vae", vae("gfn-gd-prior"), "/theta/prior/out/bias", "/phi/state/0/bias", "trainer.Gate.E"},
		"marginal":         {"grammar", treebank, "/theta/symbols", "", "loop.M"},
		"exact":            {"grammar", append(treebank, "--method", "exact"), "/theta/unary/bias", "", "words"},
		"mcem and a prior": {"grammar", append(treebank, "--method", "mcem", "--ebm"), "/theta/symbols", "", "prior.params"},
		"grammar gfn":      {"grammar", byGFN, "/theta/symbols", "/phi/flow/value/norm/scale", "loop.Skipped"},
		"fixed":            {"grammar", append(byGFN, "--set", "fixed="+at("given")), "/grammar/emit", "/phi/encoder/tokens", "words"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := at(strings.ReplaceAll(name, " ", "-"))
			must(t, append([]string{"train", c.task, "--out", folder, "--config", tinyOf(c.task)}, c.args...)...)
			good := saved(t, folder)
			commands := [][]string{{"eval", folder, "--json"}, {"report", folder}, {"resume", folder}}
			switch c.task {
			case "vae":
				commands = append(commands, []string{"encode", folder, "x.png"}, []string{"sample", folder},
					[]string{"decode", folder, at("codes"), "--out", at("x.png")})
			case "grammar":
				commands = append(commands, []string{"parse", folder}, []string{"inside", folder},
					[]string{"grammar", "export", folder},
					append([]string{"train", "grammar", "--set", "fixed=" + folder, "--out", at("none")}, byGFN...))
			}
			if c.task == "grammar" && c.phi != "" {
				byNetwork := []string{"parse", folder, "--decode", "gfn"}
				reseal(t, folder, changed(good, func(a map[string]run.Array) { delete(a, c.phi) }))
				refuses(t, "missing "+c.phi+":", byNetwork...)
				reseal(t, folder, notFinite(good, c.phi))
				refuses(t, c.phi+" has ", byNetwork...)
			}
			all := runtest.Damaged(good)
			for _, d := range []struct {
				why   string
				state run.State
			}{
				{"missing " + c.theta + ":", changed(good, func(a map[string]run.Array) { delete(a, c.theta) })},
				{c.theta + " has ", notFinite(good, c.theta)},
				{"missing " + c.counters + "; unknown " + c.counters + "_:", all["counter ."+c.counters+" renamed"]},
			} {
				reseal(t, folder, d.state)
				for _, args := range commands {
					refuses(t, d.why, args...)
				}
			}
			// One command reads all of it; runtest.Job tries every one of these.
			for i, what := range slices.Sorted(maps.Keys(all)) {
				if i%23 == 0 {
					reseal(t, folder, all[what])
					refuses(t, "the ", "eval", folder)
				}
			}
			reseal(t, folder, good)
			must(t, "eval", folder)
		})
	}
}

// A cell of a table goes on from its checkpoint in the same way.
func TestMisfitOfCell(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	data, table := filepath.Join(dir, "data"), filepath.Join(dir, "table")
	must(t, "data", "treebank", filepath.Join("testdata", "tiny", "sentences.trees"),
		"--valid-fraction", "0.2", "--test-fraction", "0.1", "--out", data)
	args, err := withKeys(filepath.Join("testdata", "tiny", "grammar.toml"),
		[]string{"reproduce", "grammar", "--rows", "marginal", "--seeds", "1", "--out", table, "--data", data})
	if err != nil {
		t.Fatal(err)
	}
	must(t, args...)
	cell := filepath.Join(table, "marginal", "0")
	reseal(t, cell, notFinite(saved(t, cell), "/theta/symbols"))
	if err := os.Remove(filepath.Join(cell, "result.json")); err != nil {
		t.Fatal(err)
	}
	var out, errOut bytes.Buffer
	code := execute(args, &out, &errOut)
	if code != exitBadInput || !strings.Contains(errOut.String(), "/theta/symbols has 1 numbers") {
		t.Errorf("exit code %d, says %q", code, errOut.String())
	}
}

// changed is a state with other arrays.
func changed(s run.State, change func(a map[string]run.Array)) run.State {
	s.Arrays = maps.Clone(s.Arrays)
	change(s.Arrays)
	return s
}

// notFinite is a state with a NaN.
func notFinite(s run.State, path string) run.State {
	return changed(s, func(a map[string]run.Array) {
		old := a[path]
		data := bytes.Clone(old.Data)
		copy(data, "\x00\x00\xc0\x7f")
		a[path] = run.Array{DType: old.DType, Shape: old.Shape, Data: data}
	})
}
