package sweep

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/internal/disk"
	"github.com/gfnem/gfnem/run"
)

// collection is the cells that one call of Run waits for.
type collection struct {
	*Pool
	grid    run.Grid
	cells   []run.Cell
	results []json.RawMessage
	failed  []error
	open    map[string]int // key of each cell that is not made yet, and where it stands
	entries map[string]entry
	seen    map[string]sighting
	bar     *run.Progress
	orphans map[string]bool // see sweepBlobs
	swept   time.Time
}

// sighting is when a revision of an entry was seen first.
type sighting struct {
	revision uint64
	at       time.Time
}

// Failures are cells that could not be made; all others were.
type Failures struct{ Cells []error }

func (f *Failures) Error() string {
	if len(f.Cells) == 1 {
		return f.Cells[0].Error()
	}
	return fmt.Sprintf("%d cells failed, the first: %v", len(f.Cells), f.Cells[0])
}

func (f *Failures) Unwrap() []error { return f.Cells }

// Run implements run.Pool. Cells that fail do not keep others from being made: then the error is Failures, and their
// results are nil.
func (p *Pool) Run(ctx context.Context, g run.Grid, cells []run.Cell) ([]json.RawMessage, error) {
	c := &collection{
		Pool: p, grid: g, cells: cells, results: make([]json.RawMessage, len(cells)), failed: make([]error, len(cells)),
		open: make(map[string]int), entries: make(map[string]entry), seen: make(map[string]sighting),
		bar: run.NewProgress(p.Log, int64(len(cells))*1000, g.Task.Name()), swept: time.Now(),
	}
	if err := c.offerAll(ctx); err != nil {
		return c.results, c.ending(ctx, err)
	}
	err := c.collect(ctx)
	c.mu.Lock() // workers here may warn of something
	c.bar.Done()
	c.mu.Unlock()
	if err == nil || ctx.Err() != nil {
		err = errors.Join(err, p.status.write(c, true))
	}
	if err != nil {
		return c.results, c.ending(ctx, err)
	}
	var f Failures
	for _, err := range c.failed {
		if err != nil {
			f.Cells = append(f.Cells, err)
		}
	}
	if f.Cells != nil {
		return c.results, &f
	}
	return c.results, nil
}

// ending prefers to say why everything ends to what that has led to.
func (c *collection) ending(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if failure := c.failure(); failure != nil {
		return failure
	}
	return c.explain(err)
}

// offerAll reads the cells that are made already and puts the others on the board.
func (c *collection) offerAll(ctx context.Context) error {
	for i, cell := range c.cells {
		result, begun, err := c.grid.Finished(cell, func(line string) { c.warn("%s", line) })
		if err != nil {
			return fmt.Errorf("%s, run %d: %w", cell.Row, cell.Index, err)
		}
		if result != nil {
			c.results[i] = result
			continue
		}
		c.open[keyOf(cell)] = i
		for {
			if err = c.offerCell(ctx, c.grid, cell, begun); !errors.Is(err, errStale) {
				break // else a worker was faster
			}
		}
		if err != nil {
			return fmt.Errorf("%s, run %d: %w", cell.Row, cell.Index, err)
		}
	}
	return nil
}

// collect watches the board until every cell is made or has failed.
func (c *collection) collect(ctx context.Context) error {
	tick := time.NewTicker(min(c.Lease/4, 500*time.Millisecond))
	defer tick.Stop()
	for len(c.open) > 0 {
		watching, stop := context.WithCancel(ctx)
		watcher, err := c.board.kv.Watch(watching, cellKeys+">", jetstream.IgnoreDeletes())
		if err == nil {
			err = c.follow(ctx, watcher.Updates(), tick.C)
			_ = watcher.Stop() // it ends with the connection
		}
		stop()
		if ctx.Err() != nil || err == nil && len(c.open) == 0 {
			return context.Cause(ctx)
		}
		if failure := c.failure(); failure != nil {
			return failure
		}
		if err != nil && !passing(err) {
			return err
		}
		pause(ctx, 200*time.Millisecond)
	}
	return nil
}

