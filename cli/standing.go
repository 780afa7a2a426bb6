package cli

import (
	"encoding/json"
	"fmt"

	"github.com/gfnem/gfnem/cli/command"
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
func (a standing) print(c command.Console, result run.Result, asJSON bool) error {
	if !asJSON {
		err := result.Print(c.Out)
		for _, note := range a.notes {
			if err == nil {
				_, err = fmt.Fprintf(c.Out, "Note: %s.\n", note)
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
	return command.PrintJSON(c.Out, fields)
}
