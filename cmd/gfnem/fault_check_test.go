package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/gfnem/gfnem/internal/faults"
)

// begun reports whether there is anything to verify yet.
func (w *whole) begun(left tree) bool {
	for path := range left {
		if name := filepath.Base(path); isLasting(path) && (name == "run.json" || name == "manifest.json") {
			return true
		}
	}
	return false
}

// verified returns what gfnem verify says of a folder in which nothing was damaged, if not what it shall.
func (w *whole) verified(dir, want string) []string {
	var out, errOut strings.Builder
	code := execute([]string{"verify", filepath.Join(dir, w.holds), "--json"}, &out, &errOut)
	if code == exitOK && strings.Contains(out.String(), want) {
		return nil
	}
	lines := slices.DeleteFunc(strings.Split(out.String(), "\n"), func(line string) bool {
		return strings.HasPrefix(line, `{"status":"ok"`)
	})
	return []string{fmt.Sprintf("gfnem verify exits with %d: %s%s", code, errOut.String(), strings.Join(lines, " "))}
}

// misbehaved returns what is wrong with how a life ended in which a call failed.
func (w *whole) misbehaved(dir string, f faults.Fault, call faults.Call, end ended) (problems []string) {
	add := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	message := end.stderr
	if w.args[0] == "verify" { // it has a line for each file, on standard output
		message += end.stdout
	}
	if said := w.alarms(message); len(said) > 0 {
		add("it says %q", said)
	}
	if end.Late {
		add("it hangs")
		return problems
	}
	if f.Errno == 0 {
		if end.Signal != syscall.SIGKILL {
			add("it was not killed")
		}
		return problems
	}
	var complaints []string
	for line := range strings.Lines(end.stderr) {
		if strings.HasPrefix(line, "gfnem: ") {
			complaints = append(complaints, line)
		}
	}
	switch {
	case end.Signal != 0:
		add("it ends by the signal %v", end.Signal)
	case end.Exit == exitOK && end.stdout != w.out:
		add("exit code 0, but it prints %q, not %q", end.stdout, w.out)
	case end.Exit == exitOK && call.Stores():
		add("exit code 0, although content may be lost")
	case end.Exit == exitOK:
	case end.Exit != exitFailed && end.Exit != exitBadInput:
		add("exit code %d", end.Exit)
	case len(complaints) != 1 || !strings.HasSuffix(end.stderr, complaints[0]):
		add("it does not end with one line")
	case !strings.Contains(message, f.Errno.Error()):
		add("it does not name the cause, %q", f.Errno.Error())
	case f.Extent != faults.Full && call.Path != dir && !namesFile(message, call):
		add("it does not name the file")
	}
	return problems
}

// alarms returns what a message says that only a crash, or a file that is not as it was written, calls for.
func (w *whole) alarms(message string) []string {
	message = strings.ReplaceAll(message, "0 damaged", "")
	words := []string{"panic", "goroutine ", "damaged", "does not match", "start again", "begins anew", "warning"}
	return slices.DeleteFunc(words, func(word string) bool {
		return !strings.Contains(message, word) || strings.Contains(w.errOut, word)
	})
}

// namesFile reports whether a message names a file of a call.
func namesFile(message string, call faults.Call) bool {
	return strings.Contains(message, filepath.Base(call.Path)) ||
		call.To != "" && strings.Contains(message, filepath.Base(call.To))
}

// torn returns what is neither old nor new in what a life left.
func (w *whole) torn(left tree) (problems []string) {
	for path := range w.before {
		if filepath.Base(path) == "outputs.json" {
			continue // it lists the outputs, and is gone while they are replaced
		}
		_, has := left[path]
		if _, remains := w.after[path]; remains && !has && isLasting(path) {
			problems = append(problems, path+" is gone")
		}
	}
	for _, path := range slices.Sorted(maps.Keys(left)) {
		switch content := left[path]; {
		case isTemporary(path), w.seen[path][content]:
		case w.seen[path] == nil:
			problems = append(problems, path+" should not be there")
		case isJournal(path) && strings.HasPrefix(w.after[path], content):
		case isSummary(path) && strings.HasSuffix(content, "intact"): // of another checkpoint
		default:
			problems = append(problems, path+" is neither old nor new")
		}
	}
	return problems
}

// differences returns how a tree differs from the one that is wanted.
func differences(got, want tree) (problems []string) {
	for _, path := range slices.Sorted(maps.Keys(got)) {
		if content, ok := want[path]; !ok && want[filepath.Dir(path)] == "" && filepath.Dir(path) != "." {
			continue // its folder is left, too
		} else if !ok {
			problems = append(problems, path+" is left")
		} else if content != got[path] {
			problems = append(problems, path+" differs")
		}
	}
	for _, path := range slices.Sorted(maps.Keys(want)) {
		if _, ok := got[path]; !ok {
			problems = append(problems, path+" is missing")
		}
	}
	return problems
}

// TestFaultsAreFound shows what is wrong to the checks of TestFaults.
func TestFaultsAreFound(t *testing.T) {
	t.Parallel()
	dir := realDir(t)
	write := func(path, content string) {
		t.Helper()
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	write("run/state/000000000001/state.json", "1")
	write("run/state/000000000001/manifest.json", "1 of 2026-01-02T03:04:05Z")
	write("run/metrics.jsonl", "1\n")
	write("run/lock", "7")
	write("data/a", "old")
	write("data/b", "old")
	w := &whole{before: readTree(t, dir)}
	write("run/state/000000000002/state.json", "2")
	write("run/metrics.jsonl", "1\n2\n")
	write("data/a", "new")
	write("data/b", "new")
	w.after = readTree(t, dir)
	w.seen = map[string]map[string]bool{}
	for _, seen := range []tree{w.before, w.after} {
		for path, content := range seen {
			if w.seen[path] == nil {
				w.seen[path] = map[string]bool{}
			}
			w.seen[path][content] = true
		}
	}
	check := func(name string, want ...string) {
		t.Helper()
		if got := w.torn(readTree(t, dir)); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	check("new")
	write("run/metrics.jsonl", "1\n2")
	write("run/lock", "8")
	write("run/.report.html.1", "half")
	write("run/state/000000000001/manifest.json", "1 of 2026-01-02T03:04:06Z")
	check("part of a journal, another process, a temporary file and another time")
	write("run/metrics.jsonl", "1\n3")
	check("another journal", "run/metrics.jsonl is neither old nor new")
	write("run/metrics.jsonl", "")
	write("data/b", "old")
	check("half a data set", "data is neither old nor new")
	if err := os.RemoveAll(filepath.Join(dir, "data")); err != nil {
		t.Fatal(err)
	}
	write("run/state/000000000001.damaged/state.json", "1")
	if err := os.Remove(filepath.Join(dir, "run", "state", "000000000002", "state.json")); err != nil {
		t.Fatal(err)
	}
	got := w.torn(readTree(t, dir))
	slices.Sort(got)
	want := []string{
		"data is gone", "data/a is gone", "data/b is gone",
		"run/state/000000000001.damaged should not be there", "run/state/000000000001.damaged/state.json should not be there",
		"run/state/000000000002 is neither old nor new",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	got = differences(tree{"a": "1", "b": "folder", "b/c": "1", "d": "1"}, tree{"a": "2", "d": "1", "e": "1"})
	if want := []string{"a differs", "b is left", "e is missing"}; !slices.Equal(got, want) {
		t.Errorf("differences %q, want %q", got, want)
	}
}
