package main

type dataCmd struct {
	Treebank dataTreebankCmd `cmd:"" help:"Make a data set of trees or sentences."`
	Show     dataShowCmd     `cmd:"" help:"Print the counts of a data set or of a file of trees."`
}
