// Package mnist holds black-and-white images to learn from: the MNIST digits, built in, or your own.
//
//	set, err := mnist.Open("digits")             // 60,000 + 10,000 digits, no file needed
//	set, err = mnist.Open("data/fashion")        // a folder of idx files
//	set.Train.Fill(batch, indices)               // float32 pixels, 0 or 1
//	images, names, err := mnist.Read(set.Size, "seven.png", "more/") // your own images
//	err = images.Gray().Write("out.png")         // a grid of all of them
//
// A pixel is 1 where there is ink, which MNIST and this package draw white on black. Gray values from 0 to 255 become 1
// from 128 on; this is the "static MNIST" of the GFlowNet-EM experiments. The fixed stochastic binarisation of the
// density-estimation literature (Salakhutdinov and Murray, 2008) is another data set, on which likelihoods are others:
// a folder whose pixels are 0 and 1 already is taken as it is, and [Set.Name] says which is which.
package mnist
