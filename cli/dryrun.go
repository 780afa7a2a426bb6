package cli

import (
	"fmt"
	"slices"
	"time"

	"github.com/gfnem/gfnem/cli/command"
	"github.com/gfnem/gfnem/internal/memory"
	"github.com/gfnem/gfnem/report"
	"github.com/gfnem/gfnem/run"
)

// Steps are made for so long to see how long all take, and where they are slow for longer, until there are some.
const (
	tryFor   = 5 * time.Second
	tryLong  = 30 * time.Second
	trySteps = 60
)

// estimate is what a few steps say of a training.
type estimate struct {
	Config string `json:"config"` // in TOML
	Steps  uint64 `json:"steps"`  // expected in all
	Tried  int    `json:"steps_tried"`
	// Seconds are what all of them take: at least, if no program had to be compiled any more, and at most, if compiling
	// went on like this. Both are 0 if nothing is left to do.
	AtLeast float64 `json:"seconds_at_least"`
	AtMost  float64 `json:"seconds_at_most"`
	Memory  float64 `json:"memory_bytes"`
	Room    float64 `json:"memory_room_bytes,omitempty"` // that may be taken; 0 if there is no limit
	phase   string
	of      string
}

// try makes a few steps of a session, which is lost, and says what all of them will take: at most as the later half of them,
// since programs are compiled in the earlier ones, and at least as the quickest quarter.
func try(s run.Session, text string) (e estimate, err error) {
	e.Config = text
	_, e.Steps = s.Progress()
	var took []time.Duration
	begin := time.Now()
	enough := func() bool {
		spent := time.Since(begin)
		return s.Done() || e.Tried >= 2 && (spent > tryLong || spent > tryFor && e.Tried >= trySteps)
	}
	for made := uint64(0); !enough(); e.Tried++ {
		start := time.Now()
		tick, err := s.Step()
		if err != nil {
			return e, err
		}
		if e.phase != "" && tick.Phase != e.phase {
			break
		}
		e.phase, e.Steps = tick.Phase, max(tick.Total, e.Steps)
		took = append(took, time.Since(start)/time.Duration(max(tick.Step-made, 1)))
		made = tick.Step
		e.Memory = max(e.Memory, memory.Taken())
	}
	e.Memory = max(e.Memory, memory.Taken())
	e.Room, e.of, _ = memory.Room()
	e.AtMost = mean(took[len(took)/2:]) * float64(e.Steps)
	if s.Done() { // these were all steps
		e.AtMost = mean(took) * float64(e.Steps)
	}
	slices.Sort(took)
	e.AtLeast = min(mean(took[:(len(took)+3)/4])*float64(e.Steps), e.AtMost)
	return e, nil
}

// mean is that of durations in seconds, 0 of none.
func mean(all []time.Duration) float64 {
	var sum time.Duration
	for _, d := range all {
		sum += d
	}
	return sum.Seconds() / float64(max(len(all), 1))
}

// print prints the configuration, which can be given back as a file, with the estimates as comments.
func (e estimate) print(c command.Console, asJSON bool) error {
	if asJSON {
		return command.PrintJSON(c.Out, e)
	}
	took := "nothing is left to do"
	if e.AtMost > 0 {
		said := func(seconds float64) string { return report.Duration(time.Duration(seconds * float64(time.Second))) }
		took = "about " + said(e.AtMost)
		if e.AtLeast < 0.8*e.AtMost {
			took = said(e.AtLeast) + " to " + said(e.AtMost)
		}
		took += fmt.Sprintf(" for %d steps, as the first %d of them went", e.Steps, e.Tried)
		if e.phase != "" {
			took += fmt.Sprintf(" (phase %s)", e.phase)
		}
		took += "; what is measured at the end comes after that"
	}
	room := ""
	if e.Room > 0 {
		room = fmt.Sprintf(" of %s that %s leaves", memory.Size(e.Room), e.of)
	}
	_, err := fmt.Fprintf(c.Out, "# Nothing is written: this is the configuration that would be trained.\n# time: %s\n# memory: %s%s so far\n\n%s",
		took, memory.Size(e.Memory), room, e.Config)
	return err
}
