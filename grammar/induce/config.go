package induce

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/run"
)

// The methods.
const (
	Marginal = "marginal" // gradient of log p(x), all trees added up
	Exact    = "exact"    // EM with one exact sample of the posterior for each sentence
	MCEM     = "mcem"     // EM with the end of a Markov chain over trees for each sentence
	GFN      = "gfn"      // EM with a tree of a GFlowNet for each sentence
)

// Config is the configuration of a training. Its names are those of the command line.
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
	// EBMTempStart and EBMTempEnd are the temperature of the energy at the first and the last update, exponential between.
	EBMTempStart float64 `toml:"ebm_temp_start"`
	EBMTempEnd   float64 `toml:"ebm_temp_end"`

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
	Moves     int     `toml:"moves"`      // back and forth before an M-step
	EMoves    int     `toml:"e_moves"`    // and in iterations without one
	BackSteps int     `toml:"back_steps"` // the most steps that a move goes back
	BackStart int     `toml:"back_start"` // one less than the same for the trained move in the first epoch; it grows by one in each epoch

	// Threshold is the moving average of the wake loss below which M-steps are made; it goes to ThresholdEnd over all updates.
	Threshold    float64 `toml:"threshold"`
	ThresholdEnd float64 `toml:"threshold_end"`
	// MaxIterations ends a training that its gate keeps from updating the grammar; 0 means never.
	MaxIterations int `toml:"max_iterations"`
}

// Paper is the published configuration of a method, apart from its seeds.
func Paper() Config {
	return Config{
		Seed: 1111, Data: "synthetic", Method: Marginal, Grammar: string(grammar.CFG), Nonterminals: 29, Preterminals: 60, Width: 256,
		MaxLength: 20, Batch: 32, Updates: 10_000, LR: 1e-3, Beta1: 0.75, Beta2: 0.999, Clip: 3, Warmup: 40, FinalLR: 39.0 / 40, Decay: 1,
		Pool: 1, Bucket: 20, Tags: true, Chain: 1000,
		EBMUpdates: 20_000, EBMLR: 1e-4, EBML2: 1e-4, EBMReset: 0.1, EBMTempStart: 1, EBMTempEnd: 1000, EvalEvery: 100,
		GFlowNet: GFlowNet{
			GFNWidth: 512, GFNLayers: 6, GFNHeads: 4, GFNLR: 1e-4, FlowLR: 3e-3, GFNBeta1: 0.9, GFNBeta2: 0.99, GFNDecay: 1, Temperature: 1.1,
			Objective: "subtb", Lambda: 1, Sleep: 10, DreamLeaves: 40, DreamSteps: 20,
			Balance: 1, Moves: 10, EMoves: 1, BackSteps: 20, BackStart: 10, Threshold: 6, ThresholdEnd: 3,
		},
	}
}

// Quick learns the synthetic treebank on two cores in about a minute, or several by a GFlowNet, with several times more symbols than
// the treebank has and small batches, which ended in better optima than other settings.
func Quick() Config {
	c := Paper()
	c.Seed, c.Nonterminals, c.Preterminals, c.Width, c.Batch = 0, 20, 40, 64, 16
	c.Updates, c.LR, c.FinalLR, c.Decay, c.Pool, c.Bucket, c.EvalEvery = 0, 3e-3, 1, 0.05, 20, 4, 500
	c.EBMUpdates = 3000
	c.GFNWidth, c.GFNLayers, c.GFNLR, c.FlowLR, c.GFNDecay, c.Moves, c.DreamLeaves, c.DreamSteps = 64, 2, 1e-3, 1e-2, 0.2, 4, 20, 19
	return c
}

// Small learns the posterior of the small grammar, which stays as it is.
func Small() Config {
	c := Paper()
	c.Seed, c.FinalLR = 0, 1
	c.Method, c.Data, c.Fixed, c.MaxLength, c.Bucket, c.Pool = GFN, small, small, smallLongest, smallLongest, 1
	c.Batch, c.Updates, c.Warmup, c.EvalEvery = 32, 6000, 40, 500
	c.GFNWidth, c.GFNLayers, c.GFNHeads, c.GFNLR, c.FlowLR, c.GFNDecay = 32, 2, 2, 3e-3, 1e-2, 0.03
	c.Sleep, c.DreamLeaves, c.DreamSteps = 1, smallLongest+1, smallLongest
	c.Balance, c.EMoves = 0, 0 // the objective alone
	return c
}

var presets = map[string]func() Config{"quick": Quick, "paper": Paper, "small": Small}

