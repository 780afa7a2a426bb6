package em

import (
	"errors"
	"fmt"
)

// maxInARow is the number of successive skipped updates of one kind after which a learner gives up.
const maxInARow = 5

// ErrDiverged is returned when five updates of one kind in a row were not finite; the variables that they train are those
// of the last good one.
var ErrDiverged = errors.New("training diverged")

// Update is one optimiser step. The M-step's loss is the mean of -log p(x,z), unless MStep.Loss says otherwise.
type Update struct {
	Loss, GradNorm float64
	OK             bool
}

// Tally counts the updates of one kind that were skipped because something was not finite.
type Tally struct {
	Skipped uint64 // in all
	InARow  int    // since the last good one
}

// Count takes note of an update. It fails with ErrDiverged if five in a row were skipped.
func (t *Tally) Count(u Update, name string) error {
	if u.OK {
		t.InARow = 0
		return nil
	}
	t.Skipped++
	if t.InARow++; t.InARow < maxInARow {
		return nil
	}
	return fmt.Errorf("%w: %d %s-updates in a row were not finite (loss %g, gradient norm %g); "+
		"try a smaller learning rate", ErrDiverged, t.InARow, name, u.Loss, u.GradNorm)
}
