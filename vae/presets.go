package vae

import "github.com/gfnem/gfnem/mnist"

var presets = map[string]func() Config{"quick": QuickConfig, "paper": PaperConfig, "best": BestConfig, "static": StaticConfig}

// PaperConfig is the published configuration, apart from its seeds.
func PaperConfig() Config {
	c := Config{Data: mnist.Digits, Pixels: pixelsThreshold, Method: MethodGFN, Batch: 128}
	c.Model.Size, c.Model.Gain = Size{Codes: 8, Rows: 4, Columns: 4, Channels: 128, Norm: normMethod, CodeWidth: 1}, 1
	c.Policy.Network, c.Policy.Width, c.Policy.Layers = networkFeatures, 64, 2
	c.Policy.Order, c.Policy.LogZ = orderRaster, logZScalar
	c.Wake.Samples, c.Wake.Beta = 1, 1
	c.Sleep.Probability, c.Sleep.Weight = 0.3, 10
	c.Gate.Turn = 400
	c.MStep.Latents, c.MStep.GreedyProbability = latentsMethod, 1
	c.Optim.Phi.Rate, c.Optim.Phi.Drop, c.Optim.Phi.LogZRate = 2e-4, 0.25, 0.1
	c.Optim.Theta.Rate, c.Optim.Theta.Drop = 2e-4, -1
	c.Eval.On, c.Eval.Every, c.Eval.NLL, c.Eval.Samples, c.Eval.FitUpdates, c.Eval.ExtraEUpdates = onTest, 1000, true, 5000, 60_000, 400
	return c
}

// QuickConfig is the experiment in little, for two cores and a few minutes: grids of 2x2 codes, small networks,
// minibatches of 32 and, for every method alike, the same decoder, with batch normalisation and codes of 8 numbers, and 7
// epochs with ten times the published rates, which fall smoothly; and, for the GFlowNet, what makes it learn faster than as
// published: a policy that attends, an E- and an M-update of each minibatch instead of turns, several latents per image,
// which are compared with each other instead of with a learned log Z and the best of which the M-update takes, a sleep
// step after each E-step, and initial values that tell images apart from the start.
func QuickConfig() Config {
	c := PaperConfig()
	c.Method, c.TestImages, c.Batch, c.Epochs = MethodGD, 1000, 32, 7
	c.Model.Codes, c.Model.Rows, c.Model.Columns, c.Model.Channels, c.Model.Gain = 64, 2, 2, 16, 2
	c.Model.Norm, c.Model.CodeWidth = normBatch, 8
	c.Policy.Network, c.Policy.Width, c.Policy.Layers = networkAttention, 32, 1
	c.Policy.LogZ, c.Wake.Samples, c.Sleep.Probability = logZNone, 4, 1
	c.Gate.Turn, c.MStep.Latents = 0, latentsBest
	c.Optim.DropOn, c.Optim.Smooth = 1, true
	c.Optim.Phi.Rate, c.Optim.Phi.Drop, c.Optim.Theta.Rate, c.Optim.Theta.Drop = 2e-3, 0.15, 2e-3, 0.15
	c.Eval.Images, c.Eval.Samples, c.Eval.FitUpdates, c.Eval.ExtraEUpdates = 500, 500, 3000, 0
	return c
}

// BestConfig has all means of GFlowNet-EM that the table vae-ablation takes apart, for a GPU: a policy that sees each
// position and attends to the codes before, several latents of each image, which are compared with each other instead of
// with a learned log Z and teach the decoder by their importance weights, a sleep step after each E-step, both updates on
// each minibatch, batch normalisation in the decoder, codes of several numbers, and rates that fall smoothly.
func BestConfig() Config {
	c := PaperConfig()
	c.Epochs, c.Model.Norm, c.Model.CodeWidth = 100, normBatch, 16
	c.Policy.Network, c.Policy.Width, c.Policy.LogZ = networkAttention, 128, logZNone
	c.Wake.Samples, c.Sleep.Probability = 8, 1
	c.Gate.Turn, c.MStep.Latents = 0, latentsWeighted
	c.Optim.DropOn, c.Optim.Smooth = 50, true
	c.Optim.Phi.Rate, c.Optim.Phi.Drop, c.Optim.Theta.Rate, c.Optim.Theta.Drop = 5e-4, 0.05, 5e-4, 0.05
	c.Eval.ExtraEUpdates = 0
	return c
}

// StaticConfig is BestConfig for the fixed stochastic binarisation of MNIST, with grids of 7x7 codes of K = 16 and a learned
// prior, beside what the literature has with purely discrete latents.
func StaticConfig() Config {
	c := BestConfig()
	c.Data, c.Method = mnist.Binarized, MethodPrior
	c.Model.Codes, c.Model.Rows, c.Model.Columns = 16, 7, 7
	c.Policy.Width = 64 // 49 steps, each over 49 positions
	return c
}

// published are the epochs of a method and the epoch, from 1, of its lower rate. The loop of the VQ-VAE's code counts
// from 0 and includes its end, so that 50 epochs are 51.
func published(method string, codes int) (epochs, dropOn int) {
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
