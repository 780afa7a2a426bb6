package vae

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/gfnem/gfnem/config"
	"github.com/gfnem/gfnem/mnist"
)

// The methods, in the order of the published table.
const (
	MethodVQ    = "vq"           // the VQ-VAE
	MethodGFN   = "gfn"          // GFlowNet-EM
	MethodGD    = "gfn-gd"       // with greedy decoder training: M-steps on the most probable codes
	MethodPrior = "gfn-gd-prior" // with that and a PixelCNN prior, learned together with the decoder
)

// Methods lists the methods.
func Methods() []string { return []string{MethodVQ, MethodGFN, MethodGD, MethodPrior} }

// Networks of the policy.
const (
	networkFeatures  = "features"  // Policy
	networkAttention = "attention" // Attentive
)

// Kinds of log Z.
const (
	logZScalar = "scalar" // one number for all images, as published
	logZImage  = "image"  // a function of the image
	logZNone   = "none"   // none is learned: the samples of an image are compared with each other
)

// Latents of M-steps.
const (
	latentsMethod   = "method"   // as published: drawn for gfn, greedy for the others
	latentsDrawn    = "drawn"    // from the policy
	latentsGreedy   = "greedy"   // the most probable codes, one after the other
	latentsBest     = "best"     // of those that the E-update has drawn for an image
	latentsWeighted = "weighted" // all of these, by their importance weights
)

// How gray pixels become 0 and 1.
const (
	pixelsThreshold  = "threshold"
	pixelsStochastic = "stochastic"
)

// Images that are measured.
const (
	onTest       = "test"
	onValidation = "validation" // those of the data or, if it has none, the last sixth of what else is trained on
)

