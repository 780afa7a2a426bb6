package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/run"
)

// standing says which state of a run a result is of.
type standing struct {
	Out      string `json:"out"`
	Hash     string `json:"state_sha256"`
	Step     uint64 `json:"step"`
	Total    uint64 `json:"total"`
	Finished bool   `json:"finished"`
	// Fallback says why the state is not that of the newest checkpoint.
	Fallback []string `json:"fallback,omitempty"`
	notes    []string
}

// stand looks at a session before it is measured: to measure may take long, while the run goes on, and may train.
func stand(r *run.Run, s run.Session, fallback []string) (standing, error) {
	state, err := s.State()
	if err != nil {
		return standing{}, err
	}
	out := standing{Out: r.Dir(), Finished: s.Done(), Fallback: fallback}
	state.Step, out.Total = s.Progress()
	out.Step, out.Hash = state.Step, run.StateHash(state)
	if note := run.Unfinished(s); note != "" {
		out.notes = append(out.notes, note)
	}
	for _, line := range fallback {
		out.notes = append(out.notes, fmt.Sprintf("%s; this is an older one, of step %d", line, out.Step))
	}
	return out, nil
}

// print prints a result and the state that it is of, as text or as one JSON object.
func (a standing) print(c console, result run.Result, asJSON bool) error {
	if !asJSON {
		err := result.Print(c.out)
		for _, note := range a.notes {
			if err == nil {
				_, err = fmt.Fprintf(c.out, "Note: %s.\n", note)
			}
		}
		return err
	}
	fields := map[string]any{}
	for _, part := range []any{result, a} {
		data, err := json.Marshal(part)
		if err == nil {
			err = json.Unmarshal(data, &fields)
		}
		if err != nil {
			return err
		}
	}
	return printJSON(c.out, fields)
}

// fallbackFlag lets a command whose output cannot say which state it comes from use an older one.
type fallbackFlag struct {
	Fallback bool `help:"If the newest checkpoint is damaged, use an older one, with a warning."`
}

// fallbackHelp says when it is needed.
const fallbackHelp = `The newest checkpoint of the run is used. If it is damaged, that is an error: "gfnem resume" makes it again, to the bit;
with --fallback an older one is used, with a warning.`

// allow warns of checkpoints of a run that were skipped, or refuses to go on with an older one.
func (f fallbackFlag) allow(c console, r *run.Run, skipped []string) error {
	if len(skipped) > 0 && !f.Fallback {
		return badinput.Errorf("%s: %s: make it again with \"gfnem resume %[1]s\", or use an older one with --fallback",
			r.Dir(), strings.Join(skipped, "; "))
	}
	c.warn(skipped...)
	return nil
}

// warn prints warnings, each in a line.
func (c console) warn(lines ...string) {
	for _, line := range lines {
		fmt.Fprintln(c.err, "warning:", line)
	}
}
