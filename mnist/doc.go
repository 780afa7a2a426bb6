// Package mnist holds black-and-white images to learn from: the MNIST digits, built in, or your own.
//
//	set, err := mnist.Open("digits")                           // 60,000 + 10,000 digits, no file needed
//	set, err = mnist.Open("data/fashion")                      // a folder of idx files
//	set.Train.Fill(batch, indices)                             // float32 pixels, 0 or 1
//	images, names, err := mnist.Read(set.Size, "7.png", "more") // your own, from files and folders
//	err = mnist.NewGray(set.Size, means).Encode(w, mnist.PNG)  // a grid of what a model makes
//
// A pixel is 1 where there is ink, which is white on black. Gray values from 0 to 255 become 1 from 128 on: this is the
// "static MNIST" of the GFlowNet-EM experiments. The fixed stochastic binarisation of the density-estimation literature
// (Salakhutdinov and Murray, 2008), built in as "binarized", is another data set with other likelihoods. Files whose pixels
// are 0 and 1 already are taken as they are, and [Set.Name] says what a set is.
package mnist
