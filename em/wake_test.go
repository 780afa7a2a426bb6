package em

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/optim"
)

// nothing is an objective without a gradient.
type nothing struct{}

func (nothing) Loss(p gfn.Path) *Node { return MulScalar(ReduceSum(p.LogPF, 1), 0) }

// Whatever the objective, the E-step with fixed theta ends near the exact posterior, and learned flows near log p(x).
func TestEStepFindsPosterior(t *testing.T) {
	const updates = 200
	rate := optim.Rate{Base: 0.15, Drops: []optim.Drop{{Step: 100, Factor: 0.3}, {Step: 140, Factor: 0.3}, {Step: 170, Factor: 0.3}}}
	b := newBackend(t)
	m := newToy(3, dtypes.Float32)
	partial := func(_ *model.Scope, x gfn.Batch, s gfn.State, k int) *Node { // some function of x and the state
		return Add(ConvertDType(ReduceSum(s[0], 1), m.dtype), ReduceSum(x.Repeat(k)[0], 1))
	}
	startPartial := func(x int) float64 { return -2 + float64(x&1+x>>1&1+x>>2&1) }
	half := func(theta *model.Scope, x gfn.Batch, z gfn.State) *Node {
		return MulScalar(m.LogJoint(theta, x, z), 0.5)
	}
	for _, c := range []struct {
		name  string
		wake  Wake // 8 samples if it does not say how many
		sleep Sleep
		best  bool // in the same program as M-updates, which do nothing
		flows bool // the flow of the initial state is learned
		fails bool
	}{
		{name: "TB", wake: Wake{}, flows: true},
		{name: "TB, rescored", wake: Wake{Rescore: true}, flows: true},
		{name: "TB, tempered", wake: Wake{Explore: Explore{Beta: Constant(0.7), Epsilon: Constant(0.1)}}, flows: true},
		{name: "SubTB", wake: Wake{Objective: gfn.SubTB{}}, flows: true},
		{name: "SubTB, rescored", wake: Wake{Objective: gfn.SubTB{}, Rescore: true}, flows: true},
		{name: "DB", wake: Wake{Objective: gfn.DB{}}, flows: true},
		{name: "DB, rescored", wake: Wake{Objective: gfn.DB{}, Rescore: true}, flows: true},
		{name: "VarGrad", wake: Wake{Objective: gfn.VarGrad{Samples: 8}}},
		{name: "VarGrad, rescored", wake: Wake{Objective: gfn.VarGrad{Samples: 8}, Rescore: true}},
		{name: "HVI", wake: Wake{Objective: gfn.HVI{Samples: 8}}},
		{name: "HVI, rescored", wake: Wake{Objective: gfn.HVI{Samples: 8}, Rescore: true}},
		{name: "RWS", wake: Wake{Objective: gfn.RWS{}, Samples: 32}},
		{name: "forward-looking SubTB", wake: Wake{Objective: gfn.SubTB{}, Partial: partial}, flows: true},
		{name: "forward-looking TB", wake: Wake{Partial: partial, Rescore: true}, flows: true},
		{name: "sleep", wake: Wake{Objective: nothing{}}, sleep: Sleep{Weight: 1, Batch: 512}},
		{name: "sleep apart", wake: Wake{Objective: nothing{}}, sleep: Sleep{Weight: 0.1, Batch: 512, Apart: true}},
		{name: "wake and sleep", sleep: Sleep{Weight: 0.1, Batch: 64}, flows: true},
		{name: "wake, then sleep", sleep: Sleep{Weight: 0.1, Batch: 128, Apart: true}, flows: true},
		{name: "VarGrad, with M-updates", wake: Wake{Objective: gfn.VarGrad{Samples: 8}, Rescore: true}, best: true},
		// What the test can see: no training, and training for another posterior.
		{name: "no objective", wake: Wake{Objective: nothing{}}, fails: true},
		{name: "other reward", wake: Wake{Reward: half}, fails: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			spec := toySpec(m)
			spec.Wake, spec.Sleep, spec.Gate = c.wake, c.sleep, never
			spec.Wake.Samples = cmp.Or(c.wake.Samples, 8)
			spec.Wake.Optimizer = adam(Phi, rate)
			if c.best {
				spec.Gate, spec.MStep = Blocks{}, MStep{Latents: BestOfWake{}, Optimizer: adam(Theta, optim.Rate{})}
			}
			l := newLearner(t, b, spec)
			steps(t, l, updates)
			logP := m.learned(t, l.Store())
			tv := farthest(tablePolicy{m}.posterior(t, l.Store()), logP)
			t.Logf("seed %d, total variation %.4f", spec.Seed, tv)
			if (tv > 0.05) != c.fails {
				t.Errorf("total variation %.3f", tv)
			}
			if !c.flows {
				return
			}
			flow := numbersOf(t, l.Store(), Phi+"/flow/table")
			for x := range logP {
				got := flow[tablePolicy{m}.row(x, nil)]
				if c.wake.Partial != nil {
					got += startPartial(x)
				}
				if want := gfn.LogSumExp(logP[x]); math.Abs(got-want) > 0.1 {
					t.Errorf("log-flow at the start for x=%d is %.3f, want log p(x) = %.3f", x, got, want)
				}
			}
		})
	}
}

// A policy that never takes an action that the posterior needs learns of it by exploring, and only then.
func TestExploration(t *testing.T) {
	b := newBackend(t)
	m := newToy(3, dtypes.Float32)
	logP := m.table(m.prior, m.emit)
	var needed float64 // the posterior probability of the action, for the observation that needs it most
	for _, row := range logP {
		p := gfn.Normalise(row)
		needed = max(needed, p[1]+p[3]+p[5])
	}
	if needed < 0.5 {
		t.Fatalf("the action has probability %.2f at most", needed)
	}
	for _, c := range []struct {
		name  string
		wake  Wake
		alive bool
	}{
		{"on-policy", Wake{}, false},
		{"epsilon", Wake{Explore: Explore{Epsilon: Constant(0.3)}}, true},
		{"falling epsilon", Wake{Explore: Explore{Epsilon: Linear{From: 0.6, To: 0, Over: 150}}}, true},
		{"tempered", Wake{Explore: Explore{Beta: Constant(0.05)}}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			spec := toySpec(m)
			spec.Wake, spec.Gate = c.wake, never
			spec.Wake.Samples = 8
			spec.Wake.Optimizer = adam(Phi, optim.Rate{Base: 0.2, Drops: []optim.Drop{{Step: 230, Factor: 0.2}}})
			l := newLearner(t, b, spec)
			_, states := tablePolicy{m}.radix()
			dead := make([]float64, m.observations()*states*3)
			for x := range m.observations() {
				dead[tablePolicy{m}.row(x, nil)*3+1] = -20 // z_0 = 1
			}
			setVariable(t, l.Store(), Phi+"/logits", floats(m.dtype, dead, m.observations()*states, 3))
			steps(t, l, 320)
			q := tablePolicy{m}.posterior(t, l.Store())
			tv := farthest(q, logP)
			t.Logf("seed %d, total variation %.3f", spec.Seed, tv)
			if c.alive && tv > 0.05 {
				t.Errorf("total variation %.3f", tv)
			}
			if !c.alive && (tv < needed-0.01 || slices.ContainsFunc(q, func(q []float64) bool { return q[1]+q[3]+q[5] > 1e-6 })) {
				t.Errorf("the dead action came back by itself: total variation %.3f", tv)
			}
		})
	}
}
