// Package python tests gfnem.py against runs that are made here.
package python

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/gfnem/gfnem/cli"
	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/grammar/grammarcmd"
	"github.com/gfnem/gfnem/mixture"
	"github.com/gfnem/gfnem/run"
)

const tiny = "../../cmd/gfnem/testdata/tiny/"

// python finds one that has numpy.
func python(t *testing.T) string {
	t.Helper()
	for _, path := range []string{"python3", "/usr/bin/python3"} {
		if exec.Command(path, "-c", "import numpy, tomllib").Run() == nil {
			return path
		}
	}
	t.Skip("there is no python3 of version 3.11 with numpy")
	return ""
}

// gfnem runs the program and returns its output.
func gfnem(t *testing.T, args ...string) string {
	t.Helper()
	var out, errOut bytes.Buffer
	p := cli.Program{Name: "gfnem", Tasks: []run.Task{mixture.Task{}, grammarcmd.Task{}}}
	if code := p.Execute(args, &out, &errOut); code != cli.ExitOK {
		t.Fatalf("gfnem %v: exit code %d\n%s", args, code, errOut.Bytes())
	}
	return out.String()
}

// gfnemReads is gfnem with text on standard input.
func gfnemReads(t *testing.T, text string, args ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "input")
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	defer func(before *os.File) { os.Stdin = before }(os.Stdin)
	os.Stdin = f
	return gfnem(t, args...)
}

// runs makes a folder with runs and grammars.
func runs(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	gfnem(t, "train", "mixture", "--config", tiny+"mixture.toml", "--out", in("runs/mixture"))
	for _, kind := range []string{"cfg", "ncfg"} {
		gfnem(t, "train", "grammar", "--config", tiny+"grammar.toml", "--grammar", kind, "--out", in("runs/"+kind))
		gfnem(t, "grammar", "export", in("runs/"+kind), "--out", in(kind+".json"))
	}
	return dir
}

// says runs a program in Python, which must succeed, in a folder and returns its output.
func says(t *testing.T, dir, program string, args ...string) string {
	t.Helper()
	here, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(python(t), append([]string{"-c", program}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PYTHONPATH="+here+string(os.PathListSeparator)+os.Getenv("PYTHONPATH"), "PYTHONDONTWRITEBYTECODE=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, program, out)
	}
	return string(out)
}

func TestReader(t *testing.T) {
	python(t)
	dir := runs(t)
	t.Run("run", func(t *testing.T) { testRun(t, dir) })
	t.Run("changed", func(t *testing.T) { testChanged(t, dir) })
	t.Run("grammar", func(t *testing.T) { testGrammar(t, dir) })
	t.Run("damage", func(t *testing.T) { testDamage(t, dir) })
	t.Run("readme", func(t *testing.T) { testReadme(t, dir) })
}

// Python and Go read the same numbers from a run.
func testRun(t *testing.T, dir string) {
	var got struct {
		Task       string
		Points     int
		Steps      []int
		Loss       []float64
		Parameters map[string][]float64
		Shape      []int
		Step       int
		Dtypes     []string
	}
	out := says(t, dir, `
import gfnem, json
run = gfnem.Run("runs/mixture")
steps, loss = run.curve("e/loss")
step, arrays = run.checkpoint()
print(json.dumps({"task": run.info["task"], "points": run.config["points"], "steps": steps.tolist(), "loss": loss.tolist(),
  "parameters": {k: v.ravel().tolist() for k, v in run.parameters.items()}, "shape": run.parameters["/theta/means"].shape,
  "step": step, "dtypes": sorted({str(a.dtype) for a in arrays.values()})}))`)
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	r, err := run.Read(filepath.Join(dir, "runs/mixture"))
	if err != nil {
		t.Fatal(err)
	}
	state, _, err := r.Load()
	if err != nil {
		t.Fatal(err)
	}
	if got.Task != "mixture" || got.Points != 200 || fmt.Sprint(got.Shape) != "[4 2]" || got.Step != int(state.Step) {
		t.Errorf("python reads %+v", got)
	}
	for name, values := range got.Parameters {
		want := floats(state.Arrays[name].Data)
		if len(values) != len(want) || len(want) == 0 {
			t.Fatalf("%s has %d values, want %d", name, len(values), len(want))
		}
		for i, v := range values {
			if v != want[i] {
				t.Errorf("%s[%d] is %g, want %g", name, i, v, want[i])
			}
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "runs/mixture/metrics.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(text)) {
		var m map[string]float64
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatal(err)
		}
		loss, ok := m["e/loss"]
		if !ok {
			continue
		}
		if n >= len(got.Loss) || got.Loss[n] != loss || got.Steps[n] != int(m["step"]) {
			t.Fatalf("point %d of the curve is not %g at %g", n, loss, m["step"])
		}
		n++
	}
	if n == 0 || n != len(got.Loss) {
		t.Errorf("a curve of %d points has %d", n, len(got.Loss))
	}
}