// Validate implements the last word of run.Resolve.
func (c *Config) Validate() error {
	for _, k := range []struct{ key, value, known string }{
		{"method", c.Method, Marginal + " " + Exact + " " + MCEM + " " + GFN},
		{"grammar", c.Grammar, string(grammar.CFG) + " " + string(grammar.NCFG)},
		{"objective", c.Objective, "subtb tb hvi none"},
	} {
		if !slices.Contains(strings.Fields(k.known), k.value) {
			return fmt.Errorf("%s = %q is not one of %s", k.key, k.value, k.known)
		}
	}
	if c.EBM && c.Method != MCEM && c.Method != GFN {
		return fmt.Errorf("ebm = true needs method = %q or %q: a prior on whole trees has no exact inference", MCEM, GFN)
	}
	if c.Method == GFN && c.Objective == "none" && c.Sleep == 0 && c.Balance == 0 {
		return fmt.Errorf("objective = %q with sleep = 0 and balance = 0 trains nothing: turn one of them on", c.Objective)
	}
	if c.Method == GFN && c.Objective == "hvi" && (c.Temperature != 1 || c.Epsilon != 0) {
		return fmt.Errorf("objective = %q is right for trees of the policy itself: set temperature = 1 and epsilon = 0", c.Objective)
	}
	if c.GFNHeads > 0 && c.GFNWidth%c.GFNHeads != 0 {
		return fmt.Errorf("gfn_width = %d cannot be divided among gfn_heads = %d", c.GFNWidth, c.GFNHeads)
	}
	if c.Fixed != "" && c.Method != GFN {
		return fmt.Errorf("fixed = %q needs method = %q: no other one learns anything from a grammar that stays as it is", c.Fixed, GFN)
	}
	for key, path := range map[string]*string{"data": &c.Data, "fixed": &c.Fixed} {
		if *path == "" && key == "fixed" || builtIn(*path) {
			continue
		}
		abs, err := filepath.Abs(*path) // a run is resumed and evaluated from other folders, too
		if err != nil {
			return fmt.Errorf("%s = %q: %w", key, *path, err)
		}
		*path = abs
	}
	if c.Updates == 0 {
		c.Updates = 10_000
		if c.Method == GFN {
			c.Updates = 4000
		}
	}
	big := math.MaxInt32 * 1.0
	for _, b := range []struct {
		key              string
		value, low, high float64
	}{
		{"seed", float64(c.Seed), 0, math.MaxInt64},
		{"nonterminals", float64(c.Nonterminals), 1, 500}, {"preterminals", float64(c.Preterminals), 1, 1000},
		{"width", float64(c.Width), 1, 1 << 14}, {"max_length", float64(c.MaxLength), 2, 200}, {"batch", float64(c.Batch), 1, 1 << 16},
		{"updates", float64(c.Updates), 1, big}, {"lr", c.LR, 0, 1e3}, {"beta1", c.Beta1, 0, 0.999999}, {"beta2", c.Beta2, 0, 0.9999999},
		{"clip", c.Clip, 0, 1e12}, {"warmup", float64(c.Warmup), 0, big}, {"lr_drop", c.FinalLR, 0, 1}, {"lr_end", c.Decay, 1e-9, 1},
		{"pool", float64(c.Pool), 1, big}, {"bucket", float64(c.Bucket), 1, 200}, {"chain", float64(c.Chain), 0, big},
		{"ebm_updates", float64(c.EBMUpdates), 0, big}, {"ebm_lr", c.EBMLR, 0, 1e3}, {"ebm_l2", c.EBML2, 0, 1e3}, {"ebm_reset", c.EBMReset, 0, 1},
		{"ebm_temp_start", c.EBMTempStart, 1e-6, 1e9}, {"ebm_temp_end", c.EBMTempEnd, 1e-6, 1e9}, {"eval_every", float64(c.EvalEvery), 0, big},
		{"gfn_width", float64(c.GFNWidth), 1, 1 << 14}, {"gfn_layers", float64(c.GFNLayers), 1, 100}, {"gfn_heads", float64(c.GFNHeads), 1, 1 << 10},
		{"gfn_lr", c.GFNLR, 0, 1e3}, {"gfn_flow_lr", c.FlowLR, 0, 1e3}, {"gfn_beta1", c.GFNBeta1, 0, 0.999999}, {"gfn_beta2", c.GFNBeta2, 0, 0.9999999},
		{"gfn_lr_end", c.GFNDecay, 1e-9, 1}, {"temperature", c.Temperature, 1e-3, 1e6}, {"epsilon", c.Epsilon, 0, 1}, {"lambda", c.Lambda, 1e-9, 1e3},
		{"sleep", c.Sleep, 0, 1e9}, {"dream_leaves", float64(c.DreamLeaves), 2, 1000}, {"dream_steps", float64(c.DreamSteps), 1, 1000},
		{"balance", c.Balance, 0, 1e9}, {"moves", float64(c.Moves), 0, 1e6}, {"e_moves", float64(c.EMoves), 0, 1e6},
		{"back_steps", float64(c.BackSteps), 1, 1000}, {"back_start", float64(c.BackStart), 0, 1000},
		{"threshold", c.Threshold, 0, 1e300}, {"threshold_end", c.ThresholdEnd, 0, 1e300}, {"max_iterations", float64(c.MaxIterations), 0, big},
	} {
		if !(b.low <= b.value && b.value <= b.high) {
			return fmt.Errorf("%s = %.12g is not between %.12g and %.12g", b.key, b.value, b.low, b.high)
		}
	}
	return nil
}

// builtIn says whether a name is that of data, and of a grammar, which the program has.
func builtIn(name string) bool {
	return name == small || name == "synthetic" || name == "synthetic-ncfg"
}

// model returns the network of a configuration for a vocabulary.
func (c *Config) model(words int) grammar.Neural {
	m := grammar.Paper(grammar.Kind(c.Grammar), words, 0)
	m.Nonterminals, m.Preterminals, m.Width = c.Nonterminals, c.Preterminals, c.Width
	return m
}

var _ run.Task = Task{}
