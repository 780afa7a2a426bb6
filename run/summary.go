package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/gofrs/flock"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/internal/disk"
)

const (
	summaryName   = "summary.json"
	summaryFormat = 1
)

// Summary is what a list of runs shows: summary.json, written beside each checkpoint that Drive saves. Nothing that must
// be reproducible depends on it, and a run without it, or with a damaged one, loses nothing else.
type Summary struct {
	Format   int       `json:"format"`
	Run      string    `json:"run,omitempty"` // the hash of run.json; early versions wrote none
	Step     uint64    `json:"step"`          // of the checkpoint
	Total    uint64    `json:"total"`         // expected in all; 0 means that nobody has said
	Finished bool      `json:"finished"`      // the job was done
	Seconds  float64   `json:"seconds"`       // trained so far, in all processes
	Updated  time.Time `json:"updated"`
	Headline *Headline `json:"headline,omitempty"` // of that checkpoint; nil if it was not measured
	SHA256   string    `json:"sha256"`
}

// Headline is the one figure by which runs of a task are told apart.
type Headline struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	// Low says that less is better.
	Low bool `json:"low,omitempty"`
}

// Headliner is a Result with such a figure; ok is false if this one has none.
type Headliner interface {
	Result
	Headline() (h Headline, ok bool)
}

// Summary returns what was written last; nil if nothing was. A damaged one is an error of badinput.
func (r *Run) Summary() (*Summary, error) {
	data, err := r.disk.ReadFile(r.path(summaryName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("read summary: %w", err)
	}
	var s Summary
	err = disk.Unseal(data, &s, &s.SHA256)
	switch {
	case s.Format > summaryFormat && disk.Intact(data):
		err = ErrNewer
	case err == nil && s.Run != "" && r.seal != "" && s.Run != r.seal:
		err = errOtherRun
	}
	if err != nil {
		return nil, badinput.Errorf("%s: %w", r.path(summaryName), err)
	}
	return &s, nil
}

// summarize writes the summary; an older one that is damaged is replaced.
func (r *Run) summarize(change func(*Summary)) error {
	s, err := r.Summary()
	if _, ok := errors.AsType[*badinput.Error](err); err != nil && !ok {
		return err
	}
	if s == nil {
		s = &Summary{}
	}
	change(s)
	s.Format, s.Run, s.Updated = summaryFormat, r.seal, now().UTC().Truncate(time.Second)
	sealed, err := disk.Seal(s, &s.SHA256)
	if err == nil {
		err = r.checkOwner()
	}
	if err == nil {
		err = disk.ReplaceFile(r.disk, r.path(summaryName), disk.Content(sealed))
	}
	if err != nil {
		return fmt.Errorf("write summary: %w", err)
	}
	return nil
}

// Trained returns how long the run has been trained, in all processes; 0 if nothing says so, or not as it was written.
func (r *Run) Trained() (time.Duration, error) {
	s, err := r.Summary()
	if _, ok := errors.AsType[*badinput.Error](err); ok || err == nil && s == nil {
		return 0, nil
	} else if err != nil {
		return 0, err
	}
	return time.Duration(s.Seconds * float64(time.Second)), nil
}

// clock returns how long the job has been trained, from now on and in earlier processes.
func (r *Run) clock() func() time.Duration {
	before, _ := r.Trained() // it is only told
	begin := time.Now()
	return func() time.Duration { return before + time.Since(begin) }
}

// Outcome returns the result that was written last, as JSON, and the step of the state that it is of; nil if there is
// none.
func (r *Run) Outcome() (result json.RawMessage, step uint64, err error) {
	c, err := r.readResult()
	if err != nil || c == nil {
		return nil, 0, err
	}
	return c.Result, c.Step, nil
}

// Saved returns the steps that have a checkpoint, damaged or not, newest first.
func (r *Run) Saved() ([]uint64, error) { return r.checkpoints() }

// Shown returns the step of the state that the report in the folder is of; false if there is no report.
func (r *Run) Shown() (step uint64, ok bool, err error) {
	o, err := readOutputs(r.disk, r.dir)
	if err != nil || o == nil {
		return 0, false, err
	}
	return o.Step, true, nil
}

// InUse reports whether a process is writing the run.
func (r *Run) InUse() (bool, error) {
	path := r.path(lockedName)
	if err := disk.CheckFile(r.disk, path); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	// A lock that readers share, for a moment: see the attempts of acquire.
	lock := flock.New(path, readOnly)
	free, err := lock.TryRLock()
	if free {
		err = release(lock)
	}
	return !free && err == nil, err
}