// Config is the configuration of a training.
type Config struct {
	Seed        uint64 `toml:"seed" range:"0,9223372036854775807" help:"seed of all random numbers"`
	Data        string `toml:"data" help:"digits, binarized, or a folder of images: idx, PNG or PGM files"`
	DataSeed    uint64 `toml:"data_seed" range:"0,9223372036854775807" help:"seed of what data leave open: which images of a folder without train and test are for testing and validation, and stochastic pixels"`
	Pixels      string `toml:"pixels" oneof:"threshold stochastic" help:"when a pixel of your images is 1: where it is brighter than half of white, or with the probability that its gray value says, drawn once"`
	Method      string `toml:"method" oneof:"vq gfn gfn-gd gfn-gd-prior" help:"a VQ-VAE, or GFlowNet-EM: with greedy M-steps (gd), with a learned prior"`
	TrainImages int    `toml:"train_images" range:"0,2147483647" help:"the first so many are used; 0 means all"`
	TestImages  int    `toml:"test_images" range:"0,2147483647" help:"the first so many are used; 0 means all"`
	Batch       int    `toml:"batch" range:"1,65536" help:"images of a minibatch"`
	Epochs      int    `toml:"epochs" range:"0,2147483647" resume:"may change" help:"passes over the data; 0 means as many as published for the method and number of codes"`

	Model struct {
		Size
		Gain float64 `toml:"gain" range:"1e-3,100" was:"init_gain" help:"factor of the initial values of convolutions; 1 as published"`
	} `toml:"model" help:"codes and networks"`
	Policy struct {
		Network string  `toml:"network" oneof:"features attention" help:"features: 64 numbers for the whole image, as published; attention: numbers for each position, and attention to the codes chosen before"`
		Width   int     `toml:"width" range:"4,4096" help:"of attention; a multiple of 4"`
		Layers  int     `toml:"layers" range:"1,100" help:"of attention"`
		Order   string  `toml:"order" oneof:"raster center random" help:"in which positions get their codes: row by row, as published, from the centre out, or one random order for all"`
		LogZ    string  `toml:"log_z" oneof:"scalar image none" was:"log_z" help:"one log Z for all images, as published, one for each, or samples of an image are compared; with the latter two exploration is sound"`
		Floor   float64 `toml:"floor" range:"0,0.1" was:"floor" help:"added to the softmax over all codes and positions; the published code has 1e-9"`
	} `toml:"policy" help:"the GFlowNet"`
	Wake struct {
		Samples int     `toml:"samples" range:"1,1000" was:"wake_samples" help:"latents per image; 1 as published"`
		Memory  int     `toml:"memory" range:"0,1000" help:"latents with the greatest p(x,z) that are remembered of each image, and learned from beside fresh ones; 0 as published"`
		Epsilon float64 `toml:"epsilon" range:"0,1" was:"rand_prob" help:"probability of a random action"`
		Beta    float64 `toml:"beta" range:"1e-3,100" was:"beta" help:"factor of the logits of the policy that acts: below 1 it explores"`
	} `toml:"wake" help:"E-updates on the GFlowNet's own samples"`
	Sleep struct {
		Probability float64 `toml:"probability" range:"0,1" was:"sleep_prob" help:"probability that a sleep update follows an E-update"`
		Weight      float64 `toml:"weight" range:"0,1e6" was:"sleep_weight" help:"weight of its loss, which is divided by the number of positions"`
	} `toml:"sleep" help:"E-updates on dreams of the model"`
	Gate struct {
		Turn int `toml:"turn" range:"0,2147483647" was:"alternate_every" help:"minibatches of an E- or M-phase, of which the M-phase comes first; 0: each minibatch serves both"`
	} `toml:"gate" help:"when M-steps happen"`
	MStep struct {
		Latents           string  `toml:"latents" oneof:"drawn greedy best weighted method" was:"best_of_wake: \"best\" for true" help:"what is learned from: codes drawn, greedy, the best that the E-update drew (drawn for gfn), or all that it drew, by their importance weights; method: as published, drawn for gfn, else greedy"`
		GreedyProbability float64 `toml:"greedy_probability" range:"0,1" was:"greedy_prob: for mstep.latents = \"greedy\"" help:"probability that codes of an M-update are greedy, else they are drawn"`
	} `toml:"mstep" help:"M-updates"`
	Moves struct {
		Count   int  `toml:"count" range:"0,1000" was:"moves" help:"Metropolis-Hastings moves of the codes before an M-update; 0 as published"`
		Steps   int  `toml:"steps" range:"0,1000" help:"the most codes that a move draws again; 0 means all"`
		Persist bool `toml:"persist" help:"moves go on where those before the last M-update on the same image have ended, instead of from fresh codes"`
	} `toml:"moves" help:"refinement of latents"`
	Optim struct {
		DropOn int     `toml:"drop_on" range:"0,2147483647" resume:"may change" was:"reduce_lr_on" help:"epoch, counted from 1, from which rates are lower; 0: as published if epochs is 0, else never"`
		Smooth bool    `toml:"smooth" resume:"may change" help:"rates fall from that epoch on, exponentially, and reach the lower ones at the end, instead of falling at once"`
		Clip   float64 `toml:"clip" range:"0,1e12" help:"greatest norm of a gradient of the GFlowNet, and of one of the model; 0 as published: none"`
		Phi    struct {
			Rate     float64 `toml:"rate" range:"1e-12,1e3" was:"gfn_lr" resume:"may change" help:"learning rate"`
			Drop     float64 `toml:"drop" range:"0,1" was:"gfn_reduced_lr: a factor of the rate" help:"factor of the rate from epoch drop_on on"`
			LogZRate float64 `toml:"log_z_rate" range:"0,1e3" was:"gfn_logz_lr" help:"learning rate of log Z"`
		} `toml:"phi" help:"Adam, of the GFlowNet"`
		Theta struct {
			Rate float64 `toml:"rate" range:"1e-12,1e3" was:"dec_lr;vq_lr" resume:"may change" help:"learning rate"`
			Drop float64 `toml:"drop" range:"0,1" or:"-1" was:"dec_reduced_lr: a factor of the rate;vq_reduced_lr: a factor of the rate" help:"factor of the rate from epoch drop_on on; -1 as published: 0.25 for vq, 1 for the others"`
		} `toml:"theta" help:"Adam, of decoder, dictionary and prior, or of the VQ-VAE"`
	} `toml:"optim" help:"optimisers"`
	Eval struct {
		On            string `toml:"on" oneof:"test validation" help:"images that are measured; validation: those of the data or, if it has none, the last sixth of the images to train on, which are left out of training"`
		Every         int    `toml:"every" range:"0,2147483647" resume:"may change" was:"eval_every" help:"updates between points of the curve of the bound; 0 means never"`
		NLL           bool   `toml:"nll" resume:"may change" was:"nll" help:"estimate likelihoods when the training ends, by importance sampling"`
		Images        int    `toml:"images" range:"0,2147483647" resume:"may change" was:"nll_images" help:"of the measured images for that; 0 means all"`
		Samples       int    `toml:"samples" range:"1,1e7" resume:"may change" was:"importance_samples" help:"latents per image"`
		FitUpdates    int    `toml:"fit_updates" range:"1,2147483647" resume:"may change" was:"fit_updates" help:"updates by which a GFlowNet posterior is fitted to a VQ-VAE's decoder, for its likelihood"`
		ExtraEUpdates int    `toml:"extra_e_updates" range:"0,2147483647" resume:"may change" was:"extra_e_updates" help:"E-updates before a second estimate, since the posterior may be an M-phase behind the decoder; 0: no such"`
	} `toml:"eval" help:"what is measured"`
}

