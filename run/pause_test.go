package run

import (
	"path/filepath"
	"strings"
	"testing"
)

// A cell that pauses, and is taken further later, ends as one that did not pause.
func TestPausedCell(t *testing.T) {
	g := newCountGrid(t)
	want := readFile(t, g.path())
	g.Grid.Dir = t.TempDir()
	g.dir = filepath.Join(g.Grid.Dir, "row", "7")
	for _, until := range []float64{0.25, 0.25, 0.5, 0.5} {
		cell := g.cells[0]
		cell.Until = until
		result, begun, err := g.Finished(cell, func(line string) { t.Log(line) })
		if err != nil || begun != (until > 0.25 || result != nil) {
			t.Fatalf("before %g: %s, %v, %v", until, result, begun, err)
		}
		if _, err := g.Grid.Run(t.Context(), []Cell{cell}); err != nil {
			t.Fatal(err)
		}
		r, err := Read(g.dir)
		if err != nil {
			t.Fatal(err)
		}
		c, err := r.readResult()
		if err != nil || c.Until != until || c.Step != map[float64]uint64{0.25: 3, 0.5: 5}[until] {
			t.Errorf("until %g: %+v, %v", until, c, err)
		}
	}
	if warnings, measured := g.run(); warnings != "" || !measured {
		t.Errorf("measured at the end: %v, %s", measured, warnings)
	}
	// The hash of the state is that of a training without a pause; its checkpoints are others.
	if got := readFile(t, g.path()); got != want {
		t.Errorf("the result is\n%s, want\n%s", got, want)
	}
	cell := g.cells[0]
	cell.Until = 0.5
	_, err := g.Grid.Run(t.Context(), []Cell{cell})
	if err == nil || !strings.Contains(err.Error(), "has gone beyond 0.5 of its steps") {
		t.Errorf("error %v", err)
	}
}
