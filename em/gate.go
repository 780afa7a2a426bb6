package em

import "math"

// Gate decides when M-steps run. It is one of Blocks, Adaptive and Turns, the three rules that the paper knows; nil
// means Blocks{}.
type Gate interface {
	// alone reports whether an iteration is an M-step and nothing else.
	alone(iteration uint64) bool
	// foresees reports whether it is certain before an iteration that an M-step follows its E-step.
	foresees(s GateState, iteration uint64) bool
	// observe takes the loss of an E-update, which happened when m M-updates had been made, and returns whether an M-step
	// is due. The loss of a skipped update is NaN: it says nothing.
	observe(s *GateState, iteration uint64, loss float64, m uint64) (due bool)
	// updated takes note of an M-step and returns whether another one follows at once.
	updated(s *GateState) (again bool)
	// check returns what is wrong with its numbers.
	check() error
}

var (
	_ Gate = Blocks{}
	_ Gate = Adaptive{}
	_ Gate = Turns{}
)

// Never makes no M-steps.
var Never Gate = Blocks{First: math.MaxInt}

// GateState is what a gate remembers.
type GateState struct {
	Average float64 // moving average of the loss
	Open    bool    // whether the next iteration has an M-step
	E, M    int     // position within the block
	Blocks  uint64  // blocks that have ended
}

// follow updates the moving average, which starts at 0 without correction; a decay of 0 means 0.9.
func (s *GateState) follow(loss, decay float64) {
	if decay == 0 {
		decay = 0.9
	}
	if !math.IsNaN(loss) {
		s.Average = decay*s.Average + (1-decay)*loss
	}
}

// Blocks are so many E-steps, then so many M-steps (Hu et al., 2023, algorithm 1 as used for the mixture).
type Blocks struct {
	E, M  int // lengths of blocks; 0 means 1
	First int // the length of the first block of E-steps; 0 means E
	// Below, if not 0, leaves out the M-steps after a block whose last loss is not below it.
	Below float64
}

func (g Blocks) alone(uint64) bool { return false }

// length is that of the block of E-steps under way.
func (g Blocks) length(s GateState) int {
	if s.Blocks == 0 && g.First > 0 {
		return g.First
	}
	return max(g.E, 1)
}

func (g Blocks) foresees(s GateState, _ uint64) bool { return g.Below == 0 && s.E+1 >= g.length(s) }

func (g Blocks) observe(s *GateState, _ uint64, loss float64, _ uint64) bool {
	s.follow(loss, 0)
	s.E++
	if s.E < g.length(*s) {
		return false
	}
	if g.Below != 0 && !(loss < g.Below) {
		s.E = 0
		s.Blocks++
		return false
	}
	return true
}

func (g Blocks) updated(s *GateState) bool {
	s.M++
	if s.M < max(g.M, 1) {
		return true
	}
	s.E, s.M = 0, 0
	s.Blocks++
	return false
}

// Adaptive makes an M-step in each iteration after one that ended with a moving average of the loss below a threshold,
// which moves with the number of M-steps (algorithm 2).
type Adaptive struct {
	// Threshold at an M-step; the zero value means 6 to 3 over 10,000, the paper's context-free grammar.
	Threshold Linear
	// Decay is the weight of the past in the moving average; 0 means 0.9.
	Decay float64
	// Epoch, if above 1, leaves out the M-step of every iteration whose number is a multiple of it, as published.
	Epoch uint64
}

// At is the threshold when m M-updates have been made.
func (g Adaptive) At(m uint64) float64 {
	if g.Threshold == (Linear{}) {
		g.Threshold = Linear{From: 6, To: 3, Over: 10_000}
	}
	return g.Threshold.At(m)
}

func (g Adaptive) alone(uint64) bool { return false }

func (g Adaptive) foresees(s GateState, iteration uint64) bool {
	return s.Open && !(g.Epoch > 1 && iteration%g.Epoch == 0)
}

func (g Adaptive) observe(s *GateState, iteration uint64, loss float64, m uint64) bool {
	due := g.foresees(*s, iteration)
	s.follow(loss, g.Decay)
	s.Open = s.Average < g.At(m)
	return due
}

func (g Adaptive) updated(*GateState) bool { return false }

// Turns give each batch to one update, of either kind (as used for images): the s-th iteration, counted from 1, is an
// M-step and nothing else if s mod 2 Length is below Length, and an E-step otherwise. So the first turn is one shorter
// than the others. A length of 0 means 1.
type Turns struct{ Length int }

func (g Turns) alone(iteration uint64) bool {
	turn := uint64(max(g.Length, 1))
	return (iteration+1)%(2*turn) < turn
}

// MBefore is the number of M-steps in the iterations before a given one.
func (g Turns) MBefore(iteration uint64) uint64 {
	turn := uint64(max(g.Length, 1))
	rounds, rest := (iteration+1)/(2*turn), (iteration+1)%(2*turn)
	return rounds*turn + min(rest, turn) - 1 // there is no iteration 0
}

func (g Turns) foresees(GateState, uint64) bool { return false }

func (g Turns) observe(s *GateState, _ uint64, loss float64, _ uint64) bool {
	s.follow(loss, 0)
	return false
}

func (g Turns) updated(*GateState) bool { return false }
