package run_test

import (
	"errors"
	"testing"

	"github.com/gomlx/compute"

	"github.com/gfnem/gfnem/internal/crash"
	"github.com/gfnem/gfnem/run"
)

// falling is a task whose trainings panic.
type falling struct{}

func (falling) Name() string      { return "falling" }
func (falling) Presets() []string { return []string{"quick"} }
func (falling) Config(string) any { return &struct{ Seed uint64 }{} }

func (falling) Start(compute.Backend, any) (run.Session, error) { panic("a mistake") }

// A panic of a training ends the grid with an error that says where it was, and no other training waits for it.
func TestGridCarriesPanics(t *testing.T) {
	g := run.Grid{Dir: t.TempDir(), Task: falling{}, Workers: 2}
	cells := make([]run.Cell, 5)
	for i := range cells {
		cells[i] = run.Cell{Row: "row", Index: i, Config: g.Task.Config("")}
	}
	_, err := g.Run(t.Context(), cells)
	var e *crash.Error
	if !errors.As(err, &e) || e.Value != "a mistake" {
		t.Errorf("error %v", err)
	}
}
