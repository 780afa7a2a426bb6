package run

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/config"
)

// TrainOptions say what a job does not know of itself. All may be left out.
type TrainOptions struct {
	Task    string        // its name; "" means "job"
	Backend string        // that computes, see backend.Describe
	Command []string      // nil means os.Args
	Every   time.Duration // between checkpoints; 0 means ten seconds
	Log     io.Writer     // for warnings and progress; nil means none
}

// Train makes a whole run of a job in a folder: it creates the folder, or continues the run that is there, logs, saves every
// so often and when SIGINT or SIGTERM comes, which Train then returns as ErrInterrupted, and at the end evaluates a Session
// and writes its report. The same call again goes on where an interrupted or killed one was, and ends with the same bits.
//
// Configuration is what the job was made with, a pointer as for config.Resolve, or nil if there is none; a folder with a run
// of another one is refused. The result is nil if the job is no Session. If the error is ErrBusy the job must not be closed.
func Train(ctx context.Context, dir string, configuration any, job Job, o TrainOptions) (_ Result, err error) {
	ctx, stop := WithSignals(ctx)
	defer stop()
	r, err := openOrCreate(dir, configuration, job, o)
	if err != nil {
		return nil, err
	}
	defer func() { err = cmp.Or(err, r.Close()) }()
	if err := r.Drive(ctx, job, cmp.Or(o.Every, 10*time.Second), o.Log); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("%w after training: what is left is to evaluate it", ErrInterrupted)
	}
	stop() // nothing more has to be saved
	if s, ok := job.(Session); ok {
		return r.Conclude(s)
	}
	return nil, nil
}

func openOrCreate(dir string, configuration any, job Job, o TrainOptions) (*Run, error) {
	about := Options{Task: cmp.Or(o.Task, "job"), Backend: o.Backend, Command: o.Command}
	if about.Command == nil {
		about.Command = os.Args
	}
	if configuration != nil {
		text, err := config.Encode(configuration)
		if err != nil {
			return nil, err
		}
		about.Config = text
	}
	if s, ok := job.(Session); ok {
		about.Seed, about.Data = s.Seed(), s.Data()
		var err error
		if about.Files, err = Keeps(s); err != nil {
			return nil, err
		}
	}
	r, err := Open(dir)
	if errors.Is(err, ErrNotRun) {
		return Create(dir, about)
	} else if err != nil {
		return nil, err
	}
	var other string
	switch info := r.Info(); {
	case info.Task != about.Task:
		other = fmt.Sprintf("is a run of the task %s", info.Task)
	case r.Config() != about.Config:
		other = "was made with other settings"
	case !maps.Equal(info.Data, about.Data):
		other = "was made with other data"
	default:
		return r, nil
	}
	return nil, cmp.Or(r.Close(), badinput.Errorf("%s %s: choose another folder", dir, other))
}

// Conclude evaluates a run and writes what belongs in its folder: parameters, report and figures; of a finished one its
// result, too.
func (r *Run) Conclude(s Session) (Result, error) {
	result, err := s.Evaluate()
	if err != nil {
		return nil, err
	}
	parameters, err := s.Parameters()
	if err != nil {
		return nil, err
	}
	if err := r.headline(result); err != nil {
		return nil, err
	}
	if err := r.Publish(func(dir string) error {
		if err := Export(filepath.Join(dir, "parameters.safetensors"), parameters); err != nil {
			return err
		}
		return s.Report(r, dir, result)
	}); err != nil || !s.Done() {
		return result, err
	}
	_, err = r.writeResult(result, 0)
	if _, ok := errors.AsType[*json.UnsupportedValueError](err); ok { // it has a NaN, and is shown without a file
		err = nil
	}
	return result, err
}

// headline puts the figure of a result into the summary.
func (r *Run) headline(result Result) error {
	h, ok := Headline{}, false
	if with, is := result.(Headliner); is {
		h, ok = with.Headline()
	}
	if ok = ok && !math.IsNaN(h.Value) && !math.IsInf(h.Value, 0); !ok {
		return nil
	}
	return r.summarize(func(s *Summary) { s.Headline = &h })
}
