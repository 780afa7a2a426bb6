package run

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gomlx/compute"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/config"
	"github.com/gfnem/gfnem/internal/crash"
	"github.com/gfnem/gfnem/internal/disk"
)

// Cell is one training of a grid.
type Cell struct {
	Row    string // names a setting, and a folder
	Index  int    // numbers the repetition
	Config any    // a pointer, as Task.Config returns it
	// Until is the part of its steps after which the training pauses and is measured; 0 means that it goes to its end. A
	// later grid takes it further.
	Until float64
}

// Path is where a cell's run lies below the folder of its grid.
func (c Cell) Path() string { return filepath.Join(c.Row, strconv.Itoa(c.Index)) }

func (c Cell) failed(err error) error {
	return fmt.Errorf("%s, run %d: %w", c.Row, c.Index, err)
}

// Pool makes the cells of a grid elsewhere, each as Grid.Make does it, and brings their runs below the grid's folder. It
// returns their results in order.
type Pool interface {
	Run(ctx context.Context, g Grid, cells []Cell) ([]json.RawMessage, error)
}

// Grid is many trainings, each a run of its own below Dir, made by a few workers at a time. It can be stopped and
// continued: the results of finished cells are read, if they and their runs verify, the others go on from their
// checkpoints.
type Grid struct {
	Dir     string
	Task    Task
	Backend compute.Backend
	Name    string // of the backend, for the runs' provenance
	Command []string
	Workers int
	Every   time.Duration // between checkpoints of a cell
	Log     io.Writer     // progress; may be nil
	Pool    Pool          // makes the cells; nil means this process, with so many Workers
	// Scratch says that what is made is handed on, so that it need not outlive a power cut here.
	Scratch bool
}

// Run makes all cells and returns their results as JSON, in order.
func (g Grid) Run(ctx context.Context, cells []Cell) ([]json.RawMessage, error) {
	var prepared Prepared
	for i, c := range cells {
		said, err := prepared.Prepare(g.Task, c.Config)
		if err != nil {
			return nil, fmt.Errorf("%s, run %d: %w", c.Row, c.Index, err)
		}
		if i == 0 && g.Log != nil && said != nil {
			fmt.Fprintln(g.Log, strings.Join(said, "\n"))
		}
	}
	if g.Pool != nil {
		return g.Pool.Run(ctx, g, cells)
	}
	results := make([]json.RawMessage, len(cells))
	failed := make([]error, len(cells))
	asked := ctx
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// Each cell counts 1000.
	bar := NewProgress(g.Log, int64(len(cells))*1000, g.Task.Name())
	var mu sync.Mutex
	var done float64
	var ended int
	var over bool
	progress := func(part float64, more int) {
		mu.Lock()
		defer mu.Unlock()
		if over {
			return
		}
		done, ended = done+part, ended+more
		bar.Set(int64(done), fmt.Sprintf("%d of %d runs", ended, len(cells)))
	}
	warn := func(line string) {
		mu.Lock()
		defer mu.Unlock()
		if g.Log != nil {
			fmt.Fprintln(g.Log, "warning:", line)
		}
	}
	todo := make(chan int)
	var wg sync.WaitGroup
	for range max(g.Workers, 1) {
		wg.Go(func() {
			for i := range todo {
				var at float64 // what was reported of this cell
				res, err := g.Make(ctx, cells[i], func(step, total uint64) {
					now := 1000 * float64(step) / float64(total) // more than one step at first, if the job was restored
					progress(now-at, 0)
					at = now
				}, warn)
				if err != nil {
					failed[i] = cells[i].failed(err)
					cancel()
					return
				}
				results[i] = res
				progress(1000-at, 1)
			}
		})
	}
	for i := range cells {
		select {
		case todo <- i:
		case <-ctx.Done():
		}
	}
	close(todo)
	wg.Wait()
	mu.Lock()
	over = true // for a step that goes on
	bar.Done()
	mu.Unlock()
	for _, err := range failed {
		if err != nil && !errors.Is(err, ErrInterrupted) { // it failed by itself, not because another cell had
			return results, err
		}
	}
	return results, context.Cause(asked)
}

