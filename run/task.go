package run

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/gomlx/compute"

	"github.com/gfnem/gfnem/config"
)

// Task is a kind of model the program can train.
type Task interface {
	// Name is what the user types.
	Name() string
	// Presets lists the names of the presets, the default one first.
	Presets() []string
	// Config returns a pointer to the configuration of a preset, or nil if there is none of that name. All tasks have
	// the key "seed".
	Config(preset string) any
	// Start prepares a session with a configuration, a pointer as Config returns it.
	Start(b compute.Backend, config any) (Session, error)
}

// Grown is implemented by tasks whose configuration has got keys since there are runs.
type Grown interface {
	Task
	// Before returns a pointer to a configuration whose values such keys have where a run does not know them.
	Before() any
}

// Before is the configuration over which the one of a run's folder is laid, which has every key that its program knew.
func Before(t Task) any {
	if g, ok := t.(Grown); ok {
		return g.Before()
	}
	return t.Config(t.Presets()[0])
}

// PresetOf is Task.Config for a table of presets.
func PresetOf[C any](presets map[string]func() C, name string) any {
	preset, ok := presets[name]
	if !ok {
		return nil
	}
	c := preset()
	return &c
}

// Session is a model in training.
type Session interface {
	Job
	// Seed returns the seed of the configuration.
	Seed() uint64
	// Data returns the hash of each data set, by name.
	Data() map[string]string
	// Progress returns the steps made, as Step reports them, and how many are expected in all.
	Progress() (step, total uint64)
	// Evaluate measures the model as it is. The result can be encoded as JSON, and prints as what a person wants to see.
	Evaluate() (Result, error)
	// Report writes report.html and figures of a run to a folder, see Run.Publish.
	Report(r *Run, dir string, result Result) error
	// Parameters returns the learned parameters, for export.
	Parameters() (map[string]Array, error)
	// Close releases what the session holds.
	Close()
}

// Unfinished says, for a report's Note, where a training stands that is not done; it is empty for one that is.
func Unfinished(s Session) string {
	if s.Done() {
		return ""
	}
	step, total := s.Progress()
	return fmt.Sprintf("the training is not finished: this is step %d of %d", step, total)
}

// Result is the outcome of a training.
type Result interface {
	// Print writes it for a terminal.
	Print(w io.Writer) error
}

// Reproducer is implemented by tasks that can reproduce tables of the paper.
type Reproducer interface {
	Task
	// Tables lists the names of the tables, with the names of their rows.
	Tables() map[string][]string
	// Reproduce makes the rows of a table that are asked for, writes its report to the grid's folder and returns it.
	Reproduce(ctx context.Context, s Study) (Result, error)
}

// Study is what is asked of a Reproducer.
type Study struct {
	Grid
	Table string
	Rows  []string // nil means all
	Runs  int      // repetitions of rows that train a GFlowNet; 0 means the task's default
	Seed  uint64
	Adjustments
}

// Asks reports whether a row is asked for.
func (s Study) Asks(row string) bool { return s.Rows == nil || slices.Contains(s.Rows, row) }

// Repeat makes runs of a row, one with each configuration, and returns their results.
func Repeat[R any](ctx context.Context, s Study, row, title string, configs []any) ([]R, error) {
	if s.Log != nil {
		fmt.Fprintf(s.Log, "%s: %d runs\n", title, len(configs))
	}
	cells := make([]Cell, len(configs))
	for k, c := range configs {
		cells[k] = Cell{Row: row, Index: k, Config: c}
	}
	results, err := s.Grid.Run(ctx, cells)
	if err != nil {
		return nil, err
	}
	out := make([]R, len(results))
	for k, data := range results {
		if err := json.Unmarshal(data, &out[k]); err != nil {
			return nil, fmt.Errorf("result of %s, run %d: %w", row, k, err)
		}
	}
	return out, nil
}

// Adjustments change all rows of a table. They are asked of an Adjustable alone.
type Adjustments struct {
	Preset string     // that rows start from; "" means the table's default
	Set    config.Set // settings laid over it
	Seeds  []uint64   // of the repetitions; nil means as many as Runs says, from Seed on
}

// Adjustable is a Reproducer whose tables heed Adjustments.
type Adjustable interface {
	Reproducer
	Adjustable()
}

// Uneven is one whose tables may have fewer runs of rows that train a GFlowNet: if a Study has both Seeds and Runs, the
// first Runs of these.
type Uneven interface {
	Adjustable
	Uneven()
}
