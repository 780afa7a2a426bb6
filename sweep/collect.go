package sweep

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
	claimed map[string]bool // keys of cells that workers make
	bar     *run.Progress
	orphans orphans // see sweepBlobs
	swept   time.Time
	posted  time.Time // when the queue was looked at
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
		open: make(map[string]int), entries: make(map[string]entry), seen: make(map[string]sighting), claimed: make(map[string]bool),
		bar: run.NewProgress(p.Log, int64(len(cells))*1000, g.Task.Name()), swept: p.now(), posted: p.now(),
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
	return c.forget()
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
	return !ofSystem(err) && !errors.As(err, new(*badinput.Error))
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
		case <-tick:
			if failure := c.failure(); failure != nil {
				return failure
			}
			if err := c.look(ctx, c.now()); err != nil {
				return err
			}
			if time.Since(heard) > 2*c.Lease && len(c.claimed) > 0 {
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
	c.entries[update.Key()], c.seen[update.Key()] = e, sighting{update.Revision(), c.now()}
	c.status.heard(e)
	delete(c.claimed, update.Key())
	switch e.State {
	case kept: // by us, though the answer was lost
		result, _, err := c.grid.Finished(c.cells[i], func(line string) { c.warn("%s", line) })
		if err == nil && result == nil {
			err = c.lose(ctx, update.Key(), e, update.Revision())
		}
		if err != nil {
			delete(c.seen, update.Key()) // to be taken again
			return err
		}
		if result != nil {
			c.results[i] = result
			delete(c.open, update.Key())
		}
	case claimed:
		c.claimed[update.Key()] = true
	case done:
		err := c.accept(ctx, update.Key(), i, e, update.Revision())
		if err != nil {
			delete(c.seen, update.Key()) // to be taken again
		}
		return err
	case failed:
		if e.Broken != nil {
			err := c.resend(ctx, update.Key(), c.cells[i], e, update.Revision())
			if err != nil {
				delete(c.seen, update.Key()) // to be taken again
			}
			return err
		}
		var err error = fmt.Errorf("%s: %s", e, clean(e.Error))
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
	for key := range c.claimed {
		if e := c.entries[key]; e.Total > 0 {
			at += min(1000*float64(e.Step)/float64(e.Total), 999)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bar.Set(int64(at), fmt.Sprintf("%d of %d runs", len(c.cells)-len(c.open), len(c.cells)))
}
