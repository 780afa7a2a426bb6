package em

import (
	"fmt"
	"math"

	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/internal/program"
	"github.com/gfnem/gfnem/rng"
)

// kind names a program and its stream of random numbers.
type kind string

const (
	wake            kind = "wake"
	wakeAndSleep    kind = "wake and sleep"
	wakeAndMaximize kind = "wake and M-step"
	sleep           kind = "sleep"
	maximize        kind = "M-step"
	// maximizeSampled is the M-step of a greedy learner when its coin says that it samples.
	maximizeSampled kind = "sampled M-step"
)

// eStep and mStep are what a Spec describes.
type (
	eStep struct{ *graphs }
	mStep struct{ *graphs }
)

var (
	_ EStepper[[]*tensors.Tensor, Inferred] = eStep{}
	_ MStepper[[]*tensors.Tensor, Inferred] = mStep{}
)

// Inferred are latents that an E-step hands on to M-steps, as MStep.Latents says; none in the zero value.
type Inferred struct {
	Z []*tensors.Tensor
	// LogRatio is log P_B - log P_F of the trajectories that led to them, if they are Weighted.
	LogRatio *tensors.Tensor
}

// Infer implements EStepper: a wake update and its sleep phase.
func (e eStep) Infer(at Moment, x []*tensors.Tensor) (out Inference[Inferred], err error) {
	out.SleepLoss = math.NaN()
	if e.Sleep.Alone {
		out.Sleep, err = e.dream(at, x)
		return out, err
	}
	dream := e.Sleep.Weight != 0 && rng.New(e.Seed, "sleep coin", at.Iteration).Float64() < e.Sleep.Probability
	k, p := wake, e.wake
	ofWake := e.learnsFromWake()
	in := eArgs{HandOn: ofWake}
	switch {
	case dream && !e.Sleep.Apart:
		k, p = wakeAndSleep, e.wakeAndSleep
	case ofWake && at.Maximizes && e.MStep.Moves == 0 && !e.MStep.maximizes():
		k, p = wakeAndMaximize, e.wakeAndMaximize
		in = eArgs{MRates: e.MStep.Optimizer.Rates(at.M)}
	}
	r, err := e.call(k, p, in, at, x)
	if err != nil {
		return out, err
	}
	out.Wake, out.SleepLoss, out.Z = r.E, r.SleepLoss, Inferred{r.Z, r.LogRatio}
	if k == wakeAndMaximize {
		out.M, out.Metrics = &r.M, metrics(r.ESS)
	}
	if dream && e.Sleep.Apart {
		out.Sleep, err = e.dream(at, x)
	}
	return out, err
}

// dream makes a sleep update.
func (e eStep) dream(at Moment, x []*tensors.Tensor) (*Update, error) {
	r, err := e.call(sleep, e.sleep, eArgs{}, at, x)
	return &r.E, err
}

func (e eStep) call(k kind, p *program.Program[eArgs, eResult], in eArgs, at Moment, x []*tensors.Tensor) (eResult, error) {
	in.Key, in.X = rng.Key(e.Seed, string(k), at.Iteration), x
	in.Rates, in.Knobs = e.Wake.Optimizer.Rates(at.Iteration), e.Wake.Explore.At(at.Iteration)
	if k != sleep {
		var err error
		if in.Rows, err = e.Wake.Memory.rows(at.Iteration); err != nil {
			return eResult{}, fmt.Errorf("%s update %d: %w", k, at.Iteration, err)
		}
	}
	out, err := p.Call(in)
	if err == nil {
		err = e.err(out.Strays)
	}
	if err != nil {
		return out, fmt.Errorf("%s update %d: %w", k, at.Iteration, err)
	}
	return out, nil
}

// Maximize implements MStepper.
func (m mStep) Maximize(at Moment, x []*tensors.Tensor, z Inferred) (Maximization, error) {
	if m.MStep.Data != nil {
		x = m.MStep.Data(at.M)
	}
	k := maximize
	g, greedy := m.MStep.Latents.(Greedy)
	if greedy && g.Probability != 0 && rng.New(m.Seed, "greedy coin", at.M).Float64() >= g.Probability {
		k, greedy = maximizeSampled, false
	}
	step := at.Iteration
	if m.MStep.Data != nil {
		step = at.M
	}
	rows, err := m.MStep.Persist.rows(step)
	if err != nil {
		return Maximization{}, fmt.Errorf("%s update %d: %w", k, at.M, err)
	}
	weight, err := m.MStep.weight(at.M)
	if err != nil {
		return Maximization{}, fmt.Errorf("%s update %d: %w", k, at.M, err)
	}
	out, err := m.maximize.Call(mArgs{
		Greedy: greedy, Weight: weight, Key: rng.Key(m.Seed, string(k), at.M), Rates: m.MStep.Optimizer.Rates(at.M),
		Knobs: m.Wake.Explore.At(at.Iteration), X: x, Z: z.Z, LogRatio: z.LogRatio, Rows: rows,
	})
	if err == nil {
		err = m.err(out.Strays)
	}
	if err != nil {
		return Maximization{}, fmt.Errorf("%s update %d: %w", k, at.M, err)
	}
	return Maximization{Update: out.Update, Accepted: out.Accepted, Metrics: metrics(out.ESS)}, nil
}

// metrics are what is said of latents besides their update.
func metrics(ess float64) map[string]float64 {
	if math.IsNaN(ess) {
		return nil
	}
	return map[string]float64{"m/ess": ess}
}
