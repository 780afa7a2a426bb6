// Package vae learns images as grids of codes: discrete variational autoencoders whose encoder is a GFlowNet.
//
// The model is p(z) p(x|z): z fills a grid with codes 0..K-1, a table turns each code into numbers, a convolutional
// decoder turns the grid of numbers into the means of the pixels, which are Bernoulli variables, and the prior p(z) is
// uniform or a PixelCNN. The encoder q(z|x) fills the grid code by code, and sees what it has chosen.
// GFlowNet-EM trains both (Hu et al., ICML 2023, section 5.3); a VQ-VAE, whose encoder chooses all codes at once, stands
// beside it.
//
// The axes, by letter: B images, H and W pixels, h and w the grid of codes, n = h*w positions in raster order, K codes, C
// channels. Images are [B,H,W,1] with pixels 0 or 1, latents [B,n] int32. The model's variables live below em.Theta, the
// GFlowNet's below em.Phi. Likelihoods are in nats.
//
// Where things are:
//
//	config.go, presets.go      settings, what is wrong with them, and presets
//	session.go, data.go        a training: its steps, its state, images as minibatches
//	gfn_train.go, vq_train.go  its updates: GFlowNet-EM, and the VQ-VAE
//
//	size.go, order.go          the size of everything, how images shrink to grids, and how these are filled
//	networks.go, batchnorm.go  blocks that the networks below share
//	decoder.go, model.go       the decoder of either method, p(x|z) and p(z)
//	pixelcnn.go                a learned p(z)
//	policy.go, attentive.go    q(z|x), the GFlowNet: the published network, and one that attends
//	vq.go                      the VQ-VAE
//
//	result.go                  results of a run
//	likelihood.go              log p(x) by importance sampling
//	fit.go                     posteriors that it draws from: fitted to a VQ-VAE, or brought up to date
//	codec.go, load.go          images to codes and back, by models of finished runs too
//	choices.go                 how probable every code is at each step of an encoding
//	report*.go                 report.html
//
// Package results makes tables of trainings, and vaecmd has commands.
package vae
