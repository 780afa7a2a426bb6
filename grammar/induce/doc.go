// Package induce learns grammars from sentences: by exact marginalisation, and by EM with exact samples, with Markov chains, or with a
// GFlowNet (Hu et al., "GFlowNet-EM for Learning Compositional Latent Variable Models", 2023).
//
// The model is a neural grammar (package grammar), the data a treebank of which only the words are learned from. Its gold trees serve to
// score the trees that the grammar finds, and to learn a prior on the shapes of trees, if one is asked for. A grammar can also be given:
// then a GFlowNet learns to parse with it.
//
// Where things are:
//
//	config.go, validate.go    settings, presets, and what is wrong with them
//	session.go, programs.go   a training: its steps, its state, updates of the grammar
//	data.go                   sentences as batches
//	fixed.go, small.go        grammars that are given, and a small one that is built in
//
//	iterate.go                an iteration of GFlowNet-EM: E-step, gate, M-step
//	estep.go                  the E-step: walks, moves, dreams
//	travel.go                 journeys of these: with simd in legs, else at once, with few places where they are enough
//	gflownet*.go              the network's compiled programs; gflownet_learn.go has the losses, gflownet_moves.go how moves are judged, accepted and set out
//
//	parser.go, gfn_parser.go  trees by exact inference, and by a GFlowNet
//	evaluate.go               results of a run
//	gfn_*.go                  what a GFlowNet is worth: draws, orders of a tree, bounds and divergences
//	listed.go, listing.go     the same without drawing, where all trees can be listed
//	read.go, gfn_read.go      grammars and GFlowNets of finished runs
//	report*.go                report.html
//	table*.go                 tables of the paper beside ours
//	trial.go                  iterations, timed
package induce
