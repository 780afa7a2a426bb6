package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gfnem/gfnem/internal/disk"
)

// The names in a checkpoint.
const (
	arraysName    = "arrays.safetensors"
	stateFileName = "state.json"
	manifestName  = "manifest.json"
)

// manifest says what a checkpoint must hold, and how long the journals were when it was saved.
type manifest struct {
	Step     uint64                 `json:"step"`
	Files    map[string]disk.Digest `json:"files"`
	Journals map[string]int64       `json:"journals"`
	SHA256   string                 `json:"sha256"` // of the manifest with this field empty
}

// readCheckpoint reads the checkpoint in a folder and verifies all of it.
func readCheckpoint(dir string) (s State, m manifest, err error) {
	path := filepath.Join(dir, manifestName)
	data, err := os.ReadFile(path)
	if err != nil {
		return s, m, err
	}
	if err := disk.Unseal(data, &m, &m.SHA256); err != nil {
		return s, m, fmt.Errorf("%s: %w", path, err)
	}
	content := make(map[string][]byte)
	for _, name := range []string{arraysName, stateFileName} {
		path := filepath.Join(dir, name)
		if content[name], err = os.ReadFile(path); err != nil {
			return s, m, err
		}
		if disk.DigestOf(content[name]) != m.Files[name] {
			return s, m, fmt.Errorf("%s: does not match the hash in the manifest", path)
		}
	}
	if err := json.Unmarshal(content[stateFileName], &s); err != nil {
		return s, m, fmt.Errorf("%s: %w", filepath.Join(dir, stateFileName), err)
	}
	if s.Step != m.Step || filepath.Base(dir) != checkpointName(m.Step) {
		return s, m, errors.New("its name, its state and its manifest disagree on the step")
	}
	if s.Arrays, err = ParseSafetensors(content[arraysName]); err != nil {
		return s, m, fmt.Errorf("%s: %w", filepath.Join(dir, arraysName), err)
	}
	return s, m, nil
}
