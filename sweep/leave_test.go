package sweep

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/gfnem/gfnem/internal/disk/disktest"
	"github.com/gfnem/gfnem/run"
)

// finished makes a cell by a pool whose process ends before it takes what was made: the cell is handed in, and lies in a
// folder below the grid's.
func finished(t *testing.T, plan *Plan, damage func(dir string)) (dir string) {
	t.Helper()
	dir = disktest.MemoryDir(t)
	p := open(t, PoolOptions{Dir: dir})
	m := p.making(t, plan)
	write(t, filepath.Join(m.dir, m.cell.Path(), "state", "leftover"), "")
	if err := m.handIn(t.Context()); err != nil {
		t.Fatal(err)
	}
	left := filepath.Join(p.below(leftName), leftFolder(m.key, 1))
	write(t, filepath.Join(p.below(leftName), leftFolder(m.key, 9), "of a worker that was killed"), "")
	damage(filepath.Join(left, m.cell.Path()))
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// making is a plan's first cell, which is made and not handed in.
func (p *Pool) making(t *testing.T, plan *Plan) *making {
	t.Helper()
	cell := plan.Cells()[0]
	if err := p.offerCell(t.Context(), p.grid(plan.Task), cell, false); err != nil {
		t.Fatal(err)
	}
	w := &Worker{leaves: p.below(leftName), Dir: p.below("work")}
	m := &making{Worker: w, hold: rogue(t, p), dir: w.Dir, cell: cell}
	g := p.grid(plan.Task)
	g.Dir, g.Scratch = m.dir, true
	if _, err := g.Make(t.Context(), cell, func(uint64, uint64) {}, func(string) {}); err != nil {
		t.Fatal(err)
	}
	return m
}

// What was left by workers of a pool that was killed is taken by the next one, if nothing has changed it: whether it lay
// where it was left, or had got its place already. Else it is made again.
func TestLeft(t *testing.T) {
	for name, c := range map[string]struct {
		damage func(t *testing.T, dir string)
		want   string
	}{
		"as it was left": {func(*testing.T, string) {}, ""},
		"placed": {func(t *testing.T, dir string) {
			grid := filepath.Join(dir, "..", "..", "..", "..", "..")
			if err := os.MkdirAll(filepath.Join(grid, "base"), 0o777); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(dir, filepath.Join(grid, "base", "0")); err != nil {
				t.Fatal(err)
			}
		}, ""},
		"changed": {func(t *testing.T, dir string) {
			path := filepath.Join(dir, "summary.json")
			write(t, path, read(t, path)+" ")
		}, "what was left does not match its hash"},
		"gone": {func(t *testing.T, dir string) {
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
		}, "is not a run"},
	} {
		t.Run(name, func(t *testing.T) {
			made := 0
			task := count{step: func(countConfig, uint64) error { made++; return nil }}
			plan := plan(t, oneCell, task)
			dir := finished(t, plan, func(dir string) { c.damage(t, dir) })
			want := made
			var log said
			p := open(t, PoolOptions{Dir: dir, Workers: 1, Tasks: []run.Task{task}, Log: &log})
			if _, err := plan.Run(t.Context(), p.grid(task)); err != nil {
				t.Fatal(err)
			}
			if left, err := os.ReadDir(p.below(leftName)); err != nil || len(left) > 0 {
				t.Errorf("%v is left, %v", left, err)
			}
			p.finish(t)
			if c.want != "" {
				want *= 2
				log.has(t, "what rogue handed in is refused: ")
				log.has(t, c.want)
			}
			if made != want {
				t.Errorf("%d steps were made, want %d\n%s", made, want, log.String())
			}
		})
	}
}

// What was left and cannot be read now, as the machine does not let it, stays for the next time.
func TestLeftUnreadable(t *testing.T) {
	made := 0
	task := count{step: func(countConfig, uint64) error { made++; return nil }}
	plan := plan(t, oneCell, task)
	var row string
	dir := finished(t, plan, func(dir string) {
		row = filepath.Dir(dir)
		if err := os.Rename(row, row+".away"); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Base(row), row); err != nil { // a loop
			t.Skip(err)
		}
	})
	want := made
	make := func() error {
		p := open(t, PoolOptions{Dir: dir, Workers: 1, Tasks: []run.Task{task}})
		_, err := plan.Run(t.Context(), p.grid(task))
		if err != nil {
			return errors.Join(err, p.Close())
		}
		p.finish(t)
		return nil
	}
	if err := make(); !errors.Is(err, syscall.ELOOP) {
		t.Fatalf("error %v", err)
	}
	if err := errors.Join(os.Remove(row), os.Rename(row+".away", row)); err != nil {
		t.Fatal(err)
	}
	if err := make(); err != nil || made != want {
		t.Errorf("%d steps were made, want %d; %v", made, want, err)
	}
}

