package synthetic_test

import (
	"fmt"

	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/grammar/synthetic"
	"github.com/gfnem/gfnem/treebank"
)

func ExampleTreebank() {
	data, err := synthetic.Treebank(grammar.NCFG, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	test, err := data.Split(treebank.Test)
	if err != nil {
		fmt.Println(err)
		return
	}
	first := test.Sentences[0]
	fmt.Println(data.Text(first), first.Gold)
	fmt.Printf("%.4f nats per word\n", -*test.TrueLogProb/float64(data.Stats(test).Tokens))
	// Output:
	// a cat who waited lived [[2 3] [1 3] [0 3] [0 4]]
	// 3.0120 nats per word
}
