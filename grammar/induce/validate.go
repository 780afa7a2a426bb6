package induce

import (
	"cmp"
	"fmt"
	"math"

	"github.com/gfnem/gfnem/config"
	"github.com/gfnem/gfnem/grammar"
)

// Validate implements the last word of config.Resolve. It fills in what a configuration leaves open.
func (c *Config) Validate() error {
	for _, check := range []func() error{c.checkNames, c.checkTogether, c.makeAbsolute} {
		if err := check(); err != nil {
			return err
		}
	}
	c.fill()
	return c.checkRanges()
}

func (c *Config) checkNames() error {
	return cmp.Or(
		config.CheckName("method", c.Method, Marginal, Exact, MCEM, GFN),
		config.CheckName("grammar", c.Grammar, string(grammar.CFG), string(grammar.NCFG)),
		config.CheckName("ebm_anneal", c.EBMAnneal, annealExp, annealLinear),
		config.CheckName("objective", c.Objective, "subtb", "tb", "hvi", "none"),
	)
}

// checkTogether refuses settings that do not go with each other.
func (c *Config) checkTogether() error {
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
	return nil
}

func (c *Config) makeAbsolute() error {
	names := []string{small, "synthetic", "synthetic-ncfg"} // of data, and of grammars, that the program has
	return cmp.Or(config.MakeAbsolute("data", &c.Data, names...), config.MakeAbsolute("fixed", &c.Fixed, append(names, "")...))
}

// fill gives keys that are left open the values that they have then.
func (c *Config) fill() {
	if c.Updates == 0 {
		c.Updates = 10_000
		if c.Method == GFN {
			c.Updates = 4000
		}
	}
	if c.Horizon == 0 {
		c.Horizon = c.Updates
	}
	if c.Threshold == -1 {
		switch {
		case c.EBM:
			c.Threshold = 4
		case c.Grammar == string(grammar.NCFG):
			c.Threshold = 7
		default:
			c.Threshold = 6
		}
	}
	if c.ThresholdEnd == -1 {
		c.ThresholdEnd = c.Threshold / 2
	}
}

func (c *Config) checkRanges() error {
	big := math.MaxInt32 * 1.0
	return config.CheckRanges([]config.Range{
		{"seed", float64(c.Seed), 0, math.MaxInt64},
		{"nonterminals", float64(c.Nonterminals), 1, 500}, {"preterminals", float64(c.Preterminals), 1, 1000},
		{"width", float64(c.Width), 1, 1 << 14}, {"parent_scale", c.ParentScale, 0, 1e3},
		{"max_length", float64(c.MaxLength), 2, 200}, {"batch", float64(c.Batch), 1, 1 << 16},
		{"updates", float64(c.Updates), 1, big}, {"lr", c.LR, 0, 1e3}, {"beta1", c.Beta1, 0, 0.999999}, {"beta2", c.Beta2, 0, 0.9999999},
		{"clip", c.Clip, 0, 1e12}, {"warmup", float64(c.Warmup), 0, big}, {"lr_drop", c.FinalLR, 0, 1}, {"lr_end", c.Decay, 1e-9, 1},
		{"pool", float64(c.Pool), 1, big}, {"bucket", float64(c.Bucket), 1, 200}, {"chain", float64(c.Chain), 0, big},
		{"ebm_updates", float64(c.EBMUpdates), 0, big}, {"ebm_lr", c.EBMLR, 0, 1e3}, {"ebm_l2", c.EBML2, 0, 1e3}, {"ebm_reset", c.EBMReset, 0, 1},
		{"ebm_temp_start", c.EBMTempStart, 1e-6, 1e9}, {"ebm_temp_end", c.EBMTempEnd, 1e-6, 1e9}, {"eval_every", float64(c.EvalEvery), 0, big},
		{"horizon", float64(c.Horizon), 1, big},
		{"gfn_width", float64(c.GFNWidth), 1, 1 << 14}, {"gfn_layers", float64(c.GFNLayers), 1, 100}, {"gfn_heads", float64(c.GFNHeads), 1, 1 << 10},
		{"gfn_lr", c.GFNLR, 0, 1e3}, {"gfn_flow_lr", c.FlowLR, 0, 1e3}, {"gfn_beta1", c.GFNBeta1, 0, 0.999999}, {"gfn_beta2", c.GFNBeta2, 0, 0.9999999},
		{"gfn_lr_end", c.GFNDecay, 1e-9, 1}, {"temperature", c.Temperature, 1e-3, 1e6}, {"epsilon", c.Epsilon, 0, 1}, {"lambda", c.Lambda, 1e-9, 1e3},
		{"sleep", c.Sleep, 0, 1e9}, {"dream_leaves", float64(c.DreamLeaves), 2, 1000}, {"dream_steps", float64(c.DreamSteps), 1, 1000},
		{"balance", c.Balance, 0, 1e9}, {"moves", float64(c.Moves), 0, 1e6}, {"e_moves", float64(c.EMoves), 0, 1e6},
		{"back_steps", float64(c.BackSteps), 1, 1000}, {"back_start", float64(c.BackStart), 0, 1000},
		{"threshold", c.Threshold, 0, 1e300}, {"threshold_end", c.ThresholdEnd, 0, 1e300}, {"max_iterations", float64(c.MaxIterations), 0, big},
	})
}
