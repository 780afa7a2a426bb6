// Package induce learns grammars from sentences: the classical methods, by exact inference or by a Markov chain.
//
// The model is a neural grammar (package grammar), the data a treebank of which only the words are learned from. Its gold trees
// serve to score the trees that the grammar finds.
package induce
