package treebank_test

import (
	"fmt"
	"io"
	"strings"

	"github.com/gfnem/gfnem/treebank"
)

func ExampleReader() {
	file := `
( (S (NP-SBJ (DT The) (NN dog))
     (VP (VBZ sleeps)) (. .)) )
(S (NP (NN Time)) (VP (VBZ flies)))`
	trees, err := treebank.NewReader(strings.NewReader(file), "wsj_0001.mrg")
	if err != nil {
		fmt.Println(err)
		return
	}
	for {
		tree, err := trees.Next()
		if err == io.EOF {
			break
		} else if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("line %d: %s\n", trees.Line(), tree)
	}
	// Output:
	// line 2: (S (NP-SBJ (DT The) (NN dog)) (VP (VBZ sleeps)) (. .))
	// line 4: (S (NP (NN Time)) (VP (VBZ flies)))
}

func ExampleF1() {
	sentence := treebank.Sentence{
		Words: []int32{0, 1, 2, 3}, // the dog ate meat
		Gold:  []treebank.Span{{0, 1}, {2, 3}, {0, 3}},
	}
	guess := treebank.RightBranching(4)
	score, err := treebank.F1([]treebank.Sentence{sentence}, [][]treebank.Span{guess}, treebank.Standard)
	fmt.Printf("%v: %.1f %v\n", guess, score.Sentence, err)
	// Output: [[2 3] [1 3] [0 3]]: 50.0 <nil>
}
