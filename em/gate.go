package em

import "math"

// Gate decides when the M-step may run.
//
// The paper knows three rules. Fixed blocks (Hu et al., 2023, algorithm 1 as used for the mixture): so many E-updates, then
// so many M-updates. The adaptive gate (algorithm 2): the M-step runs while a moving average of the E-step's loss is below
// a threshold that falls linearly with the number of M-updates. And alternation (as used for images): each batch of data
// serves one update, of either kind, in turns that begin with M-updates.
type Gate struct {
	// ESteps and MSteps are the lengths of fixed blocks; 0 means 1.
	ESteps, MSteps int
	// First is the length of the first block of E-updates; 0 means ESteps.
	First int
	// Below, if not 0, leaves out the M-updates of a block whose last loss is not below it.
	Below float64
	// Alternate, if not 0, is the length of turns: the s-th iteration, counted from 1, is an M-update and nothing else if
	// s mod 2 Alternate is below Alternate, and an E-update otherwise. So the first turn is one shorter than the others.
	Alternate int
	// Adaptive uses the threshold instead of blocks.
	Adaptive bool
	// Threshold falls with the number of M-updates; the zero value means 6 to 3 over 10,000, the paper's context-free
	// grammar.
	Threshold Linear
	// Decay is the weight of the past in the moving average, which starts at 0 without correction; 0 means 0.9.
	Decay float64
}

// Maximizes reports whether an iteration, counted from 0, is an M-update alone.
func (g Gate) Maximizes(iteration uint64) bool {
	turn := uint64(max(g.Alternate, 0))
	return turn > 0 && (iteration+1)%(2*turn) < turn
}

// MaximizedBefore is how many of the iterations before a given one are M-updates alone.
func (g Gate) MaximizedBefore(iteration uint64) uint64 {
	turn := uint64(max(g.Alternate, 0))
	if turn == 0 {
		return 0
	}
	rounds, rest := (iteration+1)/(2*turn), (iteration+1)%(2*turn)
	return rounds*turn + min(rest, turn) - 1 // there is no iteration 0
}

// GateState is what a gate remembers.
type GateState struct {
	Average float64 // moving average of the loss
	Open    bool    // whether the next iteration has an M-step
	E, M    int     // position within the block
	Blocks  uint64  // blocks that have ended
}

// observe takes the loss of an E-update, which happened when m M-updates had been made, and returns whether an M-update
// is due in this iteration. With the adaptive gate that is what the previous iteration decided. The loss of a skipped
// update is NaN: it leaves the average as it is and is not below anything.
func (g Gate) observe(s *GateState, loss float64, m uint64) (due bool) {
	decay := g.Decay
	if decay == 0 {
		decay = 0.9
	}
	if !math.IsNaN(loss) {
		s.Average = decay*s.Average + (1-decay)*loss
	}
	if g.Alternate > 0 {
		return false
	}
	if g.Adaptive {
		threshold := g.Threshold
		if threshold == (Linear{}) {
			threshold = Linear{From: 6, To: 3, Over: 10_000}
		}
		due = s.Open
		s.Open = s.Average < threshold.At(m)
		return due
	}
	s.E++
	block := max(g.ESteps, 1)
	if s.Blocks == 0 && g.First > 0 {
		block = g.First
	}
	if s.E < block {
		return false
	}
	if g.Below != 0 && !(loss < g.Below) {
		s.E = 0
		s.Blocks++
		return false
	}
	return true
}

// updated takes note of an M-update and returns whether another one follows at once.
func (g Gate) updated(s *GateState) (again bool) {
	if g.Adaptive {
		return false
	}
	s.M++
	if s.M < max(g.MSteps, 1) {
		return true
	}
	s.E, s.M = 0, 0
	s.Blocks++
	return false
}

// Observe is for loops of their own, with an adaptive gate: it takes the loss of an E-update, NaN if it was skipped, which happened when
// m M-updates had been made. GateState.Open then says whether the next iteration has an M-step.
func (g Gate) Observe(s *GateState, loss float64, m uint64) {
	g.Adaptive = true
	g.observe(s, loss, m)
}
