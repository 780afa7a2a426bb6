package sweep

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/config"
	"github.com/gfnem/gfnem/internal/disk"
	"github.com/gfnem/gfnem/internal/disk/disktest"
	"github.com/gfnem/gfnem/internal/testkit"
	"github.com/gfnem/gfnem/run"
)

const small = `task = "count"
seeds = 3
[axes]
add = [1, 2.5]
[table]
metrics = ["Sum", "Steps"]
`

// Workers of one process make what a plain loop makes, and leave nothing else.
func TestWorkersHere(t *testing.T) {
	plan := plan(t, small)
	_, want := plain(t, plan)
	var log said
	dir := disktest.MemoryDir(t)
	for range 2 { // the second finds everything made
		p := open(t, PoolOptions{Dir: dir, Workers: 3, Log: &log})
		if _, err := plan.Run(t.Context(), p.grid(plan.Task)); err != nil {
			t.Fatal(err)
		}
		p.finish(t)
		if got := read(t, filepath.Join(dir, "table.json")); got != want {
			t.Errorf("the table is\n%s, want\n%s", got, want)
		}
		if _, err := os.Lstat(filepath.Join(dir, hidden)); err == nil {
			t.Error("files of the server are left")
		}
	}
	var status Snapshot
	if err := json.Unmarshal([]byte(read(t, filepath.Join(dir, StatusName))), &status); err != nil || status.Cells != (Counts{Total: 6, Done: 6}) {
		t.Errorf("status %+v, %v", status.Cells, err)
	}
	if strings.Contains(log.String(), "warning") {
		t.Error(log.String())
	}
}

