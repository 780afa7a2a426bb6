package em

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/optim"
)

func TestBestOfRows(t *testing.T) {
	out := MustExecOnce(newBackend(t), func(z, logR *Node) *Node { return best(gfn.State{z}, logR, 3)[0] },
		[][]int32{{0, 1}, {2, 3}, {4, 5}, {6, 7}, {8, 9}, {10, 11}}, []float64{-3, -1, -2, -5, -8, -4})
	if got := tensors.MustCopyFlatData[int32](out); !slices.Equal(got, []int32{2, 3, 10, 11}) {
		t.Errorf("the best of three rows and of three more are %v", got)
	}
}

// With many samples the best one is the most probable latent of its observation, so the loss of the M-update is known. A policy that is nearly
// uniform over six latents misses one of them in 256 samples with probability below 1e-14.
func TestBestLatents(t *testing.T) {
	m := newToy(3, dtypes.Float32)
	spec := toySpec(m)
	spec.Wake.Samples, spec.MStep.Latents = 256, BestOfWake{}
	spec.Sleep = Sleep{Weight: 1, Batch: 4, Apart: true}
	l := newLearner(t, newBackend(t), spec)
	want := 0.0
	for _, logP := range m.table(m.prior, m.emit) {
		want -= slices.Max(logP) / float64(m.observations())
	}
	r := steps(t, l, 1)
	if r.M == nil || !(math.Abs(r.M.Loss-want) < 1e-5) {
		t.Fatalf("the M-update was %+v, want a loss of %g", r.M, want)
	}
	if r.Sleep == nil || !(r.Wake.Loss > 0) {
		t.Errorf("wake %+v, sleep %+v", r.Wake, r.Sleep)
	}
	if s := steps(t, l, 4).State; s.Iteration != 5 || s.M != 5 || s.Sleep != 5 || s.Skipped != 0 {
		t.Errorf("after 5 iterations: %+v", s)
	}
}

// Each of the two updates is what its own optimiser makes of it: a rate of zero leaves its side alone.
func TestBestRates(t *testing.T) {
	m := newToy(3, dtypes.Float32)
	for scope, rates := range map[string][2]float64{Phi: {0.1, 0}, Theta: {0, 0.1}} {
		spec := toySpec(m)
		spec.Wake.Samples, spec.MStep.Latents = 4, BestOfWake{}
		spec.Wake.Optimizer, spec.MStep.Optimizer = adam(Phi, optim.Rate{Base: rates[0]}), adam(Theta, optim.Rate{Base: rates[1]})
		l := newLearner(t, newBackend(t), spec)
		steps(t, l, 1)
		before := snapshot(t, l.Store(), Phi, Theta)
		steps(t, l, 1)
		moved := changed(before, snapshot(t, l.Store(), Phi, Theta))
		if len(moved) == 0 {
			t.Errorf("nothing below %s has moved", scope)
		}
		for _, path := range moved {
			if !strings.HasPrefix(path, scope+"/") {
				t.Errorf("%s has moved, with a rate of zero", path)
			}
		}
	}
}

// The rates of an M-update that is made with an E-update go by the number of M-updates.
func TestBestRatesOverTime(t *testing.T) {
	spec := toySpec(newToy(3, dtypes.Float32))
	spec.Wake.Samples, spec.MStep.Latents, spec.Gate = 4, BestOfWake{}, Blocks{E: 2}
	spec.MStep.Optimizer = adam(Theta, optim.Rate{Base: 0.1, Drops: []optim.Drop{{Step: 2, Factor: 0}}})
	l := newLearner(t, newBackend(t), spec)
	steps(t, l, 2)
	for m := 1; m < 3; m++ {
		before := snapshot(t, l.Store(), Theta)
		steps(t, l, 2)
		if moved := changed(before, snapshot(t, l.Store(), Theta)); (len(moved) > 0) != (m < 2) {
			t.Errorf("M-update %d moved %v", m, moved)
		}
	}
}

