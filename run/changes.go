package run

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/internal/disk"
)

const (
	changesName   = "changes.json"
	changesFormat = 1
)

// Change says how the configuration of a run was changed when it was resumed, and by which program. A run is what its
// command, its configuration and its changes made of it, each at its step: the same ones give the same bits.
type Change struct {
	Step     uint64    `json:"step"` // of the checkpoint from which the run went on
	Set      []string  `json:"set"`  // keys with their new values
	Command  []string  `json:"command"`
	Time     time.Time `json:"time"`
	Version  string    `json:"version"`
	Revision string    `json:"revision"`
	Modified bool      `json:"modified"`
	Go       string    `json:"go"`
	Before   string    `json:"config_before"` // SHA-256 of the configuration
	After    string    `json:"config_after"`
}

// changesFile is changes.json. Its configuration is the one that counts; run.toml is a copy, written after it.
type changesFile struct {
	Format  int      `json:"format"`
	Run     string   `json:"run"` // the hash of run.json
	Changes []Change `json:"changes"`
	Config  string   `json:"config"`
	SHA256  string   `json:"sha256"`
}

// Changes returns how the configuration was changed, first things first.
func (r *Run) Changes() []Change { return r.changes }

// Changed is what the caller knows of a Change: how far the run is by the new configuration, and what was asked for.
type Changed struct {
	Step, Total  uint64
	Done         bool
	Set, Command []string
}

// Change gives a run that may write, and has been loaded, another configuration from its newest checkpoint on, and records
// that.
func (r *Run) Change(config string, c Changed) error {
	err := r.writable()
	if err == nil {
		err = r.checkOwner()
	}
	if err == nil {
		err = r.change(config, c.Step, c.Set, c.Command)
	}
	if err == nil {
		err = r.summarize(func(s *Summary) { s.Step, s.Total, s.Finished = c.Step, c.Total, c.Done })
	}
	if err != nil {
		return fmt.Errorf("change the configuration of %s: %w", r.dir, err)
	}
	return nil
}

func (r *Run) change(config string, step uint64, set, command []string) error {
	program := Program()
	c := Change{
		Step: step, Set: set, Command: command, Time: now().UTC().Truncate(time.Second), Version: program.Version,
		Revision: program.Revision, Modified: program.Modified, Go: program.Go,
		Before: configSum(r.config), After: configSum(config),
	}
	f := changesFile{Format: changesFormat, Run: r.seal, Changes: append(r.changes[:len(r.changes):len(r.changes)], c), Config: config}
	sealed, err := disk.Seal(&f, &f.SHA256)
	if err != nil {
		return err
	}
	if err := disk.ReplaceFile(r.disk, r.path(changesName), disk.Content(sealed)); err != nil {
		return err
	}
	r.config, r.changes = config, f.Changes
	return r.copyConfig()
}

// copyConfig writes run.toml.
func (r *Run) copyConfig() error {
	return disk.ReplaceFile(r.disk, r.path(configName), disk.Content([]byte(r.config)))
}

// readChanges reads changes.json; nil if the configuration was never changed.
func readChanges(d disk.Reader, path, seal string) (*changesFile, error) {
	data, err := d.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	var f changesFile
	err = disk.Unseal(data, &f, &f.SHA256)
	switch {
	case f.Format > changesFormat && disk.Intact(data):
		err = ErrNewer
	case err == nil && (len(f.Changes) == 0 || f.Changes[len(f.Changes)-1].After != configSum(f.Config)):
		err = errors.New("its configuration is not that of its last change")
	case err == nil && f.Run != seal:
		err = errors.New("it is of another run")
	}
	if err != nil {
		return nil, badinput.Errorf("%s: %w", path, err)
	}
	return &f, nil
}

// settle decides which configuration counts, given what run.toml holds, and reports whether run.toml is that; it is an older
// one if the program was killed as it changed it.
func (r *Run) settle(text string, created string) (current bool, err error) {
	f, err := readChanges(r.disk, r.path(changesName), r.seal)
	if err != nil {
		return false, err
	}
	sum := configSum(text)
	if f == nil {
		r.config, r.changes = text, nil
		current = sum == created
	} else {
		r.config, r.changes = f.Config, f.Changes
		last := f.Changes[len(f.Changes)-1]
		if current = sum == last.After; sum == last.Before {
			return false, nil
		}
	}
	if !current {
		return false, badinput.Errorf(
			"%s and %s do not belong together: undo what was changed, or start a run of its own with --config",
			r.path(configName), r.path(infoName))
	}
	return true, nil
}

// String says a change in a line.
func (c Change) String() string {
	return fmt.Sprintf("changed   from step %d on: %s (%s)", c.Step, strings.Join(c.Set, ", "), strings.Join(c.Command, " "))
}