// passing reports whether an error is of a connection, which comes back.
func passing(err error) bool {
	return !isOurs(err) && !errors.As(err, new(*badinput.Error))
}

// follow takes updates of entries until everything is made, or the watcher had better be made anew.
func (c *collection) follow(ctx context.Context, updates <-chan jetstream.KeyValueEntry, tick <-chan time.Time) error {
	heard := time.Now()
	for len(c.open) > 0 {
		select {
		case <-ctx.Done():
			return nil
		case update, ok := <-updates:
			if !ok {
				return nil
			}
			heard = time.Now()
			if update == nil { // that was all there is
				continue
			}
			if err := c.take(ctx, update); err != nil {
				return err
			}
		case now := <-tick:
			if failure := c.failure(); failure != nil {
				return failure
			}
			if err := c.look(ctx, now); err != nil {
				return err
			}
			if time.Since(heard) > 2*c.Lease && c.running() > 0 {
				return nil // workers renew their claims, and nothing is heard of it
			}
		}
	}
	return nil
}

// take heeds an entry that has changed.
func (c *collection) take(ctx context.Context, update jetstream.KeyValueEntry) error {
	i, ok := c.open[update.Key()]
	if !ok || c.seen[update.Key()].revision >= update.Revision() {
		return nil
	}
	var e entry
	if err := disk.Decode(update.Value(), &e); err != nil {
		return boardError(err)
	}
	c.entries[update.Key()], c.seen[update.Key()] = e, sighting{update.Revision(), time.Now()}
	c.status.heard(e)
	switch e.State {
	case done:
		err := c.accept(ctx, update.Key(), i, e, update.Revision())
		if err != nil {
			delete(c.seen, update.Key()) // to be taken again
		}
		return err
	case failed:
		var err error = fmt.Errorf("%s: %s", e, e.Error)
		if e.BadInput {
			err = badinput.Errorf("%w", err)
		}
		c.failed[i] = err
		c.warn("%s failed: %s", e, e.Error)
		delete(c.open, update.Key())
	}
	c.show()
	return nil
}

