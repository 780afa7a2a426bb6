package induce

import (
	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/grammar/synthetic"
)

var presets = map[string]func() Config{
	"quick": fitting(QuickConfig), "best": fitting(BestConfig), "paper": fitting(PaperConfig), "small": SmallConfig,
}

// PaperConfig is the published configuration of a method, apart from its seeds.
func PaperConfig() Config {
	c := Config{
		Seed: 1111, Data: "synthetic", Method: Marginal, MaxLength: 20, Batch: 32, Updates: 10_000, Pool: 1, Bucket: 20, Chain: 1000,
	}
	c.Model.Grammar, c.Model.Nonterminals, c.Model.Preterminals, c.Model.Width = string(grammar.CFG), 29, 60, 256
	c.Model.Init, c.Model.ParentScale = grammar.Published, 1
	c.Policy.Width, c.Policy.Layers, c.Policy.Heads, c.Policy.Trees = 512, 6, 4, Labelled
	c.Wake.Objective, c.Wake.Samples, c.Wake.Lambda, c.Wake.Beta = "subtb", 1, 1, 1/1.1
	c.Sleep.Weight, c.Sleep.Leaves, c.Sleep.Steps = 10, 40, 20
	c.Moves.Count, c.Moves.ECount, c.Moves.Steps, c.Moves.FirstSteps, c.Moves.Balance = 10, 1, 20, 10, 1
	c.Gate.Threshold, c.Gate.ThresholdEnd = -1, -1
	c.MStep.Collapse, c.MStep.Samples = Published, 1
	o := &c.Optim
	o.Clip, o.Warmup, o.Drop = 3, 40, 39.0/40
	o.Phi.Rate, o.Phi.FlowRate, o.Phi.Beta1, o.Phi.Beta2, o.Phi.End = 1e-4, 3e-3, 0.9, 0.99, 1
	o.Theta.Rate, o.Theta.Beta1, o.Theta.Beta2, o.Theta.End = 1e-3, 0.75, 0.999, 1
	p := &c.Prior
	p.Updates, p.Rate, p.L2, p.Reset = 20_000, 1e-4, 1e-4, 0.1
	p.Temperature, p.TemperatureEnd, p.Anneal = 1, 1000, "exp"
	c.Restarts, c.Eval.Every, c.Eval.Select = 1, 100, Last
	c.Text = usualText
	return c
}

// BestConfig is what does better than the paper at its size: shapes, several walks and their weights, and the best
// state by validation. M-steps of all methods sum labels out.
func BestConfig() Config {
	c := PaperConfig()
	c.WeighShapes()
	c.MStep.Collapse = Labels
	c.Eval.Select, c.Eval.Patience = Best, 20
	return c
}

// WeighShapes has a GFlowNet build shapes, several of each sentence, which are compared with each other, and M-steps
// learn from these by their importance weights, without moves. The loss is of whole trajectories, so that the gate's
// threshold is greater.
func (c *Config) WeighShapes() {
	c.Policy.Trees = Shapes
	c.Wake.Samples, c.Wake.Objective, c.MStep.Weights = 4, "vargrad", true
	c.Moves.Count, c.Moves.ECount, c.Moves.Balance = 0, 0, 0
	c.Gate.Threshold, c.Gate.ThresholdEnd = 12, 6
}

// AsPublished has it build labelled trees, and M-steps learn from one of each sentence after so many moves.
func (c *Config) AsPublished(moves int) {
	c.Policy.Trees = Labelled
	c.Wake.Samples, c.Wake.Objective, c.MStep.Weights, c.MStep.Collapse = 1, "subtb", false, Published
	c.Moves.Count, c.Moves.ECount, c.Moves.Balance = moves, 1, 1
	c.Gate.Threshold, c.Gate.ThresholdEnd = -1, -1
}

// QuickConfig learns the synthetic treebank on two cores in about a minute, or a few by a GFlowNet, with several times
// more symbols than the treebank has and small batches, which ended in better optima than other settings.
func QuickConfig() Config {
	c := PaperConfig()
	c.Seed, c.Batch, c.Updates, c.Pool, c.Bucket = 0, 16, 0, 20, 4
	c.Model.Nonterminals, c.Model.Preterminals, c.Model.Width, c.Model.ParentScale = 20, 40, 64, 0
	c.Policy.Width, c.Policy.Layers = 64, 1
	c.Sleep.Leaves, c.Sleep.Steps = 20, 19
	c.WeighShapes()
	c.Optim.Drop, c.Optim.Theta.Rate, c.Optim.Theta.End = 1, -1, 0.05
	c.Optim.Phi.Rate, c.Optim.Phi.FlowRate, c.Optim.Phi.Beta2, c.Optim.Phi.End = 4e-3, 1e-2, 0.999, 0.2
	c.Prior.Updates, c.Eval.Every, c.Eval.Select = 3000, 500, Best
	return c
}

// SmallConfig learns the posterior of the small grammar, which stays as it is.
func SmallConfig() Config {
	c := PaperConfig()
	c.Seed, c.Method, c.Data, c.Fixed = 0, GFN, small, small
	c.MaxLength, c.Bucket, c.Pool, c.Batch, c.Updates = synthetic.SmallLongest, synthetic.SmallLongest, 1, 32, 6000
	c.Policy.Width, c.Policy.Layers, c.Policy.Heads = 32, 2, 2
	c.Sleep.Weight, c.Sleep.Leaves, c.Sleep.Steps = 1, synthetic.SmallLongest+1, synthetic.SmallLongest
	c.Moves.Balance, c.Moves.ECount = 0, 0 // the objective alone
	c.Optim.Drop, c.Optim.Warmup = 1, 40
	c.Optim.Phi.Rate, c.Optim.Phi.FlowRate, c.Optim.Phi.End = 3e-3, 1e-2, 0.03
	c.Eval.Every = 500
	return c
}
