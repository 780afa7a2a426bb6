package cli_test

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"
)

// outside is a module of somebody else, which has this one as a dependency.
type outside struct {
	*testing.T
	dir, name string // the module is example.com/name
}

// newOutside writes testdata/module to a folder of its own and builds its programs, without a network.
func newOutside(t *testing.T) outside {
	t.Helper()
	o := outside{t, t.TempDir(), "outside"}
	if err := os.CopyFS(o.dir, os.DirFS("testdata/module")); err != nil {
		t.Fatal(err)
	}
	o.require()
	o.goes("build", "-o", "bin/", ".", "./infer")
	return o
}

// require makes the folder a module that has this one, as it is, as a dependency.
func (o outside) require() {
	o.Helper()
	repo, err := filepath.Abs("..")
	if err != nil {
		o.Fatal(err)
	}
	ours, err := os.ReadFile(filepath.Join(repo, "go.mod"))
	if err != nil {
		o.Fatal(err)
	}
	mod := regexp.MustCompile(`(?m)^module .*$`).ReplaceAllString(string(ours), "module example.com/"+o.name)
	mod += "\nrequire github.com/gfnem/gfnem v0.0.0\n\nreplace github.com/gfnem/gfnem => " + repo + "\n"
	sums, err := os.ReadFile(filepath.Join(repo, "go.sum"))
	if err != nil {
		o.Fatal(err)
	}
	for name, data := range map[string][]byte{"go.mod": []byte(mod), "go.sum": sums} {
		if err := os.WriteFile(filepath.Join(o.dir, name), data, 0o666); err != nil {
			o.Fatal(err)
		}
	}
}

// goes runs the go command in the module, without a network.
func (o outside) goes(args ...string) {
	o.Helper()
	cmd := exec.Command("go", args...)
	cmd.Dir = o.dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off", "GOWORK=off", "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		o.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// command is one of its programs with arguments.
func (o outside) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(o.dir, "bin", name), args...)
	cmd.Dir = o.dir
	return cmd
}

// says runs a program, which must succeed, and returns its output.
func (o outside) says(name string, args ...string) string {
	o.Helper()
	cmd := o.command(name, args...)
	var errOut bytes.Buffer
	cmd.Stderr = &errOut
	out, err := cmd.Output()
	if err != nil {
		o.Fatalf("%s %v: %v\n%s", name, args, err, errOut.Bytes())
	}
	return string(out)
}

// result is a line of JSON without the folder of the run.
func (o outside) result(line string) map[string]any {
	o.Helper()
	var out map[string]any
	if err := json.Unmarshal([]byte(line), &out); err != nil {
		o.Fatalf("%q: %v", line, err)
	}
	delete(out, "out")
	return out
}

// kill trains a run until it has saved something, and kills it.
func (o outside) kill(args ...string) {
	o.Helper()
	cmd := o.command(o.name, args...)
	if err := cmd.Start(); err != nil {
		o.Fatal(err)
	}
	for begin := time.Now(); time.Since(begin) < time.Minute; time.Sleep(time.Millisecond) {
		if saved, _ := filepath.Glob(filepath.Join(o.dir, "killed", "state", "????????????")); len(saved) > 0 {
			break
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		o.Fatal(err)
	}
	if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != -1 {
		o.Fatalf("%v ended before it was killed: %v", args, err)
	}
}

// TestModuleOutside builds a module outside of this one that has a model of its own, and drives its program: a run that is
// killed and resumed ends with the same bits, and another program samples its posterior.
func TestModuleOutside(t *testing.T) {
	t.Parallel()
	o := newOutside(t)
	whole := o.result(o.says("outside", "train", "words", "--seed", "3", "--out", "whole", "--json"))
	o.kill("train", "--seed", "3", "--out", "killed", "--save-every", "1ms")
	if got := o.result(o.says("outside", "resume", "killed", "--json")); !reflect.DeepEqual(got, whole) {
		t.Errorf("killed and resumed %v, not killed %v", got, whole)
	}
	if whole["finished"] != true || whole["m_steps"] != 600.0 {
		t.Errorf("the run ended as %v", whole)
	}
	var logs [2][]byte
	for i, dir := range []string{"whole", "killed"} {
		logs[i], _ = os.ReadFile(filepath.Join(o.dir, dir, "metrics.jsonl"))
	}
	if len(logs[0]) == 0 || !bytes.Equal(logs[0], logs[1]) {
		t.Errorf("metrics of %d bytes, after a kill of %d", len(logs[0]), len(logs[1]))
	}
	if got := o.result(o.says("outside", "eval", "killed", "--json")); !reflect.DeepEqual(got, whole) {
		t.Errorf("eval says %v, train %v", got, whole)
	}
	if err := os.Remove(filepath.Join(o.dir, "killed", "report.html")); err != nil {
		t.Fatal(err)
	}
	if got := o.says("outside", "report", "killed"); strings.TrimSpace(got) != filepath.Join("killed", "report.html") {
		t.Errorf("report says %q", got)
	}
	if got := o.says("outside", "verify", "whole", "killed"); !strings.Contains(got, " 0 notes, 0 damaged, 0 unread\n") {
		t.Errorf("verify says %s", got)
	}
	cmd := o.command("outside", "train", "words", "--out", "whole")
	if out, err := cmd.CombinedOutput(); err == nil || cmd.ProcessState.ExitCode() != 2 ||
		!strings.HasPrefix(string(out), "outside: whole already holds a run: continue it with \"outside resume whole\"") {
		t.Errorf("%v, %s", err, out)
	}
	model, err := os.ReadFile(filepath.Join(o.dir, "model", "model.go"))
	if lines := bytes.Count(model, []byte("\n")); err != nil || lines > 150 {
		t.Errorf("the model, its policy and its task have %d lines, %v", lines, err)
	}
	asked := []string{"infer", "killed", "abdec", "fcfcab", "decabfc", "abababab"}
	o.infers(o.says(asked[0], asked[1:]...))
	if a, b := o.says(asked[0], asked[1:]...), o.says("infer", append([]string{"whole"}, asked[2:]...)...); a != b {
		t.Errorf("samples of equal runs: %q, %q", a, b)
	}
}

// infers checks what the posterior says of sentences: where words end, and how probable the sentence is. Letters of the
// three words follow from each other, so that the other segmentations are improbable.
func (o outside) infers(got string) {
	o.Helper()
	lines := strings.Split(strings.TrimSpace(got), "\n")
	want := []string{"ab dec", "fc fc ab", "dec ab fc", "ab ab ab ab"}
	if len(lines) != len(want) {
		o.Fatalf("inferred %q", got)
	}
	for i, line := range lines {
		var often, estimate, exact float64
		f := strings.Split(line, ",")
		if len(f) != 4 || json.Unmarshal([]byte(f[1]), &often) != nil || json.Unmarshal([]byte(f[2]), &estimate) != nil ||
			json.Unmarshal([]byte(f[3]), &exact) != nil {
			o.Fatalf("inferred %q", line)
		}
		o.Log(line)
		if f[0] != want[i] || often < 95 {
			o.Errorf("%v of 100 samples are %q, want nearly all of them to be %q", often, f[0], want[i])
		}
		if math.Abs(estimate-exact) > 0.05 {
			o.Errorf("%s: log p(x) = %.4f by samples, %.4f by enumeration", f[0], estimate, exact)
		}
	}
}
