package grammar_test

import (
	"fmt"
	"strings"

	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/backend"
	"github.com/gfnem/gfnem/grammar"
)

const pet = `{"kind": "cfg", "nonterminals": ["S", "NP"], "preterminals": ["D", "N", "V"],
 "words": ["the", "dog", "cat", "saw"], "root": {"S": 1},
 "binary": {"S": {"NP V": 0.5, "NP S": 0.25, "V NP": 0.25}, "NP": {"D N": 1}},
 "emit": {"D": {"the": 1}, "N": {"dog": 0.5, "cat": 0.5}, "V": {"saw": 1}}}`

// Two sentences of different lengths, in one batch: their probabilities and best parses.
func Example() {
	g, err := grammar.Read(strings.NewReader(pet), "pet.json")
	if err != nil {
		fmt.Println(err)
		return
	}
	b, err := backend.Open("simd")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer b.Finalize()
	lengths := []int32{3, 5}
	words := [][]int32{{0, 1, 3, 0, 0}, {0, 2, 3, 0, 1}} // "the dog saw", "the cat saw the dog"
	tables := g.LogProbs(dtypes.Float64)
	out := MustExecOnceN(b, func(root, rules, emit, words, lengths *Node) []*Node {
		p := grammar.LogProbs{Root: root, Rules: rules, Emit: emit}.For(words, lengths)
		best := p.Viterbi()
		return []*Node{grammar.LogLikelihood(p), best.Trees.Left, best.Trees.Right, best.Trees.Label, best.Tags}
	}, tables.Root, tables.Rules, tables.Emit, words, lengths)

	logs := tensors.MustCopyFlatData[float64](out[0])
	for i, t := range grammar.UnpackTrees(grammar.TreeTensors{Left: out[1], Right: out[2], Label: out[3]}, out[4], lengths) {
		var text []string
		for _, w := range words[i][:lengths[i]] {
			text = append(text, g.Words[w])
		}
		fmt.Printf("%.6f %s\n", logs[i], g.Format(t, text))
	}
	// Output:
	// -1.386294 (S (NP (D the) (N dog)) (V saw))
	// -4.158883 (S (NP (D the) (N cat)) (S (V saw) (NP (D the) (N dog))))
}
