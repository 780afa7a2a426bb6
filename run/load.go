package run

import (
	"errors"
	"fmt"

	"github.com/gfnem/gfnem/badinput"
)

// ErrNoCheckpoint is wrapped by the error of Load for a run that has not saved yet.
var ErrNoCheckpoint = errors.New("has no checkpoint yet")

// Load returns the newest checkpoint that verifies, with a line for each newer one that did not.
//
// In a Run that may write, it also takes the run back to that checkpoint: the journals are cut to their length at
// the time, damaged checkpoints, which later steps will save again, are set aside, and superfluous ones, which a crash
// brought back, are removed. With ErrNoCheckpoint the run is back at its beginning. If there are checkpoints and none
// verifies, Load changes nothing.
func (r *Run) Load() (State, []string, error) {
	s, warnings, err := r.load()
	if errors.Is(err, ErrNoCheckpoint) {
		return State{}, nil, err
	} else if err != nil {
		return State{}, nil, fmt.Errorf("load run %s: %w", r.dir, err)
	}
	return s, warnings, nil
}

func (r *Run) load() (s State, warnings []string, err error) {
	steps, err := r.checkpoints()
	if err != nil {
		return s, nil, err
	}
	if len(steps) == 0 {
		if _, err := r.rewind(manifest{}, nil); err != nil {
			return s, nil, err
		}
		return s, nil, badinput.Errorf("%s %w: wait for its first save, or continue it with \"gfnem resume %[1]s\"", r.dir,
			ErrNoCheckpoint)
	}
	for i, step := range steps {
		s, m, err := readCheckpoint(r.checkpointPath(step))
		if err != nil {
			warnings = append(warnings, fmt.Sprintf("checkpoint %d is damaged and skipped: %v", step, err))
			continue
		}
		more, err := r.rewind(m, steps[:i])
		return s, append(warnings, more...), err
	}
	return s, nil, badinput.Errorf("all %d checkpoints are damaged, so start again in another folder; the newest: %s",
		len(steps), warnings[0])
}

// rewind takes a writable run back to the checkpoint of a manifest, setting the damaged steps aside.
func (r *Run) rewind(m manifest, damaged []uint64) (warnings []string, err error) {
	if r.lock == nil {
		return nil, nil
	}
	var sizes [2]int64
	for i, name := range []string{metricsName, eventsName} {
		size, warning, err := checkJournal(r.path(name), m.Journals[name])
		if err != nil {
			return nil, err
		}
		if warning != "" {
			warnings = append(warnings, warning)
		}
		sizes[i] = size
	}
	for _, step := range damaged {
		if err := r.setAside(step); err != nil {
			return nil, err
		}
	}
	if err := r.closeJournals(); err != nil {
		return nil, err
	}
	if err := r.openJournals(sizes[0], sizes[1]); err != nil {
		return nil, err
	}
	return warnings, r.prune()
}
