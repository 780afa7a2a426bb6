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
package vae
