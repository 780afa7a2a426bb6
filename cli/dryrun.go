package cli

import (
	"fmt"
	"time"

	"github.com/gfnem/gfnem/cli/command"
	"github.com/gfnem/gfnem/internal/memory"
	"github.com/gfnem/gfnem/report"
	"github.com/gfnem/gfnem/run"
)

// tryFor is how long steps are made to see how long all take.
const tryFor = 5 * time.Second

// estimate is what a few steps say of a training.
type estimate struct {
	Config  string  `json:"config"` // in TOML
	Steps   uint64  `json:"steps"`  // expected in all
	Tried   int     `json:"steps_tried"`
	Seconds float64 `json:"seconds"` // that all of them take, about; 0 if not known
	Memory  float64 `json:"memory_bytes"`
	Room    float64 `json:"memory_room_bytes,omitempty"` // that may be taken; 0 if there is no limit
	phase   string
	of      string
}

// try makes a few steps of a session, which is lost, and says what all of them will take: as the later half of them took,
// since programs are compiled in the earlier ones.
func try(s run.Session, text string, atMost time.Duration) (e estimate, err error) {
	e.Config = text
	_, e.Steps = s.Progress()
	var took []time.Duration
	begin := time.Now()
	for made := uint64(0); !s.Done() && (e.Tried < 2 || time.Since(begin) < atMost); e.Tried++ {
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
	later := took[len(took)/2:]
	if s.Done() { // these were all steps
		later = took
	}
	var sum time.Duration
	for _, d := range later {
		sum += d
	}
	e.Seconds = sum.Seconds() / float64(max(len(later), 1)) * float64(e.Steps)
	return e, nil
}

// print prints the configuration, which can be given back as a file, with the estimates as comments.
func (e estimate) print(c command.Console, asJSON bool) error {
	if asJSON {
		return command.PrintJSON(c.Out, e)
	}
	took := "nothing is left to do"
	if e.Seconds > 0 {
		took = fmt.Sprintf("about %s for %d steps, as the first %d of them went",
			report.Duration(time.Duration(e.Seconds*float64(time.Second))), e.Steps, e.Tried)
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
