// Package vae learns images as grids of codes: discrete variational autoencoders whose encoder is a GFlowNet.
//
// The model is p(z) p(x|z): z fills a grid with codes 0..K-1, a table turns each code into a number, a convolutional
// decoder turns the grid of numbers into the means of the pixels, which are Bernoulli variables, and the prior p(z) is
// uniform or a PixelCNN. The encoder q(z|x) fills the grid code by code, in raster order, and sees what it has chosen.
// GFlowNet-EM trains both (Hu et al., ICML 2023, section 5.3); a VQ-VAE, whose encoder chooses all codes at once, stands
// beside it.
//
// The axes, by letter: B images, H and W pixels, h and w the grid of codes, n = h*w positions in raster order, K codes, C
// channels. Images are [B,H,W,1] with pixels 0 or 1, latents [B,n] int32. The model's variables live below em.Theta, the
// GFlowNet's below em.Phi. Likelihoods are in nats.
//
// Where things are:
//
//	config.go                  settings, presets, and what is wrong with them
//	session.go, data.go        a training: its steps, its state, images as minibatches
//	gfn_train.go, vq_train.go  its updates: GFlowNet-EM, and the VQ-VAE
//
//	size.go                    the size of everything, and how images shrink to grids
//	networks.go, batchnorm.go  blocks that the networks below share
//	model.go, pixelcnn.go      p(x|z) and p(z)
//	policy.go                  q(z|x), the GFlowNet
//	vq.go                      the VQ-VAE
//
//	result.go                  results of a run
//	likelihood.go              log p(x) by importance sampling
//	fit.go                     posteriors that it draws from: fitted to a VQ-VAE, or brought up to date
//	codec.go, load.go          images to codes and back, by models of finished runs too
//	report*.go                 report.html
//	reproduce.go               the table of the paper beside ours
package vae