// What is interrupted goes on where it was: no step is made twice, but for those after the last checkpoint of a kill.
func TestInterrupted(t *testing.T) {
	var steps atomic.Int64
	ctx, cancel := context.WithCancelCause(t.Context())
	task := count{step: func(countConfig, uint64) error {
		if steps.Add(1) == 30 {
			cancel(run.ErrInterrupted)
		}
		time.Sleep(time.Millisecond)
		return nil
	}}
	plan := plan(t, `task = "count"
preset = "long"
set.total = 50
`, task)
	dir := disktest.MemoryDir(t)
	p := open(t, PoolOptions{Dir: dir, Workers: 1, Tasks: []run.Task{task}})
	if _, err := plan.Run(ctx, p.grid(task)); !errors.Is(err, run.ErrInterrupted) {
		t.Fatalf("error %v", err)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	p = open(t, PoolOptions{Dir: dir, Workers: 1, Tasks: []run.Task{task}})
	if _, err := plan.Run(t.Context(), p.grid(task)); err != nil {
		t.Fatal(err)
	}
	p.finish(t)
	if n := steps.Load(); n != 50 {
		t.Errorf("%d steps were made of 50", n)
	}
}

// A cell that fails keeps no other from being made; the same sweep tries it again.
func TestFailures(t *testing.T) {
	broken := true
	task := count{step: func(c countConfig, n uint64) error {
		if broken && c.Add == 2.5 && c.Seed == 1 {
			return badinput.Errorf("two and a half is too much")
		}
		return nil
	}}
	_, want := plain(t, plan(t, small))
	plan := plan(t, small, task)
	dir := disktest.MemoryDir(t)
	var log said
	p := open(t, PoolOptions{Dir: dir, Workers: 2, Tasks: []run.Task{task}, Log: &log})
	table, err := plan.Run(t.Context(), p.grid(task))
	testkit.BadInput(t, err, "add=2.5, run 1: two and a half is too much")
	if table == nil || len(table.Rows[1].Runs["Sum"].Runs) != 2 {
		t.Errorf("table %+v", table)
	}
	log.has(t, "warning: add=2.5, run 1 failed: two and a half is too much")
	p.finish(t)
	broken = false
	p = open(t, PoolOptions{Dir: dir, Workers: 2, Tasks: []run.Task{task}})
	if _, err := plan.Run(t.Context(), p.grid(task)); err != nil {
		t.Fatal(err)
	}
	p.finish(t)
	if got := read(t, filepath.Join(dir, "table.json")); got != want {
		t.Errorf("the table is\n%s, want\n%s", got, want)
	}
}

// One folder has one sweep at a time.
func TestFolderInUse(t *testing.T) {
	dir := disktest.MemoryDir(t)
	p := open(t, PoolOptions{Dir: dir})
	defer p.Close()
	_, err := OpenPool(t.Context(), PoolOptions{Dir: dir})
	testkit.BadInput(t, err, dir+" is in use by another sweep: wait for its end, or choose another --out")
}

// rogue is a worker that does what it likes with the cells that it claims.
func rogue(t *testing.T, p *Pool) *hold {
	t.Helper()
	for begin := time.Now(); time.Since(begin) < 3*time.Minute; {
		batch, err := p.board.todo.Fetch(1, jetstream.FetchMaxWait(time.Second))
		if err != nil {
			continue
		}
		for m := range batch.Messages() {
			h, err := p.board.claim(t.Context(), string(m.Data()), entry{Worker: "rogue", Program: Program()})
			if err = errors.Join(err, m.Ack()); err != nil {
				t.Fatal(err)
			}
			if h != nil {
				return h
			}
		}
	}
	t.Fatal("there is no cell")
	return nil
}

// running runs a plan of one cell in the background, and returns what to wait for.
func running(t *testing.T, plan *Plan, p *Pool) (wait func()) {
	t.Helper()
	ended := make(chan error, 1)
	go func() {
		_, err := plan.Run(t.Context(), p.grid(plan.Task))
		ended <- err
	}()
	return func() {
		t.Helper()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		p.finish(t)
	}
}

const oneCell = "task = \"count\"\n"

// clock is one that a test sets forward.
type clock struct{ past atomic.Int64 }

func (c *clock) now() time.Time           { return time.Unix(0, c.past.Load()) }
func (c *clock) forward(by time.Duration) { c.past.Add(int64(by)) }

// A worker that is silent for the time of a lease loses its cell: whatever it does with it then is refused.
func TestStaleClaim(t *testing.T) {
	plan := plan(t, oneCell)
	p := open(t, PoolOptions{Dir: disktest.MemoryDir(t)})
	var time clock
	p.now = time.now
	wait := running(t, plan, p)
	first := rogue(t, p)
	for step := range uint64(5) { // it renews its claim
		time.forward(p.Lease * 2 / 3)
		if err := first.change(t.Context(), func(e *entry) { e.Step = step + 1 }); err != nil {
			t.Fatal(err)
		}
		p.seen(t, step+1)
	}
	time.forward(p.Lease)
	second := rogue(t, p)
	if second.now().Epoch != first.now().Epoch+1 {
		t.Errorf("epochs %d, %d", first.now().Epoch, second.now().Epoch)
	}
	late := func(e *entry) { e.State, e.Result = done, &blob{Name: "late"} }
	if err := first.change(t.Context(), late); !errors.Is(err, errStale) {
		t.Errorf("a result of a stale claim: %v", err)
	}
	if err := second.change(t.Context(), func(e *entry) { e.State = todo }); err != nil {
		t.Fatal(err)
	}
	if err := first.change(t.Context(), late); !errors.Is(err, errStale) {
		t.Errorf("a result of a stale claim, while nobody has the cell: %v", err)
	}
	if err := p.board.post(t.Context(), second.key); err != nil {
		t.Fatal(err)
	}
	p.startWorker(0)
	wait()
}

// seen waits until the pool knows of a step of the only worker.
func (p *Pool) seen(t *testing.T, step uint64) {
	t.Helper()
	eventually(t, "the pool does not hear of a worker", func() bool {
		p.status.mu.Lock()
		defer p.status.mu.Unlock()
		return len(p.status.Workers) > 0 && p.status.Workers[0].Step == step
	})
}

// eventually waits for what lasts once it is.
func eventually(t *testing.T, otherwise string, is func() bool) {
	t.Helper()
	for begin := time.Now(); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Since(begin) > 3*time.Minute {
			t.Fatal(otherwise)
		}
	}
}

