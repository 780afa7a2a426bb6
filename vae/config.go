package vae

import (
	"cmp"
	"errors"
	"fmt"
	"math"

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

// Kinds of log Z.
const (
	logZScalar = "scalar" // one number for all images, as published
	logZImage  = "image"  // a function of the image
	logZNone   = "none"   // none is learned: the samples of an image are compared with each other
)

// Config is the configuration of a training. Its names are those of the command line.
type Config struct {
	Seed   uint64 `toml:"seed"`
	Data   string `toml:"data"`   // digits, binarized, or a folder of idx files
	Method string `toml:"method"` // vq, gfn, gfn-gd or gfn-gd-prior

	Codes    int `toml:"k"`        // entries of the dictionary
	Rows     int `toml:"rows"`     // of the grid of codes
	Columns  int `toml:"columns"`  // of the grid of codes
	Channels int `toml:"channels"` // of convolutions, of the PixelCNN's too

	TrainImages int `toml:"train_images"` // the first so many are used; 0 means all
	TestImages  int `toml:"test_images"`  // the first so many are used; 0 means all
	Batch       int `toml:"batch"`
	Epochs      int `toml:"epochs"` // 0 means as many as published for the method and K
	// ReduceOn is the epoch, counted from 1, from which rates are reduced; 0 means as published if epochs is 0, else never.
	ReduceOn int `toml:"reduce_lr_on"`

	// Alternate is the number of minibatches of an E- or M-phase, of which the M-phase comes first; 0 means that each minibatch serves an E-
	// and an M-update.
	Alternate int `toml:"alternate_every"`
	// Best makes greedy M-updates take the best of the latents that the E-update has drawn for an image, instead of the most probable one.
	// It needs alternate_every = 0, no moves, greedy_prob of 1 and wake_samples of 2 or more. Without greedy M-updates it is turned off.
	Best      bool    `toml:"best_of_wake"`
	LR        float64 `toml:"gfn_lr"`
	ReducedLR float64 `toml:"gfn_reduced_lr"`
	LogZLR    float64 `toml:"gfn_logz_lr"`
	DecoderLR float64 `toml:"dec_lr"` // of decoder, dictionary and prior
	// DecoderReducedLR is the rate after the drop; 0 means that of the decoder is never reduced, as published.
	DecoderReducedLR float64 `toml:"dec_reduced_lr"`
	GreedyProb       float64 `toml:"greedy_prob"` // probability that an M-step takes the most probable codes; -1 means as the method says
	Moves            int     `toml:"moves"`       // Metropolis-Hastings moves of the codes before an M-step; 0 as published
	SleepProb        float64 `toml:"sleep_prob"`  // probability that a sleep step follows an E-step
	SleepWeight      float64 `toml:"sleep_weight"`
	Gain             float64 `toml:"init_gain"`    // multiplies the initial values of convolutions; 1 as published
	WakeSamples      int     `toml:"wake_samples"` // latents per image in E-steps; 1 as published
	LogZ             string  `toml:"log_z"`        // scalar, as published, or image or none: with these exploration is sound
	Floor            float64 `toml:"floor"`        // added to the softmax over all codes and positions; the published code has 1e-9
	RandProb         float64 `toml:"rand_prob"`
	Beta             float64 `toml:"beta"` // multiplies the logits of the policy that acts in E-steps: below 1 it explores

	VQLR        float64 `toml:"vq_lr"`
	VQReducedLR float64 `toml:"vq_reduced_lr"`

	// NLL estimates likelihoods when the training ends, by importance sampling.
	NLL       bool `toml:"nll"`
	NLLImages int  `toml:"nll_images"` // of the test images; 0 means all
	Samples   int  `toml:"importance_samples"`
	// FitUpdates is the number of updates by which a GFlowNet posterior is fitted to a VQ-VAE's decoder, for its likelihood.
	FitUpdates int `toml:"fit_updates"`
	// ExtraE is the number of E-updates before a second estimate of a GFlowNet-EM's likelihood, since trainings may end when the
	// posterior is a whole M-phase behind the decoder, and are scored so as published; 0 means that there is none.
	ExtraE int `toml:"extra_e_updates"`

	EvalEvery int `toml:"eval_every"` // updates between points of the curve of the bound; 0 means never
}

// PaperConfig is the published configuration, apart from its seeds.
func PaperConfig() Config {
	return Config{
		Data: mnist.Digits, Method: MethodGFN, Codes: 8, Rows: 4, Columns: 4, Channels: 128, Batch: 128,
		Alternate: 400, LR: 2e-4, ReducedLR: 5e-5, LogZLR: 0.1, DecoderLR: 2e-4, GreedyProb: -1, SleepProb: 0.3, SleepWeight: 10,
		Gain: 1, WakeSamples: 1, LogZ: logZScalar, Beta: 1, VQLR: 2e-4, VQReducedLR: 5e-5,
		NLL: true, Samples: 5000, FitUpdates: 60_000, ExtraE: 400, EvalEvery: 1000,
	}
}

// QuickConfig is the experiment in little, for two cores and a few minutes: grids of 2x2 codes, small networks, minibatches of 32
// and, for every method alike, 5 epochs with ten times the published rates; and, for the GFlowNet, what makes it learn faster than
// as published: an E- and an M-update of each minibatch instead of turns, several latents per image, which are compared with each other
// instead of with a learned log Z and the best of which the M-update takes, a sleep step after each E-step, a decoder's rate that falls
// too, and initial values that tell images apart from the start.
func QuickConfig() Config {
	c := PaperConfig()
	c.Method, c.Rows, c.Columns, c.Channels, c.TestImages = MethodGD, 2, 2, 16, 1000
	c.Batch, c.Epochs, c.ReduceOn = 32, 5, 4
	c.LR, c.ReducedLR, c.DecoderLR, c.DecoderReducedLR, c.VQLR, c.VQReducedLR = 2e-3, 3e-4, 2e-3, 3e-4, 2e-3, 3e-4
	c.Alternate, c.Best, c.SleepProb, c.Gain, c.LogZ, c.WakeSamples = 0, true, 1, 2, logZNone, 4
	c.NLLImages, c.Samples, c.FitUpdates, c.ExtraE, c.EvalEvery = 500, 500, 3000, 0, 1000
	return c
}

var presets = map[string]func() Config{"quick": QuickConfig, "paper": PaperConfig}

// published are the epochs of a method and the epoch, from 1, of its lower rate. The loop of the VQ-VAE's code counts from 0
// and includes its end, so that 50 epochs are 51.
func published(method string, codes int) (epochs, reduceOn int) {
	switch {
	case method == MethodGFN:
		return 500, 400
	case method == MethodGD:
		return 250, 180
	case method == MethodPrior:
		return 400, 300
	case codes >= 10:
		return 81, 51
	}
	return 51, 26
}

// learnsPrior reports whether the method learns a prior.
func (c *Config) learnsPrior() bool { return c.Method == MethodPrior }

// greedy is the probability of greedy M-steps.
func (c *Config) greedy() float64 {
	switch {
	case c.GreedyProb >= 0:
		return c.GreedyProb
	case c.Method == MethodGFN:
		return 0
	}
	return 1
}

// size returns the size of the networks for images.
func (c *Config) size(images mnist.Size) Size {
	return Size{
		Height: images.Height, Width: images.Width, Rows: c.Rows, Columns: c.Columns, Codes: c.Codes, Channels: c.Channels,
	}
}

// explores reports whether E-steps sample from another policy than the one they train.
func (c *Config) explores() bool { return c.RandProb > 0 || c.Beta != 1 }

// Validate implements the last word of config.Resolve. It also fills in what is published and makes the path of the data
// absolute, since a run is resumed and evaluated from other folders, too.
func (c *Config) Validate() error {
	if err := cmp.Or(
		config.CheckName("method", c.Method, Methods()...), config.CheckName("log_z", c.LogZ, logZScalar, logZImage, logZNone),
	); err != nil {
		return err
	}
	if c.explores() && c.LogZ == logZScalar {
		return fmt.Errorf("rand_prob = %g and beta = %g explore, which needs log_z = %q or %q: with one log Z for all images "+
			"the loss is biased off the policy", c.RandProb, c.Beta, logZImage, logZNone)
	}
	if c.LogZ == logZNone && c.WakeSamples < 2 {
		return fmt.Errorf("log_z = %q compares the samples of an image: set wake_samples to 2 or more", logZNone)
	}
	c.Best = c.Best && c.Method != MethodVQ && c.greedy() > 0
	if c.Best && (c.Alternate != 0 || c.Moves != 0 || c.greedy() != 1 || c.WakeSamples < 2) {
		return errors.New("best_of_wake takes the best latent of an E-update: it needs alternate_every = 0, moves = 0, greedy_prob = 1 and wake_samples of 2 or more; or set best_of_wake = false")
	}
	if err := c.checkBounds(); err != nil {
		return err
	}
	if c.Epochs == 0 {
		epochs, reduceOn := published(c.Method, c.Codes)
		c.Epochs = epochs
		if c.ReduceOn == 0 {
			c.ReduceOn = reduceOn
		}
	}
	if c.ReduceOn > c.Epochs {
		return fmt.Errorf("reduce_lr_on = %d is after the last of %d epochs: set it to one of them, or to 0 (and epochs to %[2]d) for rates that stay", c.ReduceOn, c.Epochs)
	}
	return config.MakeAbsolute("data", &c.Data, mnist.Digits, mnist.Binarized)
}

func (c *Config) checkBounds() error {
	big := math.MaxInt32 * 1.0
	err := config.CheckRanges([]config.Range{
		{"seed", float64(c.Seed), 0, math.MaxInt64},
		{"k", float64(c.Codes), 2, 256}, {"rows", float64(c.Rows), 1, 64}, {"columns", float64(c.Columns), 1, 64},
		{"channels", float64(c.Channels), 1, 1 << 12},
		{"train_images", float64(c.TrainImages), 0, big}, {"test_images", float64(c.TestImages), 0, big},
		{"batch", float64(c.Batch), 1, 1 << 16}, {"epochs", float64(c.Epochs), 0, big}, {"reduce_lr_on", float64(c.ReduceOn), 0, big},
		{"alternate_every", float64(c.Alternate), 0, big},
		{"gfn_lr", c.LR, 1e-12, 1e3}, {"gfn_reduced_lr", c.ReducedLR, 0, 1e3}, {"gfn_logz_lr", c.LogZLR, 0, 1e3},
		{"dec_lr", c.DecoderLR, 1e-12, 1e3}, {"dec_reduced_lr", c.DecoderReducedLR, 0, 1e3},
		{"sleep_prob", c.SleepProb, 0, 1}, {"sleep_weight", c.SleepWeight, 0, 1e6}, {"moves", float64(c.Moves), 0, 1000}, {"init_gain", c.Gain, 1e-3, 100},
		{"wake_samples", float64(c.WakeSamples), 1, 1000}, {"floor", c.Floor, 0, 0.1}, {"rand_prob", c.RandProb, 0, 1}, {"beta", c.Beta, 1e-3, 100},
		{"vq_lr", c.VQLR, 1e-12, 1e3}, {"vq_reduced_lr", c.VQReducedLR, 0, 1e3},
		{"nll_images", float64(c.NLLImages), 0, big}, {"importance_samples", float64(c.Samples), 1, 1e7},
		{"fit_updates", float64(c.FitUpdates), 1, big}, {"extra_e_updates", float64(c.ExtraE), 0, big},
		{"eval_every", float64(c.EvalEvery), 0, big},
	})
	if err != nil {
		return err
	}
	if c.GreedyProb != -1 && !(c.GreedyProb >= 0 && c.GreedyProb <= 1) {
		return fmt.Errorf("greedy_prob = %g is neither -1 nor between 0 and 1", c.GreedyProb)
	}
	return nil
}
