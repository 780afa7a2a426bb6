package run

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/internal/disk"
	"github.com/gfnem/gfnem/internal/self"
)

// The names in a run's folder.
const (
	configName  = "run.toml"
	infoName    = "run.json"
	metricsName = "metrics.jsonl"
	eventsName  = "events.out.tfevents.gfnem"
	stateName   = "state"
	lockName    = "lock"
)

// now is the time for run.json and events alone: nothing that must be reproducible sees it.
var now = time.Now

// Run is the folder of one run. A Run from Create or Open holds the lock and may write; one from Read may not. It is
// not safe for concurrent use.
type Run struct {
	dir    string
	info   Info
	seal   string // the hash in run.json; empty if that has none
	config string
	// changes are those of the configuration; changing, that run.toml is still the one before the last of them.
	changes  []Change
	changing bool
	disk     disk.Disk

	lock            *flock.Flock // nil in a Run from Read
	metrics, events *journal     // nil until Create or Load opened them
	notes           []string     // of the last Load
	anew            bool         // the last Load found no checkpoint, but what was logged before one
}

// Create makes a new run. The folder must be missing or empty, or hold only what a Create that was killed left
// there. Until Create has returned the folder is no run; from then on it is one, without a checkpoint.
func Create(dir string, o Options) (*Run, error) {
	return create(disk.OS{}, dir, o)
}

func create(d disk.Disk, dir string, o Options) (_ *Run, err error) {
	if err := disk.MkdirAll(d, dir); err != nil {
		return nil, fmt.Errorf("create run: %w", err)
	}
	// Look before locking, to leave no file among somebody's files, and again once nobody else can write.
	if err := checkVacant(dir, o.Files); err != nil {
		return nil, err
	}
	name := lockedName
	if name == infoName {
		name += disk.TmpSuffix // it becomes run.json at the end
	}
	if err := touch(d, filepath.Join(dir, name)); err != nil {
		return nil, fmt.Errorf("create run: %w", err)
	}
	lock, err := acquire(d, dir, name)
	if err != nil {
		return nil, fmt.Errorf("create run: %w", err)
	}
	build, _ := debug.ReadBuildInfo()
	r := &Run{dir: dir, info: newInfo(o, now(), build), config: o.Config, disk: d, lock: lock}
	if err := checkVacant(dir, o.Files); err != nil {
		return nil, errors.Join(err, r.disk.RemoveAll(r.path(infoName)+disk.TmpSuffix), r.Close())
	}
	if err := r.populate(o.Files); err != nil {
		return nil, errors.Join(fmt.Errorf("create run %s: %w", dir, err), r.Close())
	}
	return r, nil
}

// touch makes an empty file, if there is none.
func touch(d disk.Disk, path string) error {
	f, err := d.Open(path)
	if err != nil {
		return err
	}
	return f.Close()
}

// populate writes run.json last: its presence makes the folder a run.
func (r *Run) populate(files map[string][]byte) error {
	if err := writeHolder(r.disk, r.dir); err != nil {
		return err
	}
	if err := r.keep(files); err != nil {
		return err
	}
	if err := r.disk.Mkdir(r.path(stateName)); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := r.openJournals(nil); err != nil {
		return err
	}
	if err := disk.ReplaceFile(r.disk, r.path(configName), disk.Content([]byte(r.config))); err != nil {
		return err
	}
	f := infoFile{Info: r.info}
	sealed, err := disk.Seal(&f, &f.SHA256)
	if err != nil {
		return err
	}
	r.seal = f.SHA256
	return disk.ReplaceFile(r.disk, r.path(infoName), disk.Content(sealed))
}

// checkVacant returns an error unless a new run, which keeps some files, may be made in the folder.
func checkVacant(dir string, files map[string][]byte) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("create run: %w", err)
	}
	if slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == infoName }) {
		return badinput.Errorf("%s already holds a run: continue it with %s, or choose another --out", dir,
			self.Advice("resume %s", dir))
	}
	for _, e := range entries {
		ok, err := isDebris(dir, e, files)
		if err != nil {
			return fmt.Errorf("create run: %w", err)
		}
		if !ok {
			return badinput.Errorf("%s is not empty (it has %s) and is no run: choose another --out", dir, e.Name())
		}
	}
	return nil
}

// isDebris reports whether an interrupted Create may have left the entry. It has neither logged nor saved: anything
// of value is no debris.
func isDebris(dir string, e fs.DirEntry, files map[string][]byte) (bool, error) {
	switch e.Name() {
	case dataName, dataName + disk.TmpSuffix:
		return e.IsDir() && isKept(filepath.Join(dir, e.Name()), files, e.Name() == dataName), nil
	case lockName, configName, configName + disk.TmpSuffix, infoName + disk.TmpSuffix:
		return e.Type().IsRegular(), nil
	case metricsName, eventsName:
		info, err := e.Info()
		return err == nil && info.Mode().IsRegular() && info.Size() == 0, err
	case stateName:
		if !e.IsDir() {
			return false, nil
		}
		inside, err := os.ReadDir(filepath.Join(dir, stateName))
		return len(inside) == 0, err
	}
	return false, nil
}