// An answer that was lost does not keep a worker from going on.
func TestLostAnswer(t *testing.T) {
	plan := plan(t, oneCell)
	p := open(t, PoolOptions{Dir: disktest.MemoryDir(t)})
	wait := running(t, plan, p)
	h := rogue(t, p)
	before, revision := h.entry, h.revision
	for _, f := range []func(*entry){func(e *entry) { e.Step = 1 }, func(e *entry) { e.Step = 2 }} {
		if err := h.change(t.Context(), f); err != nil {
			t.Fatal(err)
		}
	}
	h.entry, h.revision = before, revision // as if it had not heard of either
	if err := h.change(t.Context(), func(e *entry) { e.Step = 3 }); err != nil || h.now().Step != 3 {
		t.Errorf("step %d, %v", h.now().Step, err)
	}
	h.entry, h.revision = before, revision
	if err := h.change(t.Context(), func(e *entry) { e.State = todo }); err != nil {
		t.Fatal(err)
	}
	if err := p.board.post(t.Context(), h.key); err != nil {
		t.Fatal(err)
	}
	p.startWorker(0)
	wait()
}

// What is handed in is verified: anything else than the cell, made by this program, is refused in one line, and the
// cell is made again.
func TestRefusedResults(t *testing.T) {
	other, _ := plain(t, plan(t, "task = \"count\"\nset.add = 2\n"))
	unfinished := t.TempDir()
	r, err := run.Create(unfinished, run.Options{Task: "count", Config: configOf(t, plan(t, oneCell))})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.Load(); !errors.Is(err, run.ErrNoCheckpoint) {
		t.Fatal(err)
	}
	if err := errors.Join(r.Save(run.State{Step: 3, Extra: []byte(`{"N":3,"Sum":3}`)}), r.Close()); err != nil {
		t.Fatal(err)
	}
	good, _ := plain(t, plan(t, oneCell))
	send := func(h *hold, dir string) *blob {
		f, digest, err := spool(t.TempDir(), func(w io.Writer) error { _, err := run.Pack(dir, w); return err })
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		b, err := h.upload(t.Context(), h.key+"/rogue", digest, f)
		if err != nil {
			t.Fatal(err)
		}
		return &b
	}
	for name, c := range map[string]struct {
		change func(h *hold, e *entry)
		want   string
	}{
		"other cell": {func(h *hold, e *entry) { e.Result = send(h, filepath.Join(other, "base", "0")) }, "was made with other settings"},
		"unfinished": {func(h *hold, e *entry) { e.Result = send(h, unfinished) }, "it has no result of its newest checkpoint"},
		"no tar file": {func(h *hold, e *entry) {
			text := []byte("text")
			b, err := h.upload(context.Background(), h.key+"/rogue", disk.DigestOf(text), bytes.NewReader(text))
			if err != nil {
				t.Error(err)
			}
			e.Result = &b
		}, "it cannot be unpacked"},
		"nothing": {func(h *hold, e *entry) { e.Result = &blob{Name: "none"} }, "none does not match its hash"},
		"none":    {func(h *hold, e *entry) { e.Result = nil }, "it is not the cell: there is none"},
		"another file": {func(h *hold, e *entry) {
			more := t.TempDir()
			if err := errors.Join(os.CopyFS(more, os.DirFS(filepath.Join(good, "base", "0"))), os.Remove(filepath.Join(more, "lock"))); err != nil {
				t.Error(err)
			}
			write(t, filepath.Join(more, "report", "index.html"), "text")
			b, err := h.send(context.Background(), t.TempDir(), h.key+"/rogue", func(w io.Writer) error { return packFiles(more, ".", w) })
			if err != nil {
				t.Error(err)
			}
			e.Result = &b
		}, `it has files that are no part of a run, such as "report"`},
		"nothing left": {func(h *hold, e *entry) { e.Result = &blob{Name: leftName} }, "is not a run"},
		"corrupted": {func(h *hold, e *entry) {
			e.Result = send(h, filepath.Join(good, "base", "0"))
			h.corrupt(t, *e.Result)
		}, "does not match its hash"},
		"other program": {func(h *hold, e *entry) {
			e.Program, e.Result = "another", send(h, filepath.Join(good, "base", "0"))
		}, "it was made by another build of the program (another)"},
	} {
		t.Run(name, func(t *testing.T) {
			var log said
			p := open(t, PoolOptions{Dir: disktest.MemoryDir(t), Log: &log})
			wait := running(t, plan(t, oneCell), p)
			h := rogue(t, p)
			if err := h.change(t.Context(), func(e *entry) { e.State = done; c.change(h, e) }); err != nil {
				t.Fatal(err)
			}
			p.startWorker(0)
			wait()
			log.has(t, "warning: base, run 0: what rogue handed in is refused: ")
			log.has(t, c.want)
			if strings.Count(log.String(), "warning") != 1 {
				t.Error(log.String())
			}
		})
	}
}

