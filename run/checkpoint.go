package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/internal/disk"
)

// keep is the number of checkpoints that Save leaves: the newest, one to fall back to if it turns out damaged, and
// one more.
const keep = 3

// damagedSuffix marks what did not verify and was set aside. It is never overwritten.
const damagedSuffix = ".damaged"

// checkpointName returns the name of a step's checkpoint. Names sort like steps up to 12 digits.
func checkpointName(step uint64) string { return fmt.Sprintf("%012d", step) }

func (r *Run) checkpointPath(step uint64) string {
	return filepath.Join(r.dir, stateName, checkpointName(step))
}

// checkpoints returns the steps that have a checkpoint, damaged or not, newest first.
func (r *Run) checkpoints() ([]uint64, error) {
	entries, err := r.disk.ReadDir(r.path(stateName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, badinput.Errorf("%s is missing: put it back from a copy, or start again in another folder",
			r.path(stateName))
	} else if err != nil {
		return nil, err
	}
	var steps []uint64
	for _, e := range entries {
		step, err := strconv.ParseUint(e.Name(), 10, 64)
		if err == nil && e.Name() == checkpointName(step) {
			steps = append(steps, step)
		}
	}
	slices.Sort(steps)
	slices.Reverse(steps)
	return steps, nil
}

// Save makes a state durable under its step, with all that was logged before. When it returns nil, they will survive
// a power cut; when it returns an error, the checkpoints saved before are still there. A step that is saved already
// stays as it was saved first.
func (r *Run) Save(s State) error {
	if err := r.add(s); err != nil {
		return fmt.Errorf("save checkpoint %d: %w", s.Step, err)
	}
	if err := r.prune(); err != nil {
		return fmt.Errorf("remove an old checkpoint: %w", err)
	}
	return nil
}

func (r *Run) add(s State) error {
	if err := r.writable(); err != nil {
		return err
	}
	if err := r.checkOwner(); err != nil {
		return err
	}
	if saved, err := r.saved(s.Step); err != nil {
		return err
	} else if saved {
		return r.disk.SyncDir(r.path(stateName)) // its name may still have to become durable
	}
	return disk.Replace(r.disk, r.checkpointPath(s.Step), func(tmp string) error { return r.writeCheckpoint(tmp, s) })
}

// saved reports whether a step has a valid checkpoint. A damaged one is set aside.
func (r *Run) saved(step uint64) (bool, error) {
	_, _, err := r.readCheckpoint(step)
	switch {
	case isDamage(err):
		return false, r.setAside(step)
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	}
	return err == nil, err
}

// writeCheckpoint writes a checkpoint into a folder of its own; but for the folder's name, all of it is durable.
func (r *Run) writeCheckpoint(dir string, s State) error {
	if err := errors.Join(r.metrics.sync(), r.events.sync()); err != nil {
		return err
	}
	m := manifest{
		Format:   formatVersion,
		Run:      r.seal,
		Step:     s.Step,
		Files:    make(map[string]disk.Digest),
		Journals: map[string]disk.Digest{metricsName: r.metrics.digest(), eventsName: r.events.digest()},
	}
	if err := r.disk.RemoveAll(dir); err != nil {
		return err
	}
	if err := r.disk.Mkdir(dir); err != nil {
		return err
	}
	write := func(name string, write func(io.Writer) error) (err error) {
		m.Files[name], err = disk.Write(r.disk, filepath.Join(dir, name), write)
		return err
	}
	if err := write(arraysName, func(w io.Writer) error { return WriteSafetensors(w, s.Arrays) }); err != nil {
		return err
	}
	if err := write(stateFileName, func(w io.Writer) error {
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(s); err != nil {
			return fmt.Errorf("extra state: %w", err)
		}
		return nil
	}); err != nil {
		return err
	}
	sealed, err := disk.Seal(&m, &m.SHA256)
	if err != nil {
		return err
	}
	if err := write(manifestName, disk.Content(sealed)); err != nil {
		return err
	}
	return r.disk.SyncDir(dir)
}

// prune removes all but the newest checkpoints. They lose their names first: a checkpoint half removed is none.
func (r *Run) prune() error {
	steps, err := r.checkpoints()
	if err != nil {
		return err
	}
	if len(steps) <= keep {
		return nil
	}
	old := steps[keep:]
	for _, step := range old {
		if err := r.disk.Rename(r.checkpointPath(step), r.checkpointPath(step)+disk.TmpSuffix); err != nil {
			return err
		}
	}
	if err := r.disk.SyncDir(r.path(stateName)); err != nil {
		return err
	}
	for _, step := range old {
		if err := r.disk.RemoveAll(r.checkpointPath(step) + disk.TmpSuffix); err != nil {
			return err
		}
	}
	return nil
}

// setAside renames a damaged checkpoint, so that its step can be saved again and a person can still look at it.
func (r *Run) setAside(step uint64) error {
	path := r.checkpointPath(step)
	aside, err := r.vacant(path + damagedSuffix)
	if err != nil {
		return err
	}
	if err := r.disk.Rename(path, aside); err != nil {
		return err
	}
	return r.disk.SyncDir(r.path(stateName))
}

// vacant returns the first of the numbered paths that nothing has.
func (r *Run) vacant(path string) (string, error) {
	for n := 1; ; n++ {
		name := numbered(path, n)
		if _, err := r.disk.Lstat(name); errors.Is(err, fs.ErrNotExist) {
			return name, nil
		} else if err != nil {
			return "", err
		}
	}
}

// numbered returns path, path.2, path.3 ...
func numbered(path string, n int) string {
	if n == 1 {
		return path
	}
	return fmt.Sprintf("%s.%d", path, n)
}