// Open opens a run to continue it. Load must come before Log and Save.
func Open(dir string) (*Run, error) {
	return open(disk.OS{}, dir)
}

func open(d disk.Disk, dir string) (*Run, error) {
	if _, err := d.Lstat(filepath.Join(dir, infoName)); errors.Is(err, fs.ErrNotExist) {
		return nil, notRun(dir)
	} else if err != nil {
		return nil, fmt.Errorf("open run: %w", err)
	}
	if lockedName == lockName {
		if err := touch(d, filepath.Join(dir, lockName)); err != nil {
			return nil, fmt.Errorf("open run: %w", err)
		}
	}
	lock, err := acquire(d, dir, lockedName)
	if err != nil {
		return nil, fmt.Errorf("open run: %w", err)
	}
	r, err := read(d, dir)
	if err == nil && r.changing {
		err = r.copyConfig()
	}
	if err != nil {
		return nil, errors.Join(err, release(lock))
	}
	r.lock = lock
	if err := errors.Join(writeHolder(d, dir), r.sweep()); err != nil {
		return nil, errors.Join(fmt.Errorf("open run %s: %w", dir, err), r.Close())
	}
	return r, nil
}

// sweep removes the checkpoints that a killed process was writing or removing.
func (r *Run) sweep() error {
	entries, err := r.disk.ReadDir(r.path(stateName))
	if errors.Is(err, fs.ErrNotExist) { // Load says so
		return nil
	} else if err != nil {
		return err
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), disk.TmpSuffix) {
			if err := r.disk.RemoveAll(filepath.Join(r.path(stateName), e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// Read opens a run to look at it, even while another process writes it. Its Load changes nothing.
func Read(dir string) (*Run, error) { return read(disk.OS{}, dir) }

func read(d disk.Disk, dir string) (*Run, error) {
	info, err := readInfo(d, dir)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, configName)
	config, err := d.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, badinput.Errorf("%s is missing: put it back from a copy, or start again in another folder", path)
	} else if err != nil {
		return nil, fmt.Errorf("read configuration of the run: %w", err)
	}
	r := &Run{dir: dir, info: info.Info, seal: info.SHA256, disk: d}
	current, err := r.settle(string(config), info.Config)
	if err != nil {
		return nil, err
	}
	r.changing = !current
	return r, nil
}

// Dir returns the run's folder.
func (r *Run) Dir() string { return r.dir }

// Info returns where the run came from.
func (r *Run) Info() Info { return r.info }

// Config returns the configuration of the run, in TOML: that with which it was created or, if it was changed since, resumed.
func (r *Run) Config() string { return r.config }

// CheckData returns an error unless a session has the data, given by their hashes, that the run was made with.
func (r *Run) CheckData(data map[string]string) error {
	if maps.Equal(data, r.info.Data) {
		return nil
	}
	return badinput.Errorf("%s was made with other data than its configuration gives now: was run.toml edited?", r.dir)
}

func (r *Run) path(name string) string { return filepath.Join(r.dir, name) }

// writable returns an error unless the run may log and save.
func (r *Run) writable() error {
	switch {
	case r.lock == nil:
		return errors.New("the run is open for reading only, or closed")
	case r.metrics == nil || r.events == nil:
		return errors.New("Load must come first")
	}
	return nil
}

// openJournals opens both journals, cut down to what is kept of them, and makes their names durable.
func (r *Run) openJournals(kept map[string][]byte) (err error) {
	if r.metrics, err = openJournal(r.disk, r.path(metricsName), kept[metricsName]); err != nil {
		return err
	}
	if r.events, err = openJournal(r.disk, r.path(eventsName), kept[eventsName]); err != nil {
		return err
	}
	return r.disk.SyncDir(r.dir)
}

func (r *Run) closeJournals() error {
	var errs []error
	for _, j := range []**journal{&r.metrics, &r.events} {
		if *j != nil {
			errs = append(errs, (*j).close())
			*j = nil
		}
	}
	return errors.Join(errs...)
}

// Close makes what was logged durable and releases the lock. It saves no checkpoint. Closing twice is fine.
func (r *Run) Close() error {
	err := r.closeJournals()
	if r.lock != nil {
		err = errors.Join(err, release(r.lock))
		r.lock = nil
	}
	if err != nil {
		return fmt.Errorf("close run %s: %w", r.dir, err)
	}
	return nil
}
