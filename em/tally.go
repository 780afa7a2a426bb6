package em

import (
	"errors"
	"fmt"
	"strings"

	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
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
	Scores         Scores[int]
}

// Scores counts the rows of a batch by their log p(x,z), or their log-reward in an E-step. All are 0 if nothing was
// looked at. T is an int, or a node.
type Scores[T any] struct {
	Rows       T
	Impossible T // -Inf: the model gives the latent probability 0
	Undefined  T // NaN or +Inf
}

func scoresOf(logP *Node) Scores[*Node] {
	count := func(rows *Node) *Node { return ReduceAllSum(ConvertDType(rows, dtypes.Int32)) }
	bad := LogicalNot(IsFinite(logP))
	low := LessThan(logP, ZerosLike(logP))
	return Scores[*Node]{
		Rows:       Const(logP.Graph(), int32(logP.Shape().Size())),
		Impossible: count(LogicalAnd(bad, low)),
		Undefined:  count(LogicalAnd(bad, LogicalNot(low))),
	}
}

// impossible marks the rows where logP is -Inf.
func impossible(logP *Node) *Node {
	return LogicalAnd(LogicalNot(IsFinite(logP)), LessThan(logP, ZerosLike(logP)))
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
	return fmt.Errorf("%w: %d %s-updates in a row were not finite (loss %g, gradient norm %g); %s",
		ErrDiverged, *inARow, name, u.Loss, u.GradNorm, u.advice(name))
}

// advice says why an update was not finite, as far as it is known, and what to do.
func (u Update) advice(name string) string {
	what, s := "log p(x,z)", u.Scores
	if name == "E" {
		what += ", or Wake.Reward,"
	}
	var why []string
	if s.Impossible > 0 {
		why = append(why, fmt.Sprintf("%s is -Inf in %d of %d rows: the model must give each latent that can be assembled a "+
			"probability above 0", what, s.Impossible, s.Rows))
	}
	if s.Undefined > 0 {
		why = append(why, fmt.Sprintf("%s is NaN or +Inf in %d of %d rows: look there for a quotient 0/0, the logarithm of "+
			"a negative number, an overflow", what, s.Undefined, s.Rows))
	}
	if why == nil {
		return "try a smaller learning rate"
	}
	return strings.Join(why, "; ")
}

// Tally counts the updates of one kind that were skipped because something was not finite.
type Tally struct {
	Skipped uint64 // in all
	InARow  int    // since the last good one
}

// Count takes note of an update.
func (t *Tally) Count(u Update, name string) error { return u.count(&t.Skipped, &t.InARow, name) }
