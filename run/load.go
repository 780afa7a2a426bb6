package run

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/gfnem/gfnem/badinput"
)

// ErrNoCheckpoint is wrapped by the error of Load for a run that has not saved yet.
var ErrNoCheckpoint = errors.New("has no checkpoint yet")

// Load returns the newest checkpoint that verifies, with a line for each newer one that did not.
//
// In a Run that may write, it also takes the run back to that checkpoint: the journals are cut to their length at
// the time, or brought in step with it (see JournalNotes), damaged checkpoints, which later steps will save again, are
// set aside, and superfluous ones, which a crash brought back, are removed. With ErrNoCheckpoint the run is back at its
// beginning. If there are checkpoints and none verifies, or if one cannot be read, Load changes nothing.
func (r *Run) Load() (State, []string, error) {
	s, skipped, err := r.load()
	if errors.Is(err, ErrNoCheckpoint) {
		return State{}, nil, err
	} else if err != nil {
		return State{}, nil, fmt.Errorf("load run %s: %w", r.dir, err)
	}
	return s, skipped, nil
}

func (r *Run) load() (s State, skipped []string, err error) {
	const attempts = 100 // each time, a process that writes the run has removed a checkpoint before it was read
	for range attempts {
		if s, skipped, err = r.loadNewest(); isDamage(err) || !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	return s, skipped, err
}

func (r *Run) loadNewest() (s State, skipped []string, err error) {
	steps, err := r.checkpoints()
	if err != nil {
		return s, nil, err
	}
	if len(steps) == 0 {
		if err := r.restart(); err != nil {
			return s, nil, err
		}
		return s, nil, badinput.Errorf("%s %w: wait for its first save, or continue it with %s", r.dir,
			ErrNoCheckpoint, r.again())
	}
	for i, step := range steps {
		s, m, err := r.readCheckpoint(step)
		if isDamage(err) {
			skipped = append(skipped, fmt.Sprintf("checkpoint %d is damaged and skipped: %v", step, err))
			continue
		} else if err != nil {
			return s, nil, err
		}
		return s, skipped, r.rewind(m, steps[:i], steps[i+1:])
	}
	return s, nil, badinput.Errorf("all %d checkpoints are damaged, so start again in another folder; the newest: %s",
		len(steps), skipped[0])
}

// restart takes a writable run back to its beginning.
func (r *Run) restart() error {
	lost, err := r.disk.Lstat(r.path(metricsName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := r.rewind(manifest{}, nil, nil); err != nil {
		return err
	}
	r.anew = lost != nil && lost.Size() > 0
	return nil
}

// rewind takes a writable run back to the checkpoint of a manifest, which comes after damaged ones and before older ones.
func (r *Run) rewind(m manifest, damaged, older []uint64) (err error) {
	if r.lock == nil {
		r.notes, err = r.contradictions(m)
		return err
	}
	for _, step := range damaged {
		if err := r.setAside(step); err != nil {
			return err
		}
	}
	if err := r.closeJournals(); err != nil {
		return err
	}
	var kept map[string][]byte
	if kept, r.notes, err = r.mend(m, older); err != nil {
		return err
	}
	if err := r.openJournals(kept); err != nil {
		return err
	}
	return r.prune()
}
