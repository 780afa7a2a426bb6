package mixture

import (
	"math"

	"github.com/gfnem/gfnem/config"
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
	Batch       int     `toml:"batch"` // points per E-update; 0, or more than there are, means all
	Hidden      int     `toml:"hidden"`
	LR          float64 `toml:"gfn_lr"`
	LRDrop      float64 `toml:"gfn_lr_drop"` // multiplies gfn_lr for the second half of the updates
	Epsilon     float64 `toml:"epsilon"`
	EpsilonEnd  float64 `toml:"epsilon_end"` // reached linearly over the first half of the updates; -1 means epsilon
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
		ESteps: 1000, Hidden: 32, LR: 3e-4, LRDrop: 1, EpsilonEnd: -1, RewardClip: DefaultClip,
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

// Best is the most reliable configuration we know, and a cheap one. Few E-updates between M-steps let policy and means
// sharpen together, like annealing: the first M-steps see a broad policy, which pulls the means inward and so forgets a bad
// start, where a policy trained to the end first would follow it into a local optimum.
func Best() Config {
	c := Released()
	c.Iterations, c.ESteps, c.Batch, c.ClosedForm = 100, 30, 256, true
	c.LR, c.LRDrop, c.Epsilon, c.EpsilonEnd = 1e-2, 0.2, 0.03, 0
	return c
}

// Quick is Best with fewer updates and no schedules.
func Quick() Config {
	c := Best()
	c.Iterations, c.ESteps, c.LRDrop, c.EpsilonEnd = 60, 20, 1, -1
	return c
}

var presets = map[string]func() Config{
	"quick": Quick, "paper": Released, "recommended": Recommended, "best": Best,
}

// Validate implements the last word of config.Resolve.
func (c *Config) Validate() error {
	big := math.MaxInt32 * 1.0
	return config.CheckRanges([]config.Range{
		{"seed", float64(c.Seed), 0, math.MaxInt64}, {"run", float64(c.Run), 0, big},
		{"n_points", float64(c.Points), 1, 1e7}, {"n_super", float64(c.Super), 1, 64}, {"n_petals", float64(c.Petals), 1, 64},
		{"sigma", c.Sigma, 1e-6, 1e6}, {"iterations", float64(c.Iterations), 1, big},
		{"e_steps", float64(c.ESteps), 1, big}, {"first_e_steps", float64(c.FirstESteps), 0, big},
		{"batch", float64(c.Batch), 0, big}, {"hidden", float64(c.Hidden), 1, 1 << 16},
		{"gfn_lr", c.LR, 0, 1e3}, {"gfn_lr_drop", c.LRDrop, 0, 1},
		{"epsilon", c.Epsilon, 0, 1}, {"epsilon_end", c.EpsilonEnd, -1, 1}, {"reward_clip", c.RewardClip, math.Inf(-1), -1e-9},
		{"loss_threshold", c.LossThreshold, 0, math.Inf(1)}, {"m_steps", float64(c.MSteps), 1, big},
		{"m_lr", c.MLR, 0, 1e3}, {"posterior_samples", float64(c.PosteriorSamples), 1, 1e4},
		{"mcmc_moves", float64(c.Moves), 0, 1000},
	})
}

var _ run.Task = Task{}
