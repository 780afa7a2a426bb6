package em

import (
	"errors"
	"fmt"
)

// maxInARow is the number of successive skipped updates of one kind after which a learner gives up.
const maxInARow = 5

// ErrDiverged is returned when five updates of one kind in a row were not finite; the variables that they train are
// those of the last good one.
var ErrDiverged = errors.New("training diverged")

// Update is one optimiser step. The M-step's loss is the mean of -log p(x,z), unless MStep.Loss says otherwise.
type Update struct {
	Loss, GradNorm float64
	OK             bool
}

// count takes note of the update in the numbers of skipped ones, in all and since the last good one of its kind. It
// fails with ErrDiverged if five in a row were skipped.
func (u Update) count(skipped *uint64, inARow *int, name string) error {
	if u.OK {
		*inARow = 0
		return nil
	}
	*skipped++
	if *inARow++; *inARow < maxInARow {
		return nil
	}
	return fmt.Errorf("%w: %d %s-updates in a row were not finite (loss %g, gradient norm %g); "+
		"try a smaller learning rate", ErrDiverged, *inARow, name, u.Loss, u.GradNorm)
}

// Tally counts the updates of one kind that were skipped because something was not finite.
type Tally struct {
	Skipped uint64 // in all
	InARow  int    // since the last good one
}

// Count takes note of an update.
func (t *Tally) Count(u Update, name string) error { return u.count(&t.Skipped, &t.InARow, name) }