// show says how far all cells are.
func (c *collection) show() {
	at := 1000 * float64(len(c.cells)-len(c.open))
	for key := range c.open {
		if e := c.entries[key]; e.Total > 0 && e.State == claimed {
			at += min(1000*float64(e.Step)/float64(e.Total), 999)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bar.Set(int64(at), fmt.Sprintf("%d of %d runs", len(c.cells)-len(c.open), len(c.cells)))
}

func (c *collection) running() (n int) {
	for key := range c.open {
		if c.entries[key].State == claimed {
			n++
		}
	}
	return n
}

// accept takes a result that was handed in: it brings the run below the grid's folder, and only then says so. One that
// is not what it should be is refused, and the cell made again.
func (c *collection) accept(ctx context.Context, key string, i int, e entry, revision uint64) error {
	result, err := c.bring(ctx, key, c.cells[i], e)
	switch {
	case errors.Is(err, errRefused), errors.Is(err, errDamaged), errors.Is(err, run.ErrUnpack):
		c.warn("%s: what %s handed in is refused: %v: it is made again", e, e.Worker, err)
		return c.lose(ctx, key, e, revision)
	case err != nil:
		return err
	}
	drop := []*blob{e.Result, e.Checkpoint}
	e.State, e.Result, e.Checkpoint = kept, nil, nil
	if err := c.board.update(ctx, key, e, revision); err != nil {
		return err
	}
	c.board.drop(ctx, drop...)
	c.results[i] = result
	delete(c.open, key)
	c.show()
	return nil
}

var errRefused = errors.New("it is not the cell")

// bring verifies a run that was handed in and moves it to its place.
func (c *collection) bring(ctx context.Context, key string, cell run.Cell, e entry) (json.RawMessage, error) {
	if e.Program != Program() {
		return nil, fmt.Errorf("%w: it was made by another build of the program (%s)", errRefused, e.Program)
	}
	in := c.grid
	in.Scratch = true // all of it is durable already, and what Finished writes is not needed
	in.Dir = c.below(filepath.Join("in", strings.TrimPrefix(key, cellKeys)))
	if err := os.RemoveAll(in.Dir); err != nil {
		return nil, err
	}
	defer os.RemoveAll(in.Dir) // nothing of worth is left there
	made := filepath.Join(in.Dir, cell.Path())
	if err := c.board.fetch(ctx, c.spool(), *e.Result, made); err != nil {
		return nil, err
	}
	var faults []string
	if err := run.Verify(made, func(f run.Finding) {
		if f.Status == run.Damaged || f.Status == run.Unread {
			faults = append(faults, filepath.Base(f.Path)+": "+f.Text)
		}
	}); err != nil {
		return nil, fmt.Errorf("%w: %w", errRefused, err)
	}
	if faults != nil {
		return nil, fmt.Errorf("%w: %s", errRefused, strings.Join(faults, "; "))
	}
	result, _, err := in.Finished(cell, func(line string) { faults = append(faults, line) })
	if err != nil || result == nil {
		return nil, fmt.Errorf("%w: it has no result of its newest checkpoint: %v %s", errRefused, err, strings.Join(faults, "; "))
	}
	return result, c.place(made, cell)
}

// place moves a run below the grid's folder, in the place of what is there.
func (c *collection) place(made string, cell run.Cell) error {
	d, to := disk.OS{}, filepath.Join(c.Dir, cell.Path())
	if err := disk.MkdirAll(d, filepath.Dir(to)); err != nil {
		return err
	}
	if err := d.RemoveAll(filepath.Join(made, "lock")); err != nil {
		return err
	}
	if _, err := d.Lstat(to); err == nil { // until it is replaced, its result is on the board
		if err := d.Rename(to, made+".old"); err != nil {
			return err
		}
	}
	if err := d.Rename(made, to); err != nil {
		return err
	}
	return d.SyncDir(filepath.Dir(to))
}

// look sets cells back whose workers were silent for the time of a lease, posts again what nobody takes, and writes the
// status.
func (c *collection) look(ctx context.Context, now time.Time) error {
	waiting := 0
	for key := range c.open {
		e, s := c.entries[key], c.seen[key]
		if s.revision == 0 || now.Sub(s.at) < c.Lease {
			continue
		}
		switch e.State {
		case claimed:
			err := c.lose(ctx, key, e, s.revision)
			if err != nil && !errors.Is(err, errStale) {
				return err
			}
		case todo:
			waiting++
		}
	}
	if waiting > 0 {
		if err := c.repost(ctx); err != nil {
			return err
		}
	}
	if now.Sub(c.swept) > 30*time.Minute {
		c.swept = now
		var err error
		if c.orphans, err = c.sweep(ctx); err != nil {
			return err
		}
	}
	return c.status.write(c, false)
}

// sweep removes what killed workers have left on the server.
func (c *collection) sweep(ctx context.Context) (map[string]bool, error) {
	jobs := make([]job, 0, len(c.jobs))
	for _, j := range c.jobs {
		jobs = append(jobs, j)
	}
	return c.board.sweepBlobs(ctx, referred(c.entries, jobs), c.orphans)
}

// lose sets a cell back whose worker is gone.
func (c *collection) lose(ctx context.Context, key string, e entry, revision uint64) error {
	const most = 20 // workers in a row, without a checkpoint between
	if e.Lost++; e.Lost < most {
		return c.board.offer(ctx, key, e, revision)
	}
	e.State, e.Error = failed, fmt.Sprintf("%d workers in a row have ended while they made it: does it need too much memory?", most)
	return c.board.update(ctx, key, e, revision)
}

// repost tells workers of cells again if the queue is empty: a message was lost, when a disk lost what it had not
// written.
func (c *collection) repost(ctx context.Context) error {
	stream, err := c.board.js.Stream(ctx, bucket(c.board.id))
	if err != nil {
		return boardError(err)
	}
	if stream.CachedInfo().State.Msgs > 0 {
		return nil
	}
	for key := range c.open {
		if c.entries[key].State == todo {
			if err := c.board.post(ctx, key); err != nil {
				return err
			}
		}
	}
	return nil
}