func configOf(t *testing.T, p *Plan) string {
	t.Helper()
	text, err := config.Encode(p.Cells()[0].Config)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// A checkpoint that is damaged, or gone, costs the time that it took, and one line.
func TestDamagedCheckpoint(t *testing.T) {
	var log said
	p := open(t, PoolOptions{Dir: disktest.MemoryDir(t), Log: &log})
	wait := running(t, plan(t, oneCell), p)
	h := rogue(t, p)
	if err := h.change(t.Context(), func(e *entry) { e.State, e.Checkpoint = todo, &blob{Name: "gone"} }); err != nil {
		t.Fatal(err)
	}
	if err := p.board.post(t.Context(), h.key); err != nil {
		t.Fatal(err)
	}
	p.startWorker(0)
	wait()
	log.has(t, "warning: base, run 0: the checkpoint gone does not match its hash: the cell begins anew")
}

// A store that is full is said in one line, and tried again.
func TestFullStore(t *testing.T) {
	var log said
	plan := plan(t, oneCell)
	p := open(t, PoolOptions{Dir: disktest.MemoryDir(t), Listen: anyPort, Limit: 1000})
	wait := running(t, plan, p)
	ended := p.elsewhere(t, &log)
	log.wait(t, "warning: base, run 0: its result is not handed in, and tried again: upload")
	if !strings.Contains(log.String(), "maximum bytes exceeded") {
		t.Error(log.String())
	}
	if _, err := p.board.js.UpdateStream(t.Context(), streamOf(t, p, 1<<30)); err != nil {
		t.Fatal(err)
	}
	wait()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	log.has(t, "its result is not handed in")
}

// elsewhere starts a worker that is not the pool's own, and returns what it ends with.
func (p *Pool) elsewhere(t *testing.T, log io.Writer) <-chan error {
	t.Helper()
	nc, err := Dial(t.Context(), "nats://"+p.Listen, "worker", p.Keys, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	w := Worker{Tasks: p.Tasks, Dir: disktest.MemoryDir(t), Patience: time.Minute, Log: log}
	ended := make(chan error, 1)
	go func() {
		defer nc.Close()
		ended <- w.Run(t.Context(), nc)
	}()
	return ended
}

func streamOf(t *testing.T, p *Pool, limit int64) jetstream.StreamConfig {
	stream, err := p.board.js.Stream(t.Context(), "OBJ_"+bucket(p.board.id))
	if err != nil {
		t.Fatal(err)
	}
	c := stream.CachedInfo().Config
	c.MaxBytes = limit
	return c
}
