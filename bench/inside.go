package bench

import (
	"github.com/gomlx/compute"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/nn"
)

// InsideSize is the size of the workloads inside and inside-grad.
type InsideSize struct{ Nonterminals, Preterminals, Words, Sentences int }

// insideStep is log p(x) of sentences, each with a table of rules of its own; with the gradient to all potentials if grad.
func insideStep(b compute.Backend, z InsideSize, grad bool) (func() error, error) {
	n, s := z.Nonterminals, z.Nonterminals+z.Preterminals
	// Logits become log-probabilities once, before what is measured.
	logs, err := NewExec(b, func(in []*Node) []*Node {
		rules := Reshape(LogSoftmax(in[0]), z.Sentences, n, s, s)
		return []*Node{rules, LogSoftmax(in[1]), AddScalar(in[2], -5)}
	})
	if err != nil {
		return nil, err
	}
	in, err := logs.Call(normal(z.Sentences, n, s*s), normal(z.Sentences, n), normal(z.Sentences, z.Words, z.Preterminals))
	if err != nil {
		return nil, err
	}
	lengths := make([]int32, z.Sentences)
	for i := range lengths {
		lengths[i] = int32(z.Words)
	}
	return runs(b, nn.NewStore(0), func(in []*Node) []*Node {
		total := ReduceAllSum(grammar.LogLikelihood(grammar.Potentials{Rules: in[0], Root: in[1], Terms: in[2], Lengths: in[3]}))
		if grad {
			return append([]*Node{total}, Gradient(total, in[0], in[1], in[2])...)
		}
		return []*Node{total}
	}, append(in, tensors.FromFlatDataAndDimensions(lengths, z.Sentences))...)
}
