package sweep

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gfnem/gfnem/internal/disk/disktest"
)

// Data that a configuration names reaches a worker that does not have it, and the run names it as it was named.
func TestData(t *testing.T) {
	file := write(t, filepath.Join(t.TempDir(), "numbers"), "12345")
	plan := plan(t, fmt.Sprintf("task = \"count\"\nset.data = %q\n", file))
	_, want := plain(t, plan)
	p, wait := posted(t, plan, nil)
	if err := os.Rename(file, file+".away"); err != nil {
		t.Fatal(err)
	}
	gone := p.elsewhere(t, nil)
	wait()
	if err := <-gone; err != nil {
		t.Error(err)
	}
	if got := read(t, filepath.Join(p.Dir, "table.json")); got != want {
		t.Errorf("the table is\n%s, want\n%s", got, want)
	}
	if text := read(t, filepath.Join(p.Dir, "base", "0", "run.toml")); !strings.Contains(text, fmt.Sprintf("%q", file)) {
		t.Errorf("run.toml does not name the data as it was named:\n%s", text)
	}
}

// posted runs a plan in the background, and returns when its cells are on the board.
func posted(t *testing.T, plan *Plan, log io.Writer) (p *Pool, wait func()) {
	t.Helper()
	p = open(t, PoolOptions{Dir: disktest.MemoryDir(t), Listen: anyPort, Log: log})
	wait = running(t, plan, p)
	eventually(t, "there are no cells", func() bool { return len(cellsOf(p)) == len(plan.Cells()) })
	return p, wait
}

// Data that are damaged on the server are sent again, if they are still the same.
func TestDamagedData(t *testing.T) {
	for name, c := range map[string]struct {
		change func(t *testing.T, file string)
		want   string // of the cell
	}{
		"the same": {func(*testing.T, string) {}, ""},
		"other": {func(t *testing.T, file string) { write(t, file, "54321") },
			"its data have changed since the sweep began: give the same command again"},
		"gone": {func(t *testing.T, file string) {
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
		}, "no such file or directory"},
	} {
		t.Run(name, func(t *testing.T) {
			file := write(t, filepath.Join(t.TempDir(), "numbers"), "12345")
			plan := plan(t, fmt.Sprintf("task = \"count\"\nset.data = %q\n", file))
			var log said
			p := open(t, PoolOptions{Dir: disktest.MemoryDir(t), Listen: anyPort, Log: &log})
			data, err := p.sendData(t.Context(), plan.Cells()[0].Config) // which is sent once
			if err != nil {
				t.Fatal(err)
			}
			p.board.corrupt(t, data["data"])
			c.change(t, file)
			gone := p.elsewhere(t, nil)
			_, err = plan.Run(t.Context(), p.grid(plan.Task))
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("error %v, want %q", err, c.want)
			}
			p.finish(t)
			if err := <-gone; err != nil {
				t.Error(err)
			}
			log.has(t, "warning: base, run 0: its data on the server are damaged, and sent again")
		})
	}
}

// cellsOf lists the cells that are on the board.
func cellsOf(p *Pool) []string {
	keys, err := p.board.kv.Keys(context.Background())
	if err != nil {
		return nil
	}
	var cells []string
	for _, key := range keys {
		if strings.HasPrefix(key, cellKeys) {
			cells = append(cells, key)
		}
	}
	return cells
}
