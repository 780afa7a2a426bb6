package induce

import (
	"math"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/grammar/parse"
	"github.com/gfnem/gfnem/grammar/prior"
	"github.com/gfnem/gfnem/grammar/synthetic"
	"github.com/gfnem/gfnem/treebank"
)

// The methods.
const (
	Marginal = "marginal" // gradient of log p(x), all trees added up
	Exact    = "exact"    // EM with one exact sample of the posterior for each sentence
	MCEM     = "mcem"     // EM with the end of a Markov chain over trees for each sentence
	GFN      = "gfn"      // EM with a tree of a GFlowNet for each sentence
)

// How the temperature of the prior changes.
const (
	annealExp    = "exp"
	annealLinear = "linear"
)

// Config is the configuration of a training. Its names are those of the command line; those of method gfn are in GFlowNet.
type Config struct {
	Seed    uint64 `toml:"seed"`
	Data    string `toml:"data"`    // a folder of "gfnem data treebank", or synthetic, synthetic-ncfg or small
	Method  string `toml:"method"`  // marginal, exact, mcem or gfn
	Grammar string `toml:"grammar"` // cfg or ncfg
	// Fixed names a grammar that is given and stays as it is, so that method gfn learns its posterior alone: the folder of a run, a
	// JSON file, or small, synthetic or synthetic-ncfg, the grammars behind the data of these names. Symbols and words are the
	// grammar's then, and updates are those of the GFlowNet.
	Fixed string `toml:"fixed"`

	Nonterminals int `toml:"nonterminals"` // without ROOT
	Preterminals int `toml:"preterminals"`
	Width        int `toml:"width"` // of embeddings
	// ParentScale is the standard deviation of the embeddings of parents at the start, 1 as published: 0 lets a Non-CFG start as a CFG.
	ParentScale float64 `toml:"parent_scale"`

	MaxLength int     `toml:"max_length"` // longer sentences are left out, in training and evaluation
	Batch     int     `toml:"batch"`
	Updates   int     `toml:"updates"` // 0 means as many as a method makes in some minutes: 10,000, or 4,000 for gfn
	LR        float64 `toml:"lr"`
	Beta1     float64 `toml:"beta1"`
	Beta2     float64 `toml:"beta2"`
	Clip      float64 `toml:"clip"`    // of the gradient's norm; 0 means none
	Warmup    int     `toml:"warmup"`  // updates over which the rate rises
	FinalLR   float64 `toml:"lr_drop"` // multiplies lr after warm-up
	Decay     float64 `toml:"lr_end"`  // multiplies lr at the last update, reached exponentially after a quarter of them

	// Pool is the number of batches whose sentences are sorted by length together, so that batches have sentences of about
	// the same length; 1 mixes all lengths.
	Pool int `toml:"pool"`
	// Bucket is the step of sentence lengths for which programs are compiled; batches are padded up to one.
	Bucket int `toml:"bucket"`
	// Tags makes the M-step of exact sampling see the sampled preterminals, as published; otherwise they are summed out.
	Tags  bool `toml:"tags"`
	Chain int  `toml:"chain"` // steps of a Markov chain

	// EBM multiplies the posterior of mcem and gfn by an energy-based prior on the shapes of trees, learned from the gold trees first.
	EBM        bool    `toml:"ebm"`
	EBMUpdates int     `toml:"ebm_updates"`
	EBMLR      float64 `toml:"ebm_lr"`
	EBML2      float64 `toml:"ebm_l2"`
	EBMReset   float64 `toml:"ebm_reset"` // probability that a tree of the buffer is replaced by a gold tree
	// EBMTempStart is the temperature of the energy at the first update, EBMTempEnd that from the horizon on. EBMAnneal says what is between
	// them: exp as in the published commands, or linear.
	EBMTempStart float64 `toml:"ebm_temp_start"`
	EBMTempEnd   float64 `toml:"ebm_temp_end"`
	EBMAnneal    string  `toml:"ebm_anneal"`

	// Horizon is the number of updates over which the temperature of the prior and the threshold of the gate change; 0 means updates. With
	// horizon = 10000 a shorter training follows the published schedules, as far as it goes.
	Horizon int `toml:"horizon"`

	EvalEvery int `toml:"eval_every"` // updates between evaluations on validation sentences; 0 means never

	GFlowNet
}

