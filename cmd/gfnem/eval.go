package main

import (
	"fmt"
	"io"
	"slices"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/run"
)

type evalCmd struct {
	Dir string `arg:"" name:"run" help:"Folder of the run."`
	backendFlag
	NLL     bool `name:"nll" help:"Estimate the likelihood of a vae by importance sampling, which takes long."`
	Samples int  `help:"With --nll, latents per image (default: the run's eval.samples)."`
	Images  int  `help:"With --nll, the first so many test images (default: the run's eval.images)."`
	Fit     int  `help:"With --nll, updates of the posterior that is fitted to a VQ-VAE (default: the run's eval.fit_updates)."`
	JSON    bool `help:"Print the result as one JSON object on standard output."`
}

// Help implements kong's detailed help.
func (evalCmd) Help() string {
	return `Examples:
  gfnem eval runs/paper
  gfnem eval runs/paper --json
  gfnem eval runs/digits --nll               a vae's likelihood; a GFlowNet posterior is fitted to a VQ-VAE's decoder first

Measures the newest checkpoint, also of a run that is not finished or still running. The folder is not changed.

A grammar by method gfn is measured by exact inference, and its GFlowNet beside that: F1 of one draw (gfn) and of the best spans of 32
(gfn-mbr), a bound on log p(x), the flow estimate, which is no bound, and the divergence to the exact posterior.`
}

// Run evaluates a run.
func (c evalCmd) Run(io console) error {
	r, err := run.Read(c.Dir)
	if err != nil {
		return err
	}
	changes, err := c.changes(r)
	if err != nil {
		return err
	}
	s, err := c.newest(r, io, changes...)
	if err != nil {
		return err
	}
	defer s.Close()
	watch(s, io)
	result, err := s.Evaluate()
	if err != nil {
		return err
	}
	if c.JSON {
		return printResult(io, r, s, result)
	}
	return result.Print(io.out)
}

// changes are the settings of a run that flags change: whether and how a likelihood is estimated.
func (c evalCmd) changes(r *run.Run) ([]string, error) {
	if c.Samples < 0 || c.Images < 0 || c.Fit < 0 {
		return nil, badinput.Errorf("--samples, --images and --fit cannot be negative")
	}
	if !c.NLL && (c.Samples > 0 || c.Images > 0 || c.Fit > 0) {
		return nil, badinput.Errorf("--samples, --images and --fit say how --nll estimates: give that, too")
	}
	task, err := findTask(r.Info().Task)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(keysOf(task), "eval.nll") {
		if c.NLL {
			return nil, badinput.Errorf("--nll: the task %s has no likelihood to estimate", task.Name())
		}
		return nil, nil
	}
	out := []string{fmt.Sprintf("eval.nll=%v", c.NLL)}
	for _, f := range []struct {
		key   string
		value int
	}{{"eval.samples", c.Samples}, {"eval.images", c.Images}, {"eval.fit_updates", c.Fit}} {
		if f.value > 0 {
			out = append(out, fmt.Sprintf("%s=%d", f.key, f.value))
		}
	}
	return out, nil
}

// watch lets a session show the progress of its evaluation, if it can.
func watch(s run.Session, c console) {
	if w, ok := s.(interface{ Watch(io.Writer) }); ok {
		w.Watch(c.err)
	}
}

// newest prepares a session at the newest checkpoint of a run, with some settings changed.
func (e backendFlag) newest(r *run.Run, io console, changes ...string) (run.Session, error) {
	s, err := e.session(r, changes...)
	if err != nil {
		return nil, err
	}
	state, warnings, err := r.Load()
	for _, w := range warnings {
		fmt.Fprintln(io.err, "warning:", w)
	}
	if err == nil {
		if err = s.Restore(state); err != nil {
			err = fmt.Errorf("restore run %s at step %d: %w", r.Dir(), state.Step, err)
		}
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}
