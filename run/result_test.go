package run

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gomlx/compute"

	"github.com/gfnem/gfnem/internal/disk"
	"github.com/gfnem/gfnem/internal/disk/disktest"
	"github.com/gfnem/gfnem/internal/testkit"
)

// countGrid is a grid of one finished cell.
type countGrid struct {
	*testing.T
	Grid
	cells  []Cell
	dir    string // of the cell
	log    bytes.Buffer
	made   []uint64 // seeds of the sessions that were started
	result string   // of the cell
}

func newCountGrid(t *testing.T) *countGrid {
	t.Helper()
	g := &countGrid{T: t, cells: []Cell{{Row: "row", Index: 7, Config: &countConfig{Seed: 3, Total: 10}}}}
	g.Grid = Grid{Dir: disktest.MemoryDir(t), Task: countTask{new(sync.Mutex), &g.made}, Workers: 1, Every: time.Hour, Log: &g.log}
	g.dir = filepath.Join(g.Grid.Dir, "row", "7")
	g.run()
	g.result = readFile(t, g.path())
	return g
}

func (g *countGrid) path() string { return filepath.Join(g.dir, resultName) }

// run makes the grid, whose result is always the same, and returns the warnings and whether anything was measured.
func (g *countGrid) run() (warnings string, measured bool) {
	g.Helper()
	g.log.Reset()
	g.made = nil
	out, err := g.Grid.Run(g.Context(), g.cells)
	if err != nil {
		g.Fatal(err)
	}
	if got := string(out[0]); got != `{"Value":58}` {
		g.Errorf("the result is %s", got)
	}
	for line := range strings.Lines(g.log.String()) {
		if strings.HasPrefix(line, "warning: ") {
			warnings += line
		}
	}
	return warnings, g.made != nil
}

// A result is reused if it is as it was written, of the newest checkpoint, and not otherwise, with one line that says why.
func TestGridTrustsNoFile(t *testing.T) {
	reseal := func(t *testing.T, text string, change func(c *cellResult)) string {
		var c cellResult
		if err := disk.Unseal([]byte(text), &c, &c.SHA256); err != nil {
			t.Fatal(err)
		}
		change(&c)
		data, err := disk.Seal(&c, &c.SHA256)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	for _, c := range []struct {
		name   string
		change func(t *testing.T, text string) string
		want   string
	}{
		{"digit", func(_ *testing.T, text string) string { return strings.Replace(text, "58", "85", 1) }, "does not match its own hash"},
		{"object", func(*testing.T, string) string { return "{}" }, "it has no hash, like those of earlier versions of the program"},
		{"earlier", func(*testing.T, string) string { return `{"Value":58}` }, "it has no hash, like those of earlier versions of the program"},
		{"empty", func(*testing.T, string) string { return "" }, "unexpected end of JSON input"},
		{"text", func(*testing.T, string) string { return "58" }, "it has no hash, like those of earlier versions of the program"},
		{"later", func(t *testing.T, text string) string {
			return reseal(t, text, func(c *cellResult) { c.Format = resultFormat + 1 })
		}, "written by a newer version of the program"},
		{"state", func(t *testing.T, text string) string {
			return reseal(t, text, func(c *cellResult) { c.State = strings.Repeat("0", 64) })
		}, "is not of the newest checkpoint"},
		{"other run", func(t *testing.T, text string) string {
			return reseal(t, text, func(c *cellResult) { c.Config = strings.Repeat("0", 64) })
		}, "belongs to another run"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newCountGrid(t)
			if warnings, measured := g.run(); warnings != "" || measured {
				t.Fatalf("a finished cell is not reused: %s", warnings)
			}
			writeString(t, g.path(), c.change(t, g.result))
			warnings, measured := g.run()
			if !measured || strings.Count(warnings, "\n") != 1 || !strings.Contains(warnings, g.path()) ||
				!strings.Contains(warnings, c.want) || !strings.HasSuffix(warnings, ": it is measured again\n") {
				t.Errorf("measured: %v, with the warnings %q, want one with %q", measured, warnings, c.want)
			}
			if readFile(t, g.path()) != g.result {
				t.Error("the result was not written again")
			}
			if warnings, measured := g.run(); warnings != "" || measured {
				t.Errorf("then it is not reused: %s", warnings)
			}
		})
	}
}