// The configuration is the newest one if a run has been resumed with another.
func testChanged(t *testing.T, dir string) {
	gfnem(t, "resume", filepath.Join(dir, "runs/mixture"), "--set", "iterations=5")
	out := says(t, dir, "import gfnem\nrun = gfnem.Run('runs/mixture')\nprint(run.config['iterations'], run.changes[0]['set'])")
	if want := "5 ['iterations=5']\n"; out != want {
		t.Errorf("a run that was changed has %q, want %q", out, want)
	}
}

// floats reads float32 numbers.
func floats(data []byte) (out []float64) {
	for i := 0; i+4 <= len(data); i += 4 {
		bits := uint32(data[i]) | uint32(data[i+1])<<8 | uint32(data[i+2])<<16 | uint32(data[i+3])<<24
		out = append(out, float64(math.Float32frombits(bits)))
	}
	return out
}

// The tables of a grammar have the numbers that Go reads from its file, in the same order.
func testGrammar(t *testing.T, dir string) {
	for _, kind := range []string{"cfg", "ncfg"} {
		g, err := grammar.Load(filepath.Join(dir, kind+".json"))
		if err != nil {
			t.Fatal(err)
		}
		var got struct{ Root, Rules, Emit []float64 }
		out := says(t, dir, `
import gfnem, json, sys
g = gfnem.Grammar.load(sys.argv[1])
print(json.dumps({k: getattr(g, k).ravel().tolist() for k in ("root", "rules", "emit")}))`, kind+".json")
		if err := json.Unmarshal([]byte(out), &got); err != nil {
			t.Fatal(err)
		}
		for name, tables := range map[string][2][]float64{
			"root": {got.Root, g.Root}, "rules": {got.Rules, g.Rules}, "emit": {got.Emit, g.Emit},
		} {
			if fmt.Sprint(tables[0]) != fmt.Sprint(tables[1]) {
				t.Errorf("%s: python has other probabilities of %s", kind, name)
			}
		}
	}
}

// What does not match its hash is refused.
func testDamage(t *testing.T, dir string) {
	damaged := filepath.Join(t.TempDir(), "damaged")
	if err := os.CopyFS(damaged, os.DirFS(filepath.Join(dir, "runs/mixture"))); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ file, read string }{
		{"run.toml", "run.config"}, {"parameters.safetensors", "run.parameters"},
	} {
		path := filepath.Join(damaged, c.file)
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		data[len(data)-2] ^= 1
		if err := os.WriteFile(path, data, 0o666); err != nil {
			t.Fatal(err)
		}
		out := says(t, dir, `
import gfnem, sys
run = gfnem.Run(sys.argv[1])
try:
    `+c.read+`
except ValueError as e:
    print(e)`, damaged)
		if !strings.Contains(out, c.file+" is not what was written") {
			t.Errorf("%s, changed: %q", c.file, out)
		}
	}
	out := says(t, dir, "import gfnem\ntry:\n    gfnem.Run('.')\nexcept FileNotFoundError as e:\n    print(e)")
	if !strings.Contains(out, "is not the folder of a run") {
		t.Errorf("a folder without a run: %q", out)
	}
}

// The programs of README.md run, and the inside algorithm finds what gfnem finds.
func testReadme(t *testing.T, dir string) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	programs := regexp.MustCompile("(?ms)^```python\n(.*?)^```$").FindAllStringSubmatch(string(text), -1)
	if len(programs) != 2 {
		t.Fatalf("README.md has %d programs", len(programs))
	}
	if out := says(t, dir, programs[0][1]); !strings.Contains(out, "mixture 0.25\nloss after ") {
		t.Errorf("the first program prints %q", out)
	}
	if err := os.Rename(filepath.Join(dir, "cfg.json"), filepath.Join(dir, "g.json")); err != nil {
		t.Fatal(err)
	}
	var logP float64
	if _, err := fmt.Sscan(says(t, dir, programs[1][1]), &logP); err != nil {
		t.Fatal(err)
	}
	var want float64
	if _, err := fmt.Sscan(gfnemReads(t, "the old man slept\n", "inside", filepath.Join(dir, "runs/cfg")), &want); err != nil {
		t.Fatal(err)
	}
	if math.Abs(logP-want) > 1e-9 { // both compute in double precision
		t.Errorf("log p(x) is %g in Python and %g by gfnem", logP, want)
	}
	asCommand := "import runpy, sys, gfnem\nrunpy.run_path(gfnem.__file__, run_name='__main__')"
	if out := says(t, dir, asCommand, "runs/cfg"); !strings.Contains(out, "grammar, seed 0") {
		t.Errorf("the command prints %q", out)
	}
}