// A pool that makes several lists of cells, one after the other, takes what was left of any of them.
func TestLeftOfLater(t *testing.T) {
	made := 0
	task := count{step: func(countConfig, uint64) error { made++; return nil }}
	plan := plan(t, oneCell, task)
	dir := finished(t, plan, func(string) {})
	want := 2 * made // of the other cell, too
	var log said
	p := open(t, PoolOptions{Dir: dir, Workers: 1, Tasks: []run.Task{task}, Log: &log})
	cell := plan.Cells()[0]
	other := cell
	other.Row = "other"
	for _, c := range []run.Cell{other, cell} {
		if _, err := p.Run(t.Context(), p.grid(task), []run.Cell{c}); err != nil {
			t.Fatal(err)
		}
	}
	p.finish(t)
	if made != want {
		t.Errorf("%d steps were made, want %d\n%s", made, want, log.String())
	}
}

// A run that is finished stays when its pool is interrupted after the board has heard of it and before the worker knows.
func TestInterruptedHandIn(t *testing.T) {
	plan := plan(t, oneCell)
	p := open(t, PoolOptions{Dir: disktest.MemoryDir(t)})
	m := p.making(t, plan)
	digest, err := sealOf(filepath.Join(m.dir, m.cell.Path()))
	if err != nil {
		t.Fatal(err)
	}
	next := m.now()
	next.State, next.Result = done, &blob{Name: leftName, Digest: digest}
	if err := p.board.update(t.Context(), m.key, next, m.revision); err != nil { // whose answer is lost
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := m.handIn(ctx); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(filepath.Join(p.below(leftName), leftFolder(m.key, 1), m.cell.Path())); err != nil {
		t.Error(err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

// A run that was taken while the answer to that was lost is taken; if it is not there, it is made again.
func TestLostKept(t *testing.T) {
	for _, there := range []bool{true, false} {
		plan := plan(t, oneCell)
		good, _ := plain(t, plan)
		p := open(t, PoolOptions{Dir: disktest.MemoryDir(t)})
		wait := running(t, plan, p)
		h := rogue(t, p)
		if there {
			if err := os.CopyFS(filepath.Join(p.Dir, "base"), os.DirFS(filepath.Join(good, "base"))); err != nil {
				t.Fatal(err)
			}
		}
		if err := h.change(t.Context(), func(e *entry) { e.State = kept }); err != nil {
			t.Fatal(err)
		}
		if !there {
			p.startWorker(0)
		}
		wait()
	}
}

// A run that has got its place while the board could not be told is not made again.
func TestPlaced(t *testing.T) {
	var log said
	plan := plan(t, oneCell)
	good, _ := plain(t, plan)
	p := open(t, PoolOptions{Dir: disktest.MemoryDir(t), Log: &log})
	wait := running(t, plan, p)
	h := rogue(t, p)
	if err := os.CopyFS(filepath.Join(p.Dir, "base"), os.DirFS(filepath.Join(good, "base"))); err != nil {
		t.Fatal(err)
	}
	if err := h.change(t.Context(), func(e *entry) { e.State, e.Result = done, &blob{Name: leftName} }); err != nil {
		t.Fatal(err)
	}
	wait() // nobody works
	if strings.Contains(log.String(), "warning") {
		t.Error(log.String())
	}
}
