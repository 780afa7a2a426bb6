package sweep

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/config"
	"github.com/gfnem/gfnem/internal/crash"
	"github.com/gfnem/gfnem/run"
)

// making is a cell that a worker makes.
type making struct {
	*Worker
	*hold
	dir         string // of the grid that is this cell
	cell        run.Cell
	job         job
	step, total atomic.Uint64
	shipped     uint64 // step of the checkpoint that was shipped last
}

// make makes a cell that was claimed and hands in its result. Its error is one that keeps this worker from making any:
// what is wrong with the cell is told the pool.
func (w *Worker) make(ctx context.Context, h *hold) (err error) {
	m := &making{Worker: w, hold: h, dir: filepath.Join(w.Dir, fmt.Sprintf("cell-%d", h.now().Epoch))}
	defer func() { err = errors.Join(err, os.RemoveAll(m.dir)) }()
	if err := os.MkdirAll(m.dir, 0o777); err != nil {
		return m.giveUp(err)
	}
	cellCtx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg, shipping sync.WaitGroup
	begun := time.Now()
	wg.Go(func() { m.renew(cellCtx, cancel) })
	grid, err := m.prepare(cellCtx)
	if err == nil {
		shipCtx, stop := context.WithCancel(cellCtx)
		shipping.Go(func() { m.shipAll(shipCtx) })
		_, err = grid.Make(cellCtx, m.cell, func(step, total uint64) { m.step.Store(step); m.total.Store(total) },
			func(line string) { w.say("warning: %s", line) })
		stop()
		shipping.Wait() // before the run is moved away
	}
	stale := errors.Is(context.Cause(cellCtx), errStale)
	if err == nil && !stale {
		if err = m.handIn(cellCtx); errors.Is(err, errStale) {
			stale = true
		}
	}
	cancel(nil)
	wg.Wait()
	switch {
	case errors.Is(err, run.ErrBusy): // what it computes cannot be stopped
		return errors.Join(err, m.giveUp(nil))
	case stale:
		w.say("%s: %v: what was made of it since is dropped", m.now(), errStale)
		return nil
	case err == nil:
		w.say("%s: done in %s", m.now(), time.Since(begun).Round(time.Second/10))
		return nil
	case ctx.Err() != nil:
		return errors.Join(m.giveUp(nil), context.Cause(ctx))
	case m.isOurs(err):
		return m.giveUp(err)
	case errors.As(err, new(*serverError)):
		w.say("warning: %s: %s: it is handed back", m.now(), oneLine(err))
		return m.giveUp(nil)
	}
	w.say("%s: failed: %s", m.now(), oneLine(err))
	return m.fail(ctx, err)
}

// ofSystem reports whether an error is of this machine.
func ofSystem(err error) bool {
	var number syscall.Errno
	if errors.As(err, new(*fs.PathError)) || errors.As(err, new(*os.LinkError)) {
		return true
	}
	return !errors.As(err, new(*serverError)) && errors.As(err, &number)
}

// isOurs reports whether an error is of this machine and not of the data that the cell names, which lie where its
// configuration says: another worker may do better.
func (w *Worker) isOurs(err error) bool {
	path, ok := errors.AsType[*fs.PathError](err)
	if !ok || isBelow(w.Dir, path.Path) || w.leaves != "" && isBelow(w.leaves, path.Path) {
		return ofSystem(err)
	}
	return slices.ContainsFunc([]error{syscall.ENOSPC, syscall.EDQUOT, syscall.EIO, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM},
		func(fault error) bool { return errors.Is(err, fault) })
}

func isBelow(dir, path string) bool {
	below, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(below)
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// prepare lays out the cell as it was left, and the data that it needs.
func (m *making) prepare(ctx context.Context) (grid run.Grid, err error) {
	e := m.now()
	if _, err := m.board().get(ctx, e.Job, &m.job); err != nil {
		return grid, err
	}
	var task run.Task
	for _, t := range m.Tasks {
		if t.Name() == m.job.Task {
			task = t
		}
	}
	if task == nil {
		return grid, badinput.Errorf("this program has no task %q", m.job.Task)
	}
	m.cell = run.Cell{Row: e.Row, Index: e.Index, Until: e.Until}
	if !filepath.IsLocal(m.cell.Path()) {
		return grid, badinput.Errorf("%s is no name of a row", e.Row)
	}
	if m.cell.Config, err = m.read(task); err != nil {
		return grid, err
	}
	if task, err = m.bringData(ctx, task); err != nil {
		return grid, err
	}
	if e.Checkpoint != nil {
		err := m.board().fetch(ctx, m.dir, *e.Checkpoint, filepath.Join(m.dir, m.cell.Path()))
		if errors.Is(err, errDamaged) || errors.Is(err, run.ErrUnpack) {
			m.say("warning: %s: the checkpoint %v: the cell begins anew", e, err)
			err = nil
		}
		if err != nil {
			return grid, err
		}
	}
	return run.Grid{
		Dir: m.dir, Task: task, Backend: m.Backend, Name: m.Computes, Command: m.job.Command, Every: m.job.Every, Scratch: true,
	}, nil
}

func (m *making) board() *board { return m.hold.board }

// read returns the configuration of the cell.
func (m *making) read(task run.Task) (any, error) {
	path := filepath.Join(m.dir, "cell.toml")
	if err := os.WriteFile(path, []byte(m.job.Config), 0o666); err != nil {
		return nil, err
	}
	c := task.Config(task.Presets()[0]) // the file has every key
	return c, config.Resolve(c, config.File(path))
}

// renew renews the claim, and says how far the cell is, until ctx ends. If somebody else has the cell it stops the
// training.
func (m *making) renew(ctx context.Context, stop context.CancelCauseFunc) {
	tick := time.NewTicker(m.lease / 8)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		err := m.change(ctx, func(e *entry) { e.Step, e.Total = m.step.Load(), m.total.Load() })
		if errors.Is(err, errStale) {
			stop(errStale)
			return
		}
	}
}