// Whatever the best latents are combined with: where the E-step has none for an M-step, the M-step draws as many.
func TestBestWithAll(t *testing.T) {
	b, m := newBackend(t), newToy(3, dtypes.Float32)
	want := 0.0
	for _, logP := range m.table(m.prior, m.emit) {
		want -= slices.Max(logP) / float64(m.observations())
	}
	for name, change := range map[string]func(*Spec){
		"blocks":         func(s *Spec) { s.Gate = Blocks{E: 2, M: 2, Below: math.Inf(1)} },
		"adaptive":       func(s *Spec) { s.Gate = Adaptive{Threshold: Constant(math.Inf(1))} },
		"turns":          func(s *Spec) { s.Gate = Turns{2} },
		"data":           func(s *Spec) { s.MStep.Data = s.Data },
		"sleep alone":    func(s *Spec) { s.Sleep = Sleep{Weight: 1, Batch: 4, Alone: true} },
		"sleep together": func(s *Spec) { s.Sleep = Sleep{Weight: 1, Batch: 4} },
		"no M-steps":     func(s *Spec) { s.Gate = Never },
	} {
		spec := toySpec(m)
		spec.Wake.Samples, spec.MStep.Latents = 256, BestOfWake{}
		spec.MStep.Optimizer = adam(Theta, optim.Rate{})
		change(&spec)
		l := newLearner(t, b, spec)
		made := uint64(0)
		for range 6 {
			r := steps(t, l, 1)
			if r.M != nil && !(math.Abs(r.M.Loss-want) < 1e-5) {
				t.Errorf("%s: the M-update was %+v, want a loss of %g", name, r.M, want)
			}
			made = r.State.M
		}
		if (made == 0) != (name == "no M-steps") {
			t.Errorf("%s: %d M-updates", name, made)
		}
	}
}

// An E-step hands the best latents on, unless it has made the M-update with them.
func TestBestAreHandedOn(t *testing.T) {
	b := newBackend(t)
	for name, change := range map[string]func(*Spec){
		"plain":          func(*Spec) {},
		"sleep together": func(s *Spec) { s.Sleep = Sleep{Weight: 1, Batch: 4} },
		"moves":          func(s *Spec) { s.MStep.Moves = 1 },
	} {
		for _, certain := range []bool{false, true} {
			spec := toySpec(newToy(3, dtypes.Float32))
			spec.Wake.Samples, spec.MStep.Latents = 2, BestOfWake{}
			change(&spec)
			out, err := newLearner(t, b, spec).E.Infer(Moment{Maximizes: certain}, spec.Data(0))
			both := certain && name == "plain"
			if err != nil || (out.M != nil) != both || (len(out.Z.Z) > 0) == both {
				t.Errorf("%s, an M-step is certain: %t: M-update %v, %d latents, error %v", name, certain, out.M, len(out.Z.Z), err)
			}
		}
	}
}

// Moves refine the best latents, too.
func TestBestMoves(t *testing.T) {
	spec := toySpec(newToy(3, dtypes.Float32))
	spec.Wake.Samples, spec.MStep = 4, MStep{Latents: BestOfWake{}, Moves: 2}
	if r := steps(t, newLearner(t, newBackend(t), spec), 1); r.M == nil || !(r.Accepted > 0 && r.Accepted <= 1) {
		t.Errorf("%+v", r)
	}
}

// Each half of an iteration is skipped, and counted, for itself.
func TestBestFailures(t *testing.T) {
	bad := func(n *Node) *Node { return MulScalar(n, math.NaN()) }
	b, m := newBackend(t), newToy(3, dtypes.Float32)
	for _, c := range []struct {
		name    string
		change  func(*Spec)
		moves   string
		failing func(InARow) int
	}{
		{"M-updates", func(s *Spec) {
			s.MStep.Loss = func(theta *model.Scope, x gfn.Batch, z gfn.State, _ func() gfn.State) *Node {
				return bad(ReduceAllMean(m.LogJoint(theta, x, z)))
			}
		}, Phi, func(n InARow) int { return n.M }},
		{"E-updates", func(s *Spec) {
			s.Wake.Reward = func(theta *model.Scope, x gfn.Batch, z gfn.State) *Node { return bad(m.LogJoint(theta, x, z)) }
		}, Theta, func(n InARow) int { return n.E }},
	} {
		spec := toySpec(m)
		spec.Wake.Samples, spec.MStep.Latents = 2, BestOfWake{}
		c.change(&spec)
		l := newLearner(t, b, spec)
		steps(t, l, 1)
		before := snapshot(t, l.Store(), Phi, Theta)
		r := steps(t, l, maxInARow-2)
		for _, path := range changed(before, snapshot(t, l.Store(), Phi, Theta)) {
			if !strings.HasPrefix(path, c.moves+"/") {
				t.Errorf("%s fail: %s has changed", c.name, path)
			}
		}
		if n := r.State.InARow; c.failing(n) != maxInARow-1 || n.E+n.M != maxInARow-1 || r.State.Skipped != maxInARow-1 {
			t.Errorf("%s fail: %+v", c.name, r.State)
		}
		if _, err := l.Step(); !errors.Is(err, ErrDiverged) || !strings.Contains(err.Error(), c.name) {
			t.Errorf("%s fail: error %v", c.name, err)
		}
		if len(changed(before, snapshot(t, l.Store(), Phi, Theta))) == 0 {
			t.Errorf("%s fail: nothing below %s has moved", c.name, c.moves)
		}
	}
}
