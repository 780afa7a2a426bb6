package run

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// The names in a checkpoint.
const (
	arraysName    = "arrays.safetensors"
	stateFileName = "state.json"
	manifestName  = "manifest.json"
)

// manifest says what a checkpoint must hold, and how long the journals were when it was saved.
type manifest struct {
	Step     uint64            `json:"step"`
	Files    map[string]digest `json:"files"`
	Journals map[string]int64  `json:"journals"`
	SHA256   string            `json:"sha256"` // of the manifest with this field empty
}

// seal encodes a manifest with its own hash. There is one encoding of each manifest, so that a sealed one is intact
// if and only if decoding and sealing it again gives the same bytes.
func (m manifest) seal() ([]byte, error) {
	m.SHA256 = ""
	open, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	m.SHA256 = digestOf(open).SHA256
	sealed, err := json.MarshalIndent(m, "", "  ")
	return append(sealed, '\n'), err
}

// readCheckpoint reads the checkpoint in a folder and verifies all of it.
func readCheckpoint(dir string) (s State, m manifest, err error) {
	path := filepath.Join(dir, manifestName)
	data, err := os.ReadFile(path)
	if err != nil {
		return s, m, err
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return s, m, fmt.Errorf("%s: %w", path, err)
	}
	if sealed, err := m.seal(); err != nil || !bytes.Equal(sealed, data) {
		return s, m, fmt.Errorf("%s: does not match its own hash", path)
	}
	content := make(map[string][]byte)
	for _, name := range []string{arraysName, stateFileName} {
		path := filepath.Join(dir, name)
		if content[name], err = os.ReadFile(path); err != nil {
			return s, m, err
		}
		if digestOf(content[name]) != m.Files[name] {
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
