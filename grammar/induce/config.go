package induce

import (
	"math"

	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/grammar/parse"
	"github.com/gfnem/gfnem/optim"
	"github.com/gfnem/gfnem/treebank"
)

// The methods.
const (
	Marginal = "marginal" // gradient of log p(x), all trees added up
	Exact    = "exact"    // EM with exact samples of the posterior, one for each sentence if not said otherwise
	MCEM     = "mcem"     // EM with the end of a Markov chain over trees for each sentence
	GFN      = "gfn"      // EM with a tree of a GFlowNet for each sentence
)

// What a GFlowNet builds.
const (
	Labelled = "labelled" // trees
	Shapes   = "shapes"   // trees without labels
)

// The state of a training that is evaluated and parses.
const (
	Last = "last"
	Best = "best" // by validation likelihood
)

// What M-steps sum out of sampled trees.
const (
	Published = "published" // nothing of exact samples, preterminals of other trees
	Nothing   = "none"
	Tags      = "tags"   // preterminals
	Labels    = "labels" // preterminals and labels: what is left is a shape
)

// Config is the configuration of a training.
type Config struct {
	Seed   uint64 `toml:"seed" range:"0,9223372036854775807" help:"seed of all random numbers"`
	Data   string `toml:"data" help:"a file or folder of text, CoNLL or trees, a folder of \"gfnem data treebank\", or synthetic, synthetic-ncfg or small"`
	Method string `toml:"method" oneof:"marginal exact mcem gfn" help:"all trees added up, or EM with exact samples, Markov chains or a GFlowNet"`
	// Fixed makes method gfn learn the posterior of a grammar alone: symbols and words are the grammar's then, and
	// updates are those of the GFlowNet.
	Fixed string `toml:"fixed" help:"a grammar that stays as it is: a run's folder, a JSON file, small, synthetic or synthetic-ncfg"`

	MaxLength int `toml:"max_length" range:"2,200" or:"0" help:"longer sentences are left out, in training and evaluation; 0 means 20, or of text what nine tenths of each split have at most, but from 20 to 40"`
	Batch     int `toml:"batch" range:"1,65536" help:"sentences of an update"`
	Updates   int `toml:"updates" range:"1,2147483647" or:"0" resume:"may change" help:"of the grammar; 0 means some minutes: 10,000, or 2,500 for gfn"`
	// With horizon = 10000 a shorter training follows the published schedules, as far as it goes.
	Horizon int `toml:"horizon" range:"0,2147483647" resume:"may change" help:"updates over which the prior's temperature and the gate's threshold move; 0 means updates"`
	// Starts differ in where variables start; that with the greatest validation likelihood is gone on with.
	Restarts       int `toml:"restarts" range:"1,1000" help:"starts, each trained for restart_updates, of which the best one by validation likelihood is trained to the end"`
	RestartUpdates int `toml:"restart_updates" range:"1,2147483647" or:"0" help:"updates of each start, if there are several; 0 means a tenth of all"`
	MaxIterations  int `toml:"max_iterations" range:"0,2147483647" resume:"may change" help:"ends a training whose gate keeps it from updating the grammar; 0 means never"`
	Pool           int `toml:"pool" range:"1,2147483647" help:"batches whose sentences are sorted by length together; 1 mixes all lengths"`
	Bucket         int `toml:"bucket" range:"1,200" help:"lengths of batches are padded up to a multiple of it: each length is compiled"`
	Chain          int `toml:"chain" range:"0,2147483647" help:"steps of a Markov chain, for mcem"`

	Text  Text `toml:"text" help:"how files of text, CoNLL or trees become a data set, which the run keeps"`
	Model struct {
		Grammar      string  `toml:"grammar" oneof:"cfg ncfg" was:"grammar" help:"context-free, or seeing the parent"`
		Nonterminals int     `toml:"nonterminals" range:"1,500" was:"nonterminals" help:"without ROOT"`
		Preterminals int     `toml:"preterminals" range:"1,1000" was:"preterminals" help:"symbols above words"`
		Width        int     `toml:"width" range:"1,16384" was:"width" help:"of embeddings of symbols"`
		Init         string  `toml:"init" oneof:"published xavier" help:"published, or as neural PCFGs are usually made: networks of their own for roots and words, matrices Xavier-uniform at the start"`
		ParentScale  float64 `toml:"parent_scale" range:"0,1e3" was:"parent_scale" help:"standard deviation of parents' embeddings at the start, 1 as published, or with init = xavier a factor of theirs; 0: a Non-CFG starts as a CFG"`
	} `toml:"model" help:"the grammar"`
	Policy struct {
		Width       int    `toml:"width" range:"1,16384" was:"gfn_width" help:"of the transformer"`
		Layers      int    `toml:"layers" range:"1,100" was:"gfn_layers" help:"of the transformer"`
		Heads       int    `toml:"heads" range:"1,1024" was:"gfn_heads" help:"of attention"`
		Half        bool   `toml:"half" was:"gfn_half" help:"products of 16-bit numbers in the transformer"`
		Linear      bool   `toml:"linear" was:"gfn_linear" help:"attention whose cost grows with the number of trees, not with its square"`
		Trees       string `toml:"trees" oneof:"labelled shapes" help:"what the GFlowNet builds: labelled trees, as published, or shapes, whose labels are summed out"`
		UniformBack bool   `toml:"uniform_back" was:"gfn_uniform_back" help:"P_B is uniform over the trees that can be split; otherwise it is learned, as published"`
	} `toml:"policy" help:"the GFlowNet"`
	Wake struct {
		Objective string  `toml:"objective" oneof:"subtb tb hvi vargrad rws vimco none" was:"objective" help:"the loss of walks from bare words; vargrad, rws and vimco compare those of a sentence"`
		Samples   int     `toml:"samples" range:"1,1000" help:"walks of each sentence; 1 as published"`
		Lambda    float64 `toml:"lambda" range:"1e-9,1e3" was:"lambda" help:"of subtb"`
		Beta      float64 `toml:"beta" range:"1e-6,1e3" was:"temperature: its inverse" help:"factor of the logits of the policy that acts: below 1 it explores"`
		Epsilon   float64 `toml:"epsilon" range:"0,1" was:"epsilon" help:"probability of a random action"`
		Replay    int     `toml:"replay" range:"0,1000" help:"trees of each sentence that are learned from again when its next batch comes, by new ways to them: where moves have led, or without moves chosen by weight among these trees and those of the walks"`
	} `toml:"wake" help:"E-updates on the GFlowNet's own samples"`
	Sleep struct {
		Weight float64 `toml:"weight" range:"0,1e9" was:"sleep" help:"of the sleep loss; 0 means no sleep"`
		Leaves int     `toml:"leaves" range:"2,1000" was:"dream_leaves" help:"at which a dreamt tree stops growing"`
		Steps  int     `toml:"steps" range:"1,1000" was:"dream_steps" help:"of a dreamt tree that are trained, from its top"`
	} `toml:"sleep" help:"E-updates on dreams of the model"`
	Moves struct {
		Count      int     `toml:"count" range:"0,1e6" was:"moves" help:"Metropolis-Hastings moves before an M-update; 0 still makes the one that is trained, unless balance = 0"`
		ECount     int     `toml:"e_count" range:"0,1e6" was:"e_moves" help:"and in iterations without an M-update; none if balance = 0, since nothing would come of them"`
		Steps      int     `toml:"steps" range:"1,1000" was:"back_steps" help:"the most steps that a move goes back"`
		FirstSteps int     `toml:"first_steps" range:"0,1000" was:"back_start" help:"one less than that for the trained move in the first epoch; it grows by one in each epoch"`
		Persist    bool    `toml:"persist" help:"moves before an M-update go on where those before the last one on the same sentence have ended, instead of from a fresh tree"`
		Balance    float64 `toml:"balance" range:"0,1e9" was:"balance" help:"weight of the balance between the two trees of a move; 0 means it is not trained"`
	} `toml:"moves" help:"refinement of latents"`
	Gate struct {
		Threshold    float64 `toml:"threshold" range:"0,1e300" or:"-1" was:"threshold" help:"M-steps follow a moving average of the wake loss below it; -1 as published: 6, Non-CFG 7, with a prior 4"`
		ThresholdEnd float64 `toml:"threshold_end" range:"0,1e300" or:"-1" was:"threshold_end" help:"what it moves to over the horizon; -1 as published: half of it"`
	} `toml:"gate" help:"when M-steps happen"`
	MStep struct {
		Collapse string `toml:"collapse" oneof:"published none tags labels" was:"tags: true is none, false is tags; mstep.tags: true is none, false is tags" help:"what is summed out of sampled trees: nothing, preterminals, or all labels, so that shapes are left; published: nothing for exact, labels of shapes, else preterminals"`
		Samples  int    `toml:"samples" range:"1,1000" help:"of each sentence, for exact; gfn learns from wake.samples"`
		Weights  bool   `toml:"weights" help:"learn from the trees of wake, each by its importance weight among those of its sentence, instead of from where moves lead"`
	} `toml:"mstep" help:"M-updates"`
	Optim struct {
		Clip   float64 `toml:"clip" range:"0,1e12" was:"clip" help:"greatest norm of a gradient; 0 means none"`
		Warmup int     `toml:"warmup" range:"0,2147483647" was:"warmup" help:"updates over which rates rise"`
		Drop   float64 `toml:"drop" range:"0,1" was:"lr_drop" help:"factor of the rates after that"`
		Phi    struct {
			Rate     float64 `toml:"rate" range:"0,1e3" was:"gfn_lr" resume:"may change" help:"learning rate"`
			FlowRate float64 `toml:"flow_rate" range:"0,1e3" resume:"may change" was:"gfn_flow_lr" help:"learning rate of the flow head"`
			Beta1    float64 `toml:"beta1" range:"0,0.999999" was:"gfn_beta1" help:"Adam's first decay"`
			Beta2    float64 `toml:"beta2" range:"0,0.9999999" was:"gfn_beta2" help:"Adam's second decay"`
			End      float64 `toml:"end" range:"1e-9,1" was:"gfn_lr_end" resume:"may change" help:"factor of the rates at the last update, reached exponentially after a quarter of them"`
		} `toml:"phi" help:"Adam, of the GFlowNet"`
		Theta struct {
			Rate  float64 `toml:"rate" range:"0,1e3" or:"-1" was:"lr" resume:"may change" help:"learning rate; -1 means 3e-3, or 6e-3 for gfn, which makes fewer updates"`
			Beta1 float64 `toml:"beta1" range:"0,0.999999" was:"beta1" help:"Adam's first decay"`
			Beta2 float64 `toml:"beta2" range:"0,0.9999999" was:"beta2" help:"Adam's second decay"`
			End   float64 `toml:"end" range:"1e-9,1" was:"lr_end" resume:"may change" help:"factor of the rate at the last update, reached exponentially after a quarter of them"`
		} `toml:"theta" help:"Adam, of the grammar"`
	} `toml:"optim" help:"optimisers"`
	Prior struct {
		On             bool    `toml:"on" was:"ebm" help:"multiply the posterior of mcem and gfn by an energy-based prior on shapes of trees, learned from the gold trees first"`
		Updates        int     `toml:"updates" range:"0,2147483647" was:"ebm_updates" help:"of the prior"`
		Rate           float64 `toml:"rate" range:"0,1e3" was:"ebm_lr" help:"learning rate"`
		L2             float64 `toml:"l2" range:"0,1e3" was:"ebm_l2" help:"weight of squared energies"`
		Reset          float64 `toml:"reset" range:"0,1" was:"ebm_reset" help:"probability that a tree of the buffer is replaced by a gold tree"`
		Temperature    float64 `toml:"temperature" range:"1e-6,1e9" was:"ebm_temp_start" help:"of the energy at the first update of the grammar"`
		TemperatureEnd float64 `toml:"temperature_end" range:"1e-6,1e9" was:"ebm_temp_end" help:"and from the horizon on"`
		Anneal         string  `toml:"anneal" oneof:"exp linear" was:"ebm_anneal" help:"what is between them: exp as in the published commands"`
	} `toml:"prior" help:"the energy-based prior on shapes of trees"`
	Eval struct {
		Every    int    `toml:"every" range:"0,2147483647" resume:"may change" was:"eval_every" help:"updates between evaluations on validation sentences; 0 means never"`
		Select   string `toml:"select" oneof:"last best" help:"the state that is evaluated and parses: the last one, or the best of these evaluations by likelihood"`
		Patience int    `toml:"patience" range:"0,2147483647" resume:"may change" help:"ends a training after so many evaluations without a better one; 0 means never"`
		// The longest sentences that a GFlowNet reads are those that it was trained on, or has dreamt.
		MaxLength int `toml:"max_length" range:"2,1000" or:"0" resume:"may change" help:"of the sentences that the grammar is measured on at the end; 0 means those of max_length"`
	} `toml:"eval" help:"what is measured"`

	opened *treebank.Dataset // what Data names, if it was read already
	ofText bool              // it was made of files, so that the run keeps it
	asked  int               // MaxLength before the data were prepared
}