// A cell whose newest checkpoint is damaged goes on from the one before and is measured again.
func TestGridVerifiesRuns(t *testing.T) {
	g := newCountGrid(t)
	r, err := Open(g.dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(r.checkpointPath(10), stateFileName), []byte("{}\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	// There is one checkpoint alone: the run's own rules apply.
	r.Close()
	_, err = g.Grid.Run(t.Context(), g.cells)
	if err == nil || !strings.Contains(err.Error(), "all 1 checkpoints are damaged") {
		t.Fatalf("error %v", err)
	}

	g = newCountGrid(t)
	if err := os.RemoveAll(g.dir); err != nil {
		t.Fatal(err)
	}
	g.Every = 0 // a checkpoint after every step
	g.run()
	r, err = Open(g.dir)
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	writeString(t, filepath.Join(r.checkpointPath(10), stateFileName), "{}\n")
	warnings, measured := g.run()
	if !measured || !strings.Contains(warnings, g.dir+": checkpoint 10 is damaged and skipped") {
		t.Errorf("measured: %v, with the warnings %q", measured, warnings)
	}
	if readFile(t, g.path()) != g.result {
		t.Error("the result is another")
	}
	if warnings, measured := g.run(); warnings != "" || measured {
		t.Errorf("then it is not reused: %s", warnings)
	}
}

// The result of a run whose journals contradict its checkpoint is measured again.
func TestGridVerifiesJournals(t *testing.T) {
	g := newCountGrid(t)
	path := filepath.Join(g.dir, metricsName)
	writeString(t, path, strings.Replace(readFile(t, path), "55", "56", 1))
	warnings, measured := g.run()
	if !measured || !strings.Contains(warnings, path+" was changed in its first") {
		t.Errorf("measured: %v, with the warnings %q", measured, warnings)
	}
	if warnings, measured := g.run(); warnings != "" || measured {
		t.Errorf("then it is not reused: %s", warnings)
	}
}

// A link is not followed, neither to read nor to write.
func TestGridFollowsNoLink(t *testing.T) {
	g := newCountGrid(t)
	other := filepath.Join(t.TempDir(), "other")
	writeString(t, other, g.result)
	if err := os.Remove(g.path()); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(other, g.path()); err != nil {
		t.Skip(err)
	}
	warnings, measured := g.run()
	if !measured || !strings.Contains(warnings, "is not a regular file (it is a symbolic link)") {
		t.Errorf("measured: %v, with the warnings %q", measured, warnings)
	}
	if info, err := os.Lstat(g.path()); err != nil || !info.Mode().IsRegular() {
		t.Errorf("the result is no file: %v", err)
	}
	if err := os.RemoveAll(g.path()); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(g.path(), "kept"), 0o777); err != nil {
		t.Fatal(err)
	}
	_, err := g.Grid.Run(t.Context(), g.cells)
	if err == nil || !strings.Contains(err.Error(), g.path()) || !strings.Contains(g.log.String(), "(it is a folder)") {
		t.Errorf("a folder: error %v, log %s", err, g.log.String())
	}
	if _, err := os.Stat(filepath.Join(g.path(), "kept")); err != nil {
		t.Error(err)
	}
}

// An I/O error is no damage: nothing is measured again.
func TestGridCannotRead(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root reads everything")
	}
	g := newCountGrid(t)
	if err := os.Chmod(g.path(), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := g.Grid.Run(t.Context(), g.cells); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("error %v", err)
	}
}

// otherData is a task whose data is not what it was.
type otherData struct{ countTask }

func (o otherData) Start(b compute.Backend, config any) (Session, error) {
	s, err := o.countTask.Start(b, config)
	return otherSession{s}, err
}

type otherSession struct{ Session }

func (otherSession) Data() map[string]string { return map[string]string{"points": "others"} }

// An unfinished cell does not go on with other data.
func TestGridRefusesOtherData(t *testing.T) {
	g := newCountGrid(t)
	if err := os.Remove(g.path()); err != nil {
		t.Fatal(err)
	}
	g.Task = otherData{g.Task.(countTask)}
	_, err := g.Grid.Run(t.Context(), g.cells)
	testkit.BadInput(t, err, "row, run 7: "+g.dir+" was made with other data than its configuration gives now: choose another --out")
}

// The file of a result says what it is of.
func TestResultFile(t *testing.T) {
	g := newCountGrid(t)
	r, err := Read(g.dir)
	if err != nil {
		t.Fatal(err)
	}
	s, _, err := r.Load()
	if err != nil {
		t.Fatal(err)
	}
	c, err := r.readResult()
	want := &cellResult{Format: hashedFormat, Step: 10, State: StateHash(s), Config: r.Info().Config, Result: json.RawMessage(`{"Value":58}`), SHA256: c.SHA256}
	if d := diff(want, c); err != nil || d != "" {
		t.Errorf("%s%v", d, err)
	}
	if err := os.Remove(g.path()); err != nil {
		t.Fatal(err)
	}
	if c, err := r.readResult(); c != nil || err != nil {
		t.Errorf("no result: %v, %v", c, err)
	}
}
