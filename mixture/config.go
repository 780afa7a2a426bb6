package mixture

import (
	"github.com/gfnem/gfnem/internal/memory"
	"github.com/gfnem/gfnem/run"
)

// Config is the configuration of a training.
type Config struct {
	Seed       uint64 `toml:"seed" range:"0,9223372036854775807" help:"seed of all random numbers"`
	Run        int    `toml:"run" range:"0,2147483647" help:"which of the data sets and starts that the seed draws"`
	Points     int    `toml:"points" range:"1,1e7" was:"n_points" help:"size of the data set"`
	Iterations int    `toml:"iterations" range:"1,2147483647" resume:"may change" help:"iterations of EM"`
	Batch      int    `toml:"batch" range:"0,2147483647" help:"points per E-update; 0, or more than there are, means all"`

	Model  Problem `toml:"model" help:"the mixture that draws the points"`
	Policy struct {
		Hidden int `toml:"hidden" range:"1,65536" was:"hidden" help:"width of the network's hidden layer"`
	} `toml:"policy" help:"the GFlowNet"`
	Wake struct {
		Epsilon    float64 `toml:"epsilon" range:"0,1" was:"epsilon" help:"probability of a random action"`
		EpsilonEnd float64 `toml:"epsilon_end" range:"0,1" or:"-1" was:"epsilon_end" help:"epsilon from half of the E-updates on, reached linearly; -1 means epsilon"`
		RewardClip float64 `toml:"reward_clip" range:"-inf,-1e-9" was:"reward_clip" help:"least log-reward; -inf means none"`
	} `toml:"wake" help:"E-updates on the GFlowNet's own samples"`
	Gate struct {
		ESteps      int     `toml:"e_steps" range:"1,2147483647" was:"e_steps" help:"E-updates of an iteration"`
		FirstESteps int     `toml:"first_e_steps" range:"0,2147483647" was:"first_e_steps" help:"E-updates of the first iteration; 0 means e_steps"`
		MSteps      int     `toml:"m_steps" range:"1,2147483647" was:"m_steps" help:"M-updates of an iteration"`
		Below       float64 `toml:"below" range:"0,inf" was:"loss_threshold" help:"the M-step is left out if the last loss is not below this; 0 means never"`
	} `toml:"gate" help:"when M-steps happen"`
	MStep struct {
		ClosedForm bool `toml:"closed_form" was:"closed_form" help:"solve for the means instead of following the gradient"`
		Samples    int  `toml:"samples" range:"1,1e4" was:"posterior_samples" help:"latents per point"`
	} `toml:"mstep" help:"M-updates"`
	Moves struct {
		Count int `toml:"count" range:"0,1000" was:"mcmc_moves" help:"back-and-forth Metropolis-Hastings moves of the latents before an M-update"`
	} `toml:"moves" help:"refinement of latents"`
	Optim struct {
		Phi struct {
			Rate float64 `toml:"rate" range:"0,1e3" was:"gfn_lr" resume:"may change" help:"learning rate"`
			Drop float64 `toml:"drop" range:"0,1" was:"gfn_lr_drop" help:"factor of the rate in the second half of the E-updates"`
		} `toml:"phi" help:"Adam, of the GFlowNet"`
		Theta struct {
			Rate float64 `toml:"rate" range:"0,1e3" was:"m_lr" resume:"may change" help:"learning rate"`
		} `toml:"theta" help:"gradient descent, of the means"`
	} `toml:"optim" help:"optimisers"`
}

// PaperConfig is the published configuration, apart from its seeds.
func PaperConfig() Config {
	c := Config{Points: DefaultPoints, Iterations: DefaultIterations, Model: Problem{}.filled()}
	c.Policy.Hidden = 32
	c.Wake.EpsilonEnd, c.Wake.RewardClip = -1, DefaultClip
	c.Gate.ESteps, c.Gate.MSteps = 1000, 1
	c.MStep.Samples = 1
	c.Optim.Phi.Rate, c.Optim.Phi.Drop, c.Optim.Theta.Rate = 3e-4, 1, DefaultRate
	return c
}

// RecommendedConfig is the published configuration with exploration and a larger learning rate, which it needs to reach
// the published result.
func RecommendedConfig() Config {
	c := PaperConfig()
	c.Wake.Epsilon, c.Optim.Phi.Rate = 0.1, 3e-3
	return c
}

// BestConfig is the most reliable configuration we know, and a cheap one. Few E-updates between M-steps let policy and
// means sharpen together, like annealing: the first M-steps see a broad policy, which pulls the means inward and so
// forgets a bad start, where a policy trained to the end first would follow it into a local optimum.
func BestConfig() Config {
	c := PaperConfig()
	c.Iterations, c.Batch = 100, 256
	c.Wake.Epsilon, c.Wake.EpsilonEnd = 0.03, 0
	c.Gate.ESteps, c.MStep.ClosedForm = 30, true
	c.Optim.Phi.Rate, c.Optim.Phi.Drop = 1e-2, 0.2
	return c
}

// QuickConfig is BestConfig with fewer updates and no schedules.
func QuickConfig() Config {
	c := BestConfig()
	c.Iterations, c.Gate.ESteps = 60, 20
	c.Wake.EpsilonEnd, c.Optim.Phi.Drop = -1, 1
	return c
}

// MemoryKeys lists the keys that memory grows with.
func (c *Config) MemoryKeys() []string {
	keys := []string{"points", "model.super", "model.petals", "policy.hidden", "mstep.samples"}
	if c.Batch > 0 && c.Batch < c.Points {
		keys = append(keys, "batch")
	}
	return keys
}

// fits refuses early what an M-update of all points needs in any case: the points, and their hidden layer if it is too
// wide to be computed piece by piece.
func (c *Config) fits() error {
	numbers := 2.0
	if c.Policy.Hidden >= 1024 {
		numbers += float64(c.Policy.Hidden)
	}
	return memory.Fits("an M-update of all points", 32*float64(c.Points)+4*numbers*float64(c.Points)*float64(c.MStep.Samples))
}

var presets = map[string]func() Config{
	"quick": QuickConfig, "paper": PaperConfig, "recommended": RecommendedConfig, "best": BestConfig,
}

var _ run.Task = Task{}