// shipAll ships checkpoints as they are saved, until ctx ends.
func (m *making) shipAll(ctx context.Context) {
	tick := time.NewTicker(max(m.job.Every, time.Second/4))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := m.ship(ctx, nil); err != nil && ctx.Err() == nil && !errors.Is(err, run.ErrNotRun) &&
			!errors.Is(err, run.ErrNoCheckpoint) {
			m.say("warning: %s: its checkpoint is not shipped, and tried again: %s", m.now(), oneLine(err))
		}
	}
}

// ship uploads the newest checkpoint, if it is not there yet, and changes the entry.
func (m *making) ship(ctx context.Context, more func(*entry)) error {
	name := fmt.Sprintf("%s/%d", m.key, m.now().Epoch)
	var step uint64
	packed, err := m.board().send(ctx, m.dir, name, func(w io.Writer) (err error) {
		step, err = run.Pack(filepath.Join(m.dir, m.cell.Path()), w)
		return err
	})
	if err != nil || more == nil && step == m.shipped {
		return err
	}
	before := m.now().Checkpoint
	if err := m.change(ctx, func(e *entry) {
		e.Checkpoint, e.Lost = &packed, 0
		if more != nil {
			more(e)
		}
	}); err != nil {
		return err
	}
	m.shipped = step
	if before != nil && before.Name != packed.Name {
		m.board().drop(ctx, before)
	}
	return nil
}

// handIn brings the finished cell to the pool and says that it is done, and tries that as long as the claim holds.
func (m *making) handIn(ctx context.Context) (err error) {
	var packed blob
	if m.leaves != "" {
		var back func() error
		if packed, back, err = m.leave(); err != nil {
			return err
		}
		defer func() {
			if err != nil {
				err = errors.Join(err, back())
			}
		}()
	}
	handed := func(e *entry) {
		e.State, e.Result, e.Step, e.Total = done, &packed, m.step.Load(), m.total.Load()
	}
	for tries := 0; ; tries++ {
		if m.leaves == "" {
			packed, err = m.board().send(ctx, m.dir, fmt.Sprintf("%s/%d", m.key, m.now().Epoch), func(w io.Writer) error {
				_, err := run.Pack(filepath.Join(m.dir, m.cell.Path()), w)
				return err
			})
		}
		if err == nil {
			err = m.change(ctx, handed)
		}
		if m.leaves != "" && err != nil && ctx.Err() != nil { // perhaps it is handed in, and the answer is on its way
			late, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
			err = m.change(late, handed)
			cancel()
		}
		switch {
		case err == nil || errors.Is(err, errStale) || m.isOurs(err):
			return err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case tries == 0:
			m.say("warning: %s: its result is not handed in, and tried again: %s", m.now(), oneLine(err))
		}
		pause(ctx, time.Second)
	}
}

// giveUp hands the cell back, with its newest checkpoint if there is one, and returns an error with what it means.
func (m *making) giveUp(cause error) error {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	back := func(e *entry) { e.State, e.Worker, e.Host, e.Program = todo, "", "", "" }
	err := m.ship(ctx, back)
	if err != nil && !errors.Is(err, errStale) {
		err = m.change(ctx, back)
	}
	if err == nil {
		err = m.post(ctx, m.key)
	}
	if err != nil { // the pool will see that nobody renews the claim
		m.say("warning: %s: it is not handed back: %s", m.now(), oneLine(err))
	}
	if cause != nil {
		return fmt.Errorf("%w: this worker ends, and others go on with %s", cause, m.now())
	}
	return nil
}

// fail says that the cell cannot be made.
func (m *making) fail(ctx context.Context, cause error) error {
	var input *badinput.Error
	var panicked *crash.Error
	if errors.As(cause, &panicked) {
		for line := range strings.Lines(string(panicked.Stack)) {
			m.say("%s", strings.ReplaceAll(strings.TrimRight(line, "\n"), "\t", "    "))
		}
	}
	var broken *brokenData
	errors.As(cause, &broken)
	for {
		err := m.change(ctx, func(e *entry) {
			e.State, e.Error, e.BadInput = failed, oneLine(cause), errors.As(cause, &input)
			if broken != nil {
				e.Broken = &broken.blob
			}
		})
		if err == nil || errors.Is(err, errStale) || ctx.Err() != nil {
			return nil
		}
		pause(ctx, time.Second)
	}
}