// MemoryKeys lists the keys that memory grows with.
func (c *Config) MemoryKeys() []string {
	keys := []string{"model.channels", "batch", "model.rows", "model.columns", "model.codes"}
	if c.Method != MethodVQ {
		keys = append(keys, "wake.samples", "wake.memory", "policy.width", "policy.layers")
	}
	return keys
}

// publishedNorm is the normalisation of a method's decoder.
func publishedNorm(method string) string {
	if method == MethodVQ {
		return normBatch
	}
	return normNone
}

// decoder says in words which decoder is trained.
func (c *Config) decoder() string { return c.Model.decoderName(publishedNorm(c.Method)) }

// learnsPrior reports whether the method learns a prior.
func (c *Config) learnsPrior() bool { return c.Method == MethodPrior }

// size returns the size of the networks for images.
func (c *Config) size(images mnist.Size) Size {
	s := c.Model.Size
	s.Height, s.Width, s.Order, s.Norm = images.Height, images.Width, c.Policy.Order, s.norm(publishedNorm(c.Method))
	return s
}

// Validate implements the last word of config.Resolve. It also fills in what is published for the method, and makes the
// path of the data absolute, since a run is resumed and evaluated from other folders, too.
func (c *Config) Validate() error {
	if (c.Wake.Epsilon > 0 || c.Wake.Beta != 1) && c.Policy.LogZ == logZScalar {
		return fmt.Errorf("wake.epsilon = %g and wake.beta = %g explore, which needs policy.log_z = %q or %q: "+
			"with one log Z for all images the loss is biased off the policy", c.Wake.Epsilon, c.Wake.Beta, logZImage, logZNone)
	}
	if c.Wake.Memory > 0 && c.Policy.LogZ == logZScalar {
		return fmt.Errorf("wake.memory = %d learns off the policy, which needs policy.log_z = %q or %q", c.Wake.Memory, logZImage, logZNone)
	}
	if c.Moves.Persist && c.Moves.Count == 0 {
		return errors.New("moves.persist = true lets moves go on: set moves.count to their number")
	}
	if c.Policy.LogZ == logZNone && c.Wake.Samples < 2 {
		return fmt.Errorf("policy.log_z = %q compares the samples of an image: set wake.samples to 2 or more", logZNone)
	}
	switch attention := c.Policy.Network == networkAttention; {
	case attention && c.Policy.Width%attentiveHeads != 0:
		return fmt.Errorf("policy.width = %d is no multiple of %d, the heads of attention", c.Policy.Width, attentiveHeads)
	case attention && c.Policy.Floor > 0:
		return fmt.Errorf("policy.floor is of the published network: set it to 0, or policy.network to %q", networkFeatures)
	}
	if c.Model.norm(publishedNorm(c.Method)) == normBatch && c.Model.Bias {
		return fmt.Errorf("model.bias = true adds nothing to model.norm = %q, which shifts: set one of them", normBatch)
	}
	switch {
	case c.Method == MethodGFN && (c.MStep.Latents == latentsMethod || c.MStep.Latents == latentsBest):
		c.MStep.Latents = latentsDrawn
	case c.MStep.Latents == latentsMethod:
		c.MStep.Latents = latentsGreedy
	case c.MStep.Latents == latentsBest && c.Method != MethodVQ &&
		(c.Gate.Turn != 0 || c.Moves.Count != 0 || c.MStep.GreedyProbability != 1 || c.Wake.Samples < 2):
		return errors.New(`mstep.latents = "best" takes the best latent of an E-update: it needs gate.turn = 0, ` +
			`moves.count = 0, mstep.greedy_probability = 1 and wake.samples of 2 or more; or set mstep.latents = "greedy"`)
	}
	if c.MStep.Latents == latentsWeighted && (c.Moves.Count != 0 || c.Wake.Samples < 2) && c.Method != MethodVQ {
		return errors.New(`mstep.latents = "weighted" weighs the latents of an E-update: it needs moves.count = 0 and ` +
			`wake.samples of 2 or more`)
	}
	if c.Optim.Theta.Drop == -1 {
		c.Optim.Theta.Drop = 1
		if c.Method == MethodVQ {
			c.Optim.Theta.Drop = 0.25
		}
	}
	if c.Epochs == 0 {
		epochs, dropOn := published(c.Method, c.Model.Codes)
		c.Epochs, c.Optim.DropOn = epochs, cmp.Or(c.Optim.DropOn, dropOn)
	}
	if c.Optim.DropOn > c.Epochs {
		return fmt.Errorf("optim.drop_on = %d is after the last of %d epochs: set it to one of them, "+
			"or to 0 (and epochs to %[2]d) for rates that stay", c.Optim.DropOn, c.Epochs)
	}
	return config.MakeAbsolute("data", &c.Data, mnist.Digits, mnist.Binarized)
}
