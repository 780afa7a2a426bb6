package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/gfnem/gfnem/internal/disk"
)

// The names in a checkpoint.
const (
	arraysName    = "arrays.safetensors"
	stateFileName = "state.json"
	manifestName  = "manifest.json"
)

// manifest says what a checkpoint must hold, and how the journals began when it was saved.
type manifest struct {
	Format   int                    `json:"format"`
	Run      string                 `json:"run,omitempty"` // the hash in run.json; empty if that has none
	Step     uint64                 `json:"step"`
	Files    map[string]disk.Digest `json:"files"`
	Journals map[string]disk.Digest `json:"journals"` // an empty hash fits any content
	SHA256   string                 `json:"sha256"`   // of the manifest with this field empty
}

// damage is an error about content that contradicts a hash or a manifest. Every other error of reading says nothing about
// what is stored.
type damage struct{ error }

func (d damage) Unwrap() error { return d.error }

func isDamage(err error) bool {
	_, ok := errors.AsType[damage](err)
	return ok
}

// readCheckpoint reads the checkpoint of a step and verifies all of it. Its errors are damage; or of bad input, if a
// newer program wrote it or a name in it is a link; or else the disk's. If there is no such folder, perhaps no longer,
// it is fs.ErrNotExist and no damage.
func (r *Run) readCheckpoint(step uint64) (s State, m manifest, err error) {
	dir := r.checkpointPath(step)
	if err := disk.CheckFolder(r.disk, dir); err != nil {
		return s, m, err
	}
	s, m, err = readFiles(r.disk, dir)
	if errors.Is(err, fs.ErrNotExist) {
		if _, gone := r.disk.Lstat(dir); gone != nil {
			return s, m, gone
		}
		err = damage{err}
	}
	if err == nil && m.Run != "" && r.seal != "" && m.Run != r.seal {
		err = damage{fmt.Errorf("%s and %s are of different runs", dir, r.path(infoName))}
	}
	return s, m, err
}

func readFiles(d disk.Reader, dir string) (s State, m manifest, err error) {
	path := filepath.Join(dir, manifestName)
	data, err := d.ReadFile(path)
	if err != nil {
		return s, m, err
	}
	if m, err = parseManifest(path, data); err != nil {
		return s, m, err
	}
	content := make(map[string][]byte)
	for _, name := range []string{arraysName, stateFileName} {
		path := filepath.Join(dir, name)
		if content[name], err = d.ReadFile(path); err != nil {
			return s, m, err
		}
		if disk.DigestOf(content[name]) != m.Files[name] {
			return s, m, damage{fmt.Errorf("%s: does not match the hash in the manifest", path)}
		}
	}
	if err := json.Unmarshal(content[stateFileName], &s); err != nil {
		return s, m, damage{fmt.Errorf("%s: %w", filepath.Join(dir, stateFileName), err)}
	}
	if s.Step != m.Step || filepath.Base(dir) != checkpointName(m.Step) {
		return s, m, damage{errors.New("its name, its state and its manifest disagree on the step")}
	}
	if s.Arrays, err = ParseSafetensors(content[arraysName]); err != nil {
		return s, m, damage{fmt.Errorf("%s: %w", filepath.Join(dir, arraysName), err)}
	}
	return s, m, nil
}
