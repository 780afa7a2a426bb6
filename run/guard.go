package run

import (
	"errors"
	"fmt"
)

// ErrNotFinite is wrapped by the error with which a Guard ends a run.
var ErrNotFinite = errors.New("loss, gradient or parameters are not finite")

// Guard counts the updates skipped because something in them was not finite, and stops a run that does not recover.
// Its counts are part of a run's state; the limit is not.
type Guard struct {
	Limit   int `json:"-"`       // skipped updates in a row that end the run; 0 means 5
	Skipped int `json:"skipped"` // in all
	InRow   int `json:"in_row"`  // since the last good one
}

// Observe takes note of an update: ok if it was applied, not ok if it was skipped. It returns an error once too many
// in a row were skipped.
func (g *Guard) Observe(ok bool) error {
	if ok {
		g.InRow = 0
		return nil
	}
	g.Skipped++
	g.InRow++
	limit := g.Limit
	if limit == 0 {
		limit = 5
	}
	if g.InRow < limit {
		return nil
	}
	return fmt.Errorf("%w: %d updates in a row were skipped, %d in all; the last good state is kept",
		ErrNotFinite, g.InRow, g.Skipped)
}