// Make makes one training below the grid's folder, or reads its result if it is finished. Watch is told of steps made and
// expected, warn of what a run has lost.
func (g Grid) Make(
	ctx context.Context, c Cell, watch func(step, total uint64), warn func(line string),
) (_ json.RawMessage, err error) {
	defer crash.Recover(&err) // it runs in a goroutine of its own
	r, text, err := g.open(c)
	if err != nil {
		return nil, err
	}
	fresh := r == nil
	if !fresh {
		defer func() { err = cmp.Or(err, r.Close()) }()
		done, err := r.result(c.Until, warn)
		if done != nil || err != nil {
			return done, err
		}
	}
	s, err := Await(ctx, Grace, func() (Session, error) { return g.Task.Start(g.Backend, c.Config) })
	if err != nil {
		return nil, err
	}
	defer func() { Release(s, err) }()
	if fresh {
		var files map[string][]byte
		if files, err = Keeps(s); err != nil { // err is the result, which Close may set
			return nil, err
		}
		if r, err = create(g.disk(), filepath.Join(g.Dir, c.Path()), Options{
			Task: g.Task.Name(), Config: text, Command: g.Command, Seed: s.Seed(), Backend: g.Name, Data: s.Data(), Files: files,
		}); err != nil {
			return nil, err
		}
		defer func() { err = cmp.Or(err, r.Close()) }()
	} else if !maps.Equal(s.Data(), r.Info().Data) {
		return nil, badinput.Errorf("%s was made with other data than its configuration gives now: choose another --out", r.dir)
	}
	if err := r.Drive(ctx, &watched{Session: s, until: c.Until, watch: watch}, g.Every, nil); err != nil {
		return nil, err
	}
	result, err := Await(ctx, Grace, s.Evaluate)
	if err != nil {
		return nil, err
	}
	if err := r.headline(result); err != nil {
		return nil, err
	}
	return r.writeResult(result, c.Until)
}

// open opens the run of a cell, nil if there is none yet, and returns its configuration as text.
func (g Grid) open(c Cell) (r *Run, text string, err error) {
	if text, err = config.Encode(c.Config); err != nil {
		return nil, "", err
	}
	r, err = open(g.disk(), filepath.Join(g.Dir, c.Path()))
	if errors.Is(err, ErrNotRun) {
		return nil, text, nil
	} else if err != nil {
		return nil, "", err
	}
	if r.Config() != text {
		err := badinput.Errorf("%s was made with other settings: choose another --out", r.dir)
		return nil, "", errors.Join(err, r.Close())
	}
	return r, text, nil
}

func (g Grid) disk() disk.Disk {
	if g.Scratch {
		return disk.Unsynced{}
	}
	return disk.OS{}
}

// Finished returns the result of a cell that is finished, nil if there is none that can be trusted, and whether the cell
// has begun.
func (g Grid) Finished(c Cell, warn func(line string)) (result json.RawMessage, begun bool, err error) {
	r, _, err := g.open(c)
	if err != nil || r == nil {
		return nil, false, err
	}
	result, err = r.result(c.Until, warn)
	return result, true, cmp.Or(err, r.Close())
}

// watched reports every step of a session, and is done early if it is to pause.
type watched struct {
	Session
	until float64
	watch func(step, total uint64)
}

func (w *watched) Done() bool {
	if w.Session.Done() {
		return true
	}
	step, total := w.Progress()
	return w.until > 0 && total > 0 && float64(step) >= w.until*float64(total)
}

func (w *watched) Step() (Tick, error) {
	t, err := w.Session.Step()
	if err == nil && t.Total > 0 {
		w.watch(t.Step, t.Total)
	}
	return t, err
}
