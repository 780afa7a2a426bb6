package mixture

import (
	"fmt"
	"math"

	"github.com/gfnem/gfnem/run"
)

// Config is the configuration of a training. Its names are those of the command line.
type Config struct {
	Seed uint64 `toml:"seed"`
	// Run numbers the data set and start drawn from the seed, see Experiment.Draw.
	Run int `toml:"run"`

	Points     int     `toml:"n_points"`
	Super      int     `toml:"n_super"`
	Petals     int     `toml:"n_petals"`
	Sigma      float64 `toml:"sigma"`
	Iterations int     `toml:"iterations"` // of EM

	ESteps int `toml:"e_steps"` // E-updates per iteration
	// FirstESteps is the number of E-updates of the first iteration; 0 means e_steps.
	FirstESteps int     `toml:"first_e_steps"`
	Batch       int     `toml:"batch"` // points per E-update; 0 means all
	Hidden      int     `toml:"hidden"`
	LR          float64 `toml:"gfn_lr"`
	Epsilon     float64 `toml:"epsilon"`
	RewardClip  float64 `toml:"reward_clip"` // -inf means none
	// LossThreshold skips the M-step of an iteration that ends with a loss not below it; 0 means never.
	LossThreshold float64 `toml:"loss_threshold"`

	MSteps     int     `toml:"m_steps"`
	MLR        float64 `toml:"m_lr"`
	ClosedForm bool    `toml:"closed_form"` // the M-step solves for the means instead of following the gradient
	// PosteriorSamples is the number of latents per point in the M-step.
	PosteriorSamples int `toml:"posterior_samples"`
	// Moves is the number of back-and-forth Metropolis-Hastings moves that refine the M-step's latents.
	Moves int `toml:"mcmc_moves"`
}

// Released is the published configuration, apart from its seeds.
func Released() Config {
	return Config{
		Points: DefaultPoints, Super: 4, Petals: 4, Sigma: 0.25, Iterations: DefaultIterations,
		ESteps: 1000, Hidden: 32, LR: 3e-4, RewardClip: DefaultClip,
		MSteps: 1, MLR: 0.1, PosteriorSamples: 1,
	}
}

// Recommended is the published configuration with exploration and a larger learning rate, which it needs to reach the
// published result.
func Recommended() Config {
	c := Released()
	c.LR, c.Epsilon = 3e-3, 0.1
	return c
}

// Best is the most reliable configuration we know.
func Best() Config {
	c := Recommended()
	c.ClosedForm = true
	return c
}

// Quick shows the effect in a minute on two cores.
func Quick() Config {
	c := Best()
	c.Batch, c.ESteps, c.FirstESteps, c.Iterations = 512, 200, 1000, 40
	return c
}

var presets = map[string]func() Config{
	"quick": Quick, "paper": Released, "recommended": Recommended, "best": Best,
}

// Validate implements the last word of run.Resolve.
func (c *Config) Validate() error {
	type bound struct {
		key       string
		value     float64
		low, high float64
	}
	big := math.MaxInt32 * 1.0
	for _, b := range []bound{
		{"seed", float64(c.Seed), 0, math.MaxInt64}, {"run", float64(c.Run), 0, big},
		{"n_points", float64(c.Points), 1, 1e7}, {"n_super", float64(c.Super), 1, 64}, {"n_petals", float64(c.Petals), 1, 64},
		{"sigma", c.Sigma, 1e-6, 1e6}, {"iterations", float64(c.Iterations), 1, big},
		{"e_steps", float64(c.ESteps), 1, big}, {"first_e_steps", float64(c.FirstESteps), 0, big},
		{"batch", float64(c.Batch), 0, float64(c.Points)}, {"hidden", float64(c.Hidden), 1, 1 << 16},
		{"gfn_lr", c.LR, 0, 1e3}, {"epsilon", c.Epsilon, 0, 1}, {"reward_clip", c.RewardClip, math.Inf(-1), -1e-9},
		{"loss_threshold", c.LossThreshold, 0, math.Inf(1)}, {"m_steps", float64(c.MSteps), 1, big},
		{"m_lr", c.MLR, 0, 1e3}, {"posterior_samples", float64(c.PosteriorSamples), 1, 1e4},
		{"mcmc_moves", float64(c.Moves), 0, 1000},
	} {
		if !(b.low <= b.value && b.value <= b.high) {
			return fmt.Errorf("%s = %g is not between %g and %g", b.key, b.value, b.low, b.high)
		}
	}
	return nil
}

var _ run.Task = Task{}
