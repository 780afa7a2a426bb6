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
	"sync"
	"time"

	"github.com/gomlx/compute"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/config"
	"github.com/gfnem/gfnem/internal/crash"
)

// Cell is one training of a grid.
type Cell struct {
	Row    string // names a setting, and a folder
	Index  int    // numbers the repetition
	Config any    // a pointer, as Task.Config returns it
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
}

// Run makes all cells and returns their results as JSON, in order.
func (g Grid) Run(ctx context.Context, cells []Cell) ([]json.RawMessage, error) {
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
				res, err := g.cell(ctx, cells[i], progress, warn)
				if err != nil {
					failed[i] = fmt.Errorf("%s, run %d: %w", cells[i].Row, cells[i].Index, err)
					cancel()
					return
				}
				results[i] = res
				progress(0, 1)
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

// cell makes one training, or reads its result if it is finished.
func (g Grid) cell(
	ctx context.Context, c Cell, progress func(part float64, ended int), warn func(line string),
) (_ json.RawMessage, err error) {
	defer crash.Recover(&err) // it runs in a goroutine of its own
	dir := filepath.Join(g.Dir, c.Row, strconv.Itoa(c.Index))
	text, err := config.Encode(c.Config)
	if err != nil {
		return nil, err
	}
	r, err := Open(dir)
	fresh := errors.Is(err, ErrNotRun)
	if err != nil && !fresh {
		return nil, err
	}
	if !fresh {
		defer func() { err = cmp.Or(err, r.Close()) }()
		if r.Config() != text {
			return nil, badinput.Errorf("%s was made with other settings: choose another --out", dir)
		}
		done, err := r.result(warn)
		if err != nil {
			return nil, err
		}
		if done != nil {
			progress(1000, 0)
			return done, nil
		}
	}
	s, err := Await(ctx, Grace, func() (Session, error) { return g.Task.Start(g.Backend, c.Config) })
	if err != nil {
		return nil, err
	}
	defer func() { Release(s, err) }()
	if fresh {
		if r, err = Create(dir, Options{
			Task: g.Task.Name(), Config: text, Command: g.Command, Seed: s.Seed(), Backend: g.Name, Data: s.Data(),
		}); err != nil {
			return nil, err
		}
		defer func() { err = cmp.Or(err, r.Close()) }()
	} else if !maps.Equal(s.Data(), r.Info().Data) {
		return nil, badinput.Errorf("%s was made with other data than its configuration gives now: choose another --out", dir)
	}
	if err := r.Drive(ctx, &watched{Job: s, progress: progress}, g.Every, nil); err != nil {
		return nil, err
	}
	result, err := Await(ctx, Grace, s.Evaluate)
	if err != nil {
		return nil, err
	}
	if err := r.headline(result); err != nil {
		return nil, err
	}
	return r.writeResult(result)
}

// watched reports every step of a job as progress.
type watched struct {
	Job
	progress func(part float64, ended int)
	at       float64 // what was reported of this job
}

func (w *watched) Step() (Tick, error) {
	t, err := w.Job.Step()
	if err == nil && t.Total > 0 {
		at := 1000 * float64(t.Step) / float64(t.Total) // more than one step at first, if the job was restored
		w.progress(at-w.at, 0)
		w.at = at
	}
	return t, err
}
