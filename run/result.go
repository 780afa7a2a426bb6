package run

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/internal/disk"
)

const (
	resultName   = "result.json"
	hashedFormat = 2 // 1 had no hash
	resultFormat = 3 // of a training that pauses
)

// cellResult is the file of a finished run, of a grid or not.
type cellResult struct {
	Format int     `json:"format"`
	Until  float64 `json:"until,omitempty"` // see Cell
	Step   uint64  `json:"step"`            // of the state that was measured
	State  string  `json:"state_sha256"`    // its hash
	// Config is the hash of the configuration that the run was begun with, which is the same whoever computes it; early
	// versions wrote none.
	Config string          `json:"config,omitempty"`
	Result json.RawMessage `json:"result"`
	SHA256 string          `json:"sha256"` // of the file with this field empty
}

// result returns that of a cell that is finished so far, nil if there is none that can be trusted. It warns of what is
// wrong: what the run lost, and a result that is damaged or of another state than the newest checkpoint's.
func (r *Run) result(until float64, warn func(line string)) (json.RawMessage, error) {
	s, lost, err := r.Load()
	if err != nil && !errors.Is(err, ErrNoCheckpoint) {
		return nil, err
	}
	lost = append(lost, r.JournalNotes()...)
	for _, line := range lost {
		warn(fmt.Sprintf("%s: %s", r.dir, line))
	}
	c, err := r.readResult()
	var content *badinput.Error
	switch {
	case errors.As(err, &content):
		warn(fmt.Sprintf("%v: it is measured again", err))
		return nil, nil
	case err != nil || c == nil || len(lost) > 0 || until == 0 && c.Until > 0 || c.Until > 0 && c.Until < until:
		return nil, err
	case until > 0 && (c.Until == 0 || c.Until > until):
		return nil, badinput.Errorf("%s has gone beyond %g of its steps, where it is to be measured: choose another --out", r.dir,
			until)
	case c.State != StateHash(s):
		warn(fmt.Sprintf("%s is not of the newest checkpoint: it is measured again", r.path(resultName)))
		return nil, nil
	}
	return c.Result, nil
}

// writeResult writes the result of a finished run, of its newest checkpoint, and returns it as JSON.
func (r *Run) writeResult(result Result, until float64) (json.RawMessage, error) {
	data, err := json.Marshal(result)
	if err != nil {
		return nil, err
	}
	s, _, err := r.Load()
	if err != nil {
		return nil, err
	}
	c := cellResult{Format: resultFormat, Until: until, Step: s.Step, State: StateHash(s), Config: r.info.Config, Result: data}
	if until == 0 {
		c.Format = hashedFormat
	}
	sealed, err := disk.Seal(&c, &c.SHA256)
	if err != nil {
		return nil, err
	}
	return data, disk.ReplaceFile(r.disk, r.path(resultName), disk.Content(sealed))
}

var errOtherRun = errors.New("belongs to another run")

// readResult reads the result of a finished run; nil if it has none. An error that is no badinput.Error is the system's.
func (r *Run) readResult() (*cellResult, error) {
	path := r.path(resultName)
	data, err := r.disk.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	var c cellResult
	err = disk.Unseal(data, &c, &c.SHA256)
	switch {
	case c.Format > resultFormat && disk.Intact(data):
		err = ErrNewer
	case err != nil && c.Format < hashedFormat && json.Valid(data):
		err = errors.New("it has no hash, like those of earlier versions of the program")
	case err == nil && c.Config != "" && r.info.Config != "" && c.Config != r.info.Config:
		err = errOtherRun
	}
	if err != nil {
		return nil, badinput.Errorf("%s: %w", path, err)
	}
	var compact bytes.Buffer
	err = json.Compact(&compact, c.Result)
	c.Result = compact.Bytes()
	return &c, err
}
