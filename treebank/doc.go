// Package treebank reads parsed text, prepares it as is usual for unsupervised parsing, and scores predicted trees.
//
//	trees, err := treebank.NewReader(file, "wsj_0001.mrg")  // one tree at a time, gzip or not
//	data, err := treebank.Build(inputs, treebank.Options{}) // words, vocabulary, gold spans
//	err = data.Save("data/ptb", false)                      // text files and a manifest with hashes
//	data, err = treebank.Load("data/ptb")                   // verified
//
// A data set on disk is a folder of text files:
//
//	train.txt, valid.txt, test.txt   one prepared sentence a line, words between spaces
//	train.spans, ...                 its gold spans, "0-1 0-4", in the order in which constituents close
//	vocabulary.txt                   one word a line, in order of their numbers
//	manifest.json                    options, counts, and the SHA-256 of each file and of itself
//
// The zero Options are the preprocessing of Kim, Dyer and Rush (2019), "Compound probabilistic context-free grammars
// for grammar induction". Positions of words count from 0, and a [Span] holds its first and its last word.
package treebank