// GFlowNet is the part of a configuration for method gfn.
type GFlowNet struct {
	GFNWidth  int  `toml:"gfn_width"`
	GFNLayers int  `toml:"gfn_layers"`
	GFNHeads  int  `toml:"gfn_heads"`
	GFNHalf   bool `toml:"gfn_half"`   // products of 16-bit numbers in the transformer
	GFNLinear bool `toml:"gfn_linear"` // attention whose cost in walks grows with the number of trees, not with its square
	// UniformBack makes P_B uniform over the trees that can be split; otherwise it is learned, as published.
	UniformBack bool `toml:"gfn_uniform_back"`
	// Learning rates of the network and of its flow head, and Adam's decays.
	GFNLR    float64 `toml:"gfn_lr"`
	FlowLR   float64 `toml:"gfn_flow_lr"`
	GFNBeta1 float64 `toml:"gfn_beta1"`
	GFNBeta2 float64 `toml:"gfn_beta2"`
	// GFNDecay multiplies both rates at iteration number updates, reached exponentially after a quarter of them.
	GFNDecay float64 `toml:"gfn_lr_end"`

	// Exploration: the temperature of the policy that acts, and the probability of a uniform choice.
	Temperature float64 `toml:"temperature"`
	Epsilon     float64 `toml:"epsilon"`

	Objective string  `toml:"objective"` // of wake: subtb, tb, hvi or none
	Lambda    float64 `toml:"lambda"`    // of subtb

	Sleep       float64 `toml:"sleep"`        // weight of the sleep loss; 0 means no sleep
	DreamLeaves int     `toml:"dream_leaves"` // at which a dreamt tree stops growing
	DreamSteps  int     `toml:"dream_steps"`  // of a dreamt tree that are trained, from its top

	Balance   float64 `toml:"balance"`    // weight of the balance between the two trees of a move; 0 means it is not trained
	Moves     int     `toml:"moves"`      // back and forth before an M-step; 0 still makes the one that is trained, unless balance = 0
	EMoves    int     `toml:"e_moves"`    // and in iterations without one; none if balance = 0, since nothing would come of them
	BackSteps int     `toml:"back_steps"` // the most steps that a move goes back
	BackStart int     `toml:"back_start"` // one less than the same for the trained move in the first epoch; it grows by one in each epoch

	// Threshold is the moving average of the wake loss below which M-steps are made; it goes to ThresholdEnd over the horizon. -1 means as
	// published: from 6, Non-CFG 7, with a prior 4, to half of it.
	Threshold    float64 `toml:"threshold"`
	ThresholdEnd float64 `toml:"threshold_end"`
	// MaxIterations ends a training that its gate keeps from updating the grammar; 0 means never.
	MaxIterations int `toml:"max_iterations"`
}

// Paper is the published configuration of a method, apart from its seeds.
func Paper() Config {
	return Config{
		Seed: 1111, Data: "synthetic", Method: Marginal, Grammar: string(grammar.CFG), Nonterminals: 29, Preterminals: 60, Width: 256, ParentScale: 1,
		MaxLength: 20, Batch: 32, Updates: 10_000, LR: 1e-3, Beta1: 0.75, Beta2: 0.999, Clip: 3, Warmup: 40, FinalLR: 39.0 / 40, Decay: 1,
		Pool: 1, Bucket: 20, Tags: true, Chain: 1000,
		EBMUpdates: 20_000, EBMLR: 1e-4, EBML2: 1e-4, EBMReset: 0.1, EBMTempStart: 1, EBMTempEnd: 1000, EBMAnneal: annealExp,
		EvalEvery: 100,
		GFlowNet: GFlowNet{
			GFNWidth: 512, GFNLayers: 6, GFNHeads: 4, GFNLR: 1e-4, FlowLR: 3e-3, GFNBeta1: 0.9, GFNBeta2: 0.99, GFNDecay: 1, Temperature: 1.1,
			Objective: "subtb", Lambda: 1, Sleep: 10, DreamLeaves: 40, DreamSteps: 20,
			Balance: 1, Moves: 10, EMoves: 1, BackSteps: 20, BackStart: 10, Threshold: -1, ThresholdEnd: -1,
		},
	}
}