// MemoryKeys lists the keys that memory grows with.
func (c *Config) MemoryKeys() []string {
	keys := []string{"model.nonterminals", "model.preterminals", "max_length", "batch", "model.width"}
	if c.Method == GFN {
		keys = append(keys, "policy.width", "policy.layers", "policy.heads", "wake.samples", "wake.replay", "sleep.leaves", "sleep.steps", "moves.steps")
	}
	if c.Eval.MaxLength > c.MaxLength {
		keys = append([]string{"eval.max_length"}, keys...)
	}
	return keys
}

// model returns the network of a configuration for a vocabulary.
func (c *Config) model(words int) grammar.Neural {
	m := grammar.Paper(grammar.Kind(c.Model.Grammar), words, 0)
	m.Nonterminals, m.Preterminals, m.Width = c.Model.Nonterminals, c.Model.Preterminals, c.Model.Width
	m.Init, m.ParentScale = c.Model.Init, c.Model.ParentScale
	return m
}

// batches says how sentences are put into batches.
func (c *Config) batches() parse.Batches {
	return parse.Batches{Rows: c.Batch, Bucket: c.Bucket, Most: c.MaxLength}
}

// group says how the variables of a scope are trained, by Adam.
func (c *Config) group(scope string, rate, beta1, beta2, end float64) optim.Group {
	warmup, updates := uint64(c.Optim.Warmup), uint64(c.Updates)
	return optim.Group{Scope: scope, Rule: optim.Adam{Beta1: beta1, Beta2: beta2}, Rate: optim.Rate{
		Base: rate, MayBeZero: true, Warmup: warmup, Drops: []optim.Drop{{Step: warmup, Factor: c.Optim.Drop}},
		Fall: optim.Fall{From: updates / 4, To: updates, End: end},
	}}
}

// ebmTemperature is the temperature of the prior after so many updates.
func (c *Config) ebmTemperature(updates uint64) float64 {
	done := min(1, float64(updates)/float64(c.Horizon))
	if c.Prior.Anneal == "linear" {
		return c.Prior.Temperature + (c.Prior.TemperatureEnd-c.Prior.Temperature)*done
	}
	return c.Prior.Temperature * math.Pow(c.Prior.TemperatureEnd/c.Prior.Temperature, done)
}

// threshold is that of the gate, by the number of M-steps.
func (c *Config) threshold() em.Linear {
	return em.Linear{From: c.Gate.Threshold, To: c.Gate.ThresholdEnd, Over: uint64(c.Horizon)}
}
