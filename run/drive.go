package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/gfnem/gfnem/internal/self"
)

// Job is a computation that can be stopped and continued.
//
// Laws, checked by runtest.Job:
//   - a job restored from a state continues exactly as the job that returned it, in what its steps say, too;
//   - what Step returns depends on nothing but the state before it;
//   - State does not change the job, and a restored job has the state that it was restored from;
//   - it has all arrays of its states before the first step, in the shapes that they keep;
//   - Restore refuses states with other arrays or counters, or numbers that are not finite, and then changes nothing;
//   - the steps that Step reports rise, and in the end the job is done.
type Job interface {
	// Done reports whether the work is finished.
	Done() bool
	// Step advances by one unit of work, short enough to be lost.
	Step() (Tick, error)
	// State returns everything that Restore needs.
	State() (State, error)
	// Restore continues from a state. It is called before the first Step, if at all.
	Restore(State) error
}

// ErrGaveUp is wrapped by the error of a Step that cannot go on although the job's state is good; Drive then saves it.
var ErrGaveUp = errors.New("stopped")

// Tick is what one step of a job says.
type Tick struct {
	Step, Total uint64             // made, and expected in all
	Phase       string             // steps of other phases may take longer or shorter
	Text        string             // how it goes, in a few words
	Log         map[string]float64 // metrics of this step; nil if there are none
}

// Drive runs a job to its end, from the run's newest checkpoint on. It saves every so often, when ctx ends (then it
// returns ErrInterrupted) and at the end. Warnings and progress go to w, which may be nil.
//
// If ctx ends in the middle of a step that takes longer than Grace, Drive returns ErrBusy as well: the step goes on, and the
// job must be neither used nor closed any more.
func (r *Run) Drive(ctx context.Context, job Job, every time.Duration, w io.Writer) error {
	step, found, err := r.restore(job, w)
	if err != nil {
		return err
	}
	kept, total := step, uint64(0)
	if s, ok := job.(Session); ok {
		_, total = s.Progress()
	}
	clock := r.clock()
	save := func() error { return r.save(job, step, total, clock()) }
	var bar *Progress
	var phase string
	saved := time.Now()
	for !job.Done() {
		if ctx.Err() != nil {
			if err := save(); err != nil {
				return err
			}
			return fmt.Errorf("%w at step %d: continue with %s", ErrInterrupted, step, r.again())
		}
		t, err := Await(ctx, Grace, job.Step)
		if errors.Is(err, ErrBusy) {
			return fmt.Errorf("%w; %s: continue with %s", err, keeps(found, kept, total), r.again())
		} else if errors.Is(err, ErrGaveUp) {
			return errors.Join(fmt.Errorf("%w; the last good state is kept in %s", err, r.Dir()), save())
		} else if err != nil {
			return err
		}
		step, total = t.Step, t.Total
		if t.Log != nil {
			if err := r.Log(t.Step, t.Log); err != nil {
				return r.halted(err)
			}
		}
		if bar == nil {
			bar = NewProgress(w, int64(t.Total), r.info.Task)
			defer bar.Done()
		} else if t.Phase != phase {
			bar.Restart()
		}
		phase = t.Phase
		bar.Expect(int64(t.Total))
		bar.Set(int64(t.Step), t.Text)
		if time.Since(saved) >= every {
			if err := save(); err != nil {
				return err
			}
			saved, found, kept = time.Now(), true, step
		}
	}
	return save()
}

// keeps says what is kept of a run whose job did not end its step.
func keeps(saved bool, step, total uint64) string {
	switch {
	case !saved:
		return "nothing is saved yet"
	case total == 0: // nobody has said
		return fmt.Sprintf("the last checkpoint is step %d", step)
	}
	return fmt.Sprintf("the last checkpoint is step %d of %d", step, total)
}

// restore takes the job to the newest checkpoint, if there is one, and returns its step.
func (r *Run) restore(job Job, w io.Writer) (step uint64, found bool, err error) {
	s, warnings, err := r.Load()
	if err != nil && !errors.Is(err, ErrNoCheckpoint) {
		return 0, false, err
	}
	warnings = append(warnings, r.JournalNotes()...)
	if err != nil && r.anew {
		warnings = append(warnings, r.dir+" has no checkpoint: the training begins anew, and what it logged before is lost")
	}
	for _, line := range warnings {
		if w != nil {
			fmt.Fprintln(w, "warning:", line)
		}
	}
	if err != nil {
		return 0, false, nil
	}
	if err := job.Restore(s); err != nil {
		return 0, false, fmt.Errorf("restore run %s at step %d: %w", r.Dir(), s.Step, err)
	}
	return s.Step, true, nil
}

func (r *Run) save(job Job, step, total uint64, took time.Duration) error {
	s, err := job.State()
	if err != nil {
		return fmt.Errorf("save run %s at step %d: %w", r.Dir(), step, err)
	}
	s.Step = step
	if err := r.Save(s); err != nil {
		return r.halted(err)
	}
	return r.halted(r.summarize(func(s *Summary) {
		if s.Step != step {
			s.Headline = nil
		}
		s.Step, s.Total, s.Finished, s.Seconds = step, total, job.Done(), took.Seconds()
	}))
}

// halted says that a run whose disk failed can go on.
func (r *Run) halted(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w; what was saved before is kept: mend that and continue with %s", err, r.again())
}

// again is what continues the run.
func (r *Run) again() string { return self.Advice("resume %s", r.dir) }