// Quick learns the synthetic treebank on two cores in about a minute, or several by a GFlowNet, with several times more symbols than
// the treebank has and small batches, which ended in better optima than other settings.
func Quick() Config {
	c := Paper()
	c.Seed, c.Nonterminals, c.Preterminals, c.Width, c.Batch = 0, 20, 40, 64, 16
	c.Updates, c.LR, c.FinalLR, c.Decay, c.Pool, c.Bucket, c.EvalEvery = 0, 3e-3, 1, 0.05, 20, 4, 500
	c.EBMUpdates, c.Threshold, c.ThresholdEnd = 3000, 6, 3
	c.ParentScale = 0
	c.GFNWidth, c.GFNLayers, c.GFNLR, c.FlowLR, c.GFNDecay, c.Moves, c.DreamLeaves, c.DreamSteps = 64, 2, 1e-3, 1e-2, 0.2, 4, 20, 19
	return c
}

// Small learns the posterior of the small grammar, which stays as it is.
func Small() Config {
	c := Paper()
	c.Seed, c.FinalLR = 0, 1
	c.Method, c.Data, c.Fixed, c.MaxLength, c.Bucket, c.Pool = GFN, small, small, synthetic.SmallLongest, synthetic.SmallLongest, 1
	c.Batch, c.Updates, c.Warmup, c.EvalEvery = 32, 6000, 40, 500
	c.GFNWidth, c.GFNLayers, c.GFNHeads, c.GFNLR, c.FlowLR, c.GFNDecay = 32, 2, 2, 3e-3, 1e-2, 0.03
	c.Sleep, c.DreamLeaves, c.DreamSteps = 1, synthetic.SmallLongest+1, synthetic.SmallLongest
	c.Balance, c.EMoves = 0, 0 // the objective alone
	return c
}

var presets = map[string]func() Config{"quick": Quick, "paper": Paper, "small": Small}

// model returns the network of a configuration for a vocabulary.
func (c *Config) model(words int) grammar.Neural {
	m := grammar.Paper(grammar.Kind(c.Grammar), words, 0)
	m.Nonterminals, m.Preterminals, m.Width, m.ParentScale = c.Nonterminals, c.Preterminals, c.Width, c.ParentScale
	return m
}

// batches says how sentences are put into batches.
func (c *Config) batches() parse.Batches {
	return parse.Batches{Rows: c.Batch, Bucket: c.Bucket, Most: c.MaxLength}
}

// newPrior prepares to learn the prior from gold trees.
func (c *Config) newPrior(train *treebank.Split) (*prior.Trainer, error) {
	if !train.Gold {
		return nil, badinput.Errorf("ebm = true learns from gold trees, and %s has none", c.Data)
	}
	return prior.NewTrainer(prior.Config{Seed: c.Seed, Batch: c.Batch, LR: c.EBMLR, L2: c.EBML2, Reset: c.EBMReset}, train.Sentences), nil
}

// ebmTemperature is the temperature of the prior after so many updates.
func (c *Config) ebmTemperature(updates uint64) float64 {
	done := min(1, float64(updates)/float64(c.Horizon))
	if c.EBMAnneal == annealLinear {
		return c.EBMTempStart + (c.EBMTempEnd-c.EBMTempStart)*done
	}
	return c.EBMTempStart * math.Pow(c.EBMTempEnd/c.EBMTempStart, done)
}

// threshold is that of the gate, by the number of M-steps.
func (c *Config) threshold() em.Linear {
	return em.Linear{From: c.Threshold, To: c.ThresholdEnd, Over: uint64(c.Horizon)}
}
