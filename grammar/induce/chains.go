package induce

import (
	. "github.com/gomlx/gomlx/core/graph"

	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/grammar/chain"
	"github.com/gfnem/gfnem/grammar/forest"
	"github.com/gfnem/gfnem/grammar/parse"
	"github.com/gfnem/gfnem/internal/program"
)

// chainStep is the E-step of method mcem: a Markov chain over trees for every sentence, under the grammar as it is. It
// updates nothing.
type chainStep struct {
	*Config
	weigh *program.Program[forest.SentenceTensors, grammar.PotentialTensors]
	// logPrior returns the prior of trees of so many sentences at an M-step; nil without a prior.
	logPrior func(at em.Moment, sentences int) func(sentence int, t *chain.Tree) float64
}

var _ em.EStepper[parse.Padded, latents] = chainStep{}

func newChainStep(set *program.Set, tables func(*Graph) grammar.LogProbs, c *Config) chainStep {
	return chainStep{Config: c, weigh: forest.Weigher(set, tables)}
}

// Infer implements em.EStepper.
func (s chainStep) Infer(at em.Moment, b parse.Padded) (out em.Inference[latents], err error) {
	results, err := s.run(at, b)
	if err != nil {
		return out, err
	}
	trees := make([]*grammar.Tree, len(results))
	var all chain.Result
	for i, r := range results {
		trees[i] = r.Tree
		all.Rotations, all.Rotated = all.Rotations+r.Rotations, all.Rotated+r.Rotated
		all.Labels, all.Relabelled = all.Labels+r.Labels, all.Relabelled+r.Relabelled
	}
	packed, err := grammar.PackTrees(trees, b.Room())
	if err != nil {
		return out, err
	}
	out = em.NewInference(latents{Trees: &packed})
	out.Metrics = map[string]float64{
		"chain/rotated":    float64(all.Rotated) / float64(max(all.Rotations, 1)),
		"chain/relabelled": float64(all.Relabelled) / float64(max(all.Labels, 1)),
	}
	return out, nil
}

// run makes the chains of a batch.
func (s chainStep) run(at em.Moment, b parse.Padded) ([]chain.Result, error) {
	w, err := s.weigh.Call(b.SentenceTensors)
	if err != nil {
		return nil, err
	}
	weights, err := chain.NewWeights(w, b.LengthOf)
	if err != nil {
		return nil, err
	}
	c := chain.Sampler{Weights: weights, Steps: s.Chain}
	if s.logPrior != nil {
		c.LogPrior = s.logPrior(at, weights.Sentences())
	}
	return c.Run(s.Seed, "grammar/chain", at.M, nil), nil
}
