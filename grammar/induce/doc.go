// Package induce learns grammars from sentences: by exact marginalisation, and by EM with exact samples, with Markov
// chains, or with a GFlowNet (Hu et al., "GFlowNet-EM for Learning Compositional Latent Variable Models", 2023).
//
// The model is a neural grammar (package grammar), the data a treebank of which only the words are learned from. Its
// gold trees serve to score the trees that the grammar finds, and to learn a prior on the shapes of trees, if one is
// asked for. A grammar can also be given: then a GFlowNet learns to parse with it.
//
// Where things are:
//
//	config.go, validate.go    settings, presets, and what is wrong with them
//	session.go                a training: its steps, its state; watch.go measures it on the way, select.go and
//	                          restart.go keep its best state and the best of several starts
//	data.go                   sentences as batches
//	fixed.go                  grammars that are given
//	mstep.go, chains.go       M-steps; the E-step by Markov chains
//	estep.go, moves.go        the E-step by a GFlowNet: walks, moves, dreams
//	persist.go, replay.go     trees that are kept across epochs: chains that go on, trees that are learned from again
//	gflownet*.go              its network and programs; gflownet_learn.go has the losses
//	read.go                   the grammar and the GFlowNet of a run's folder
package induce
