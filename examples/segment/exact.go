package main

import (
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/nn"
	"github.com/gfnem/gfnem/optim"
)

// sums adds up, in logarithms, all ways to fill the first 0, 1, ... letters with words, [B,Max+1], by the logarithms of
// what words weigh that begin at each letter and have 1, 2, ... letters, [B,Max,Longest].
func sums(words *Node) *Node {
	most, longest := words.Shape().Dim(1), words.Shape().Dim(2)
	word := func(begin, l int) *Node {
		return Squeeze(SliceAxis(SliceAxis(words, 1, AxisElem(begin)), 2, AxisElem(l-1)), 1, 2)
	}
	fill := []*Node{ZerosLike(word(0, 1))}
	for end := 1; end <= most; end++ {
		var ways []*Node // by the length of the last word
		for l := 1; l <= min(longest, end); l++ {
			ways = append(ways, Add(fill[end-l], word(end-l, l)))
		}
		fill = append(fill, nn.LogSumExp(Stack(ways, 1), 1))
	}
	return Stack(fill, 1)
}

// shifted moves rows [B,Max,...] by so many letters to the right, or to the left if that is negative.
func shifted(rows *Node, by int, fill float64) *Node {
	switch {
	case by > 0:
		return ShiftWithScalar(rows, 1, ShiftDirRight, by, fill)
	case by < 0:
		return ShiftWithScalar(rows, 1, ShiftDirLeft, -by, fill)
	}
	return rows
}

// LogLikelihood is log p(x), [B], the sum over all segmentations. Its gradient by the log-probabilities of words,
// [B,Max,Longest], is how probable it is, given x, that a word begins at a letter and has so many.
func (m Words) LogLikelihood(theta *model.Scope, x *Node) (logP, words *Node) {
	t := m.tables(theta, x.Graph())
	words = m.words(t, x)
	return Add(gfn.Pick(sums(words), length(x)), m.rest(t, x)), words
}

// Ends is log p(x), [B], and how probable it is, given x, that a word ends behind each letter, [B,Max].
func (m Words) Ends(theta *model.Scope, x *Node) (logP, ends *Node) {
	logP, words := m.LogLikelihood(theta, x)
	word := Gradient(ReduceAllSum(logP), words)[0]
	ends = ZerosLike(Squeeze(SliceAxis(word, 2, AxisElem(0)), 2))
	for l := range m.Longest {
		ends = Add(ends, shifted(Squeeze(SliceAxis(word, 2, AxisElem(l)), 2), l, 0))
	}
	return logP, ends
}

// exactEM is an M-step that needs no latents: it follows the gradient of log p(x).
type exactEM struct {
	update    *model.Exec
	optimizer optim.Optimizer
}

var _ em.MStepper[[]*tensors.Tensor, struct{}] = exactEM{}

// newExactEM returns the loop of exact EM.
func newExactEM(e experiment, store *model.Store) (*em.Loop[[]*tensors.Tensor, struct{}], error) {
	s := exactEM{optimizer: e.counting()}
	var err error
	s.update, err = model.NewExec(e.b, store, func(root *model.Scope, rates, x *Node) []*Node {
		logP, _ := e.m.LogLikelihood(root.Store().Scope(em.Theta), x)
		loss := Neg(ReduceAllMean(logP))
		r := s.optimizer.Minimize(store, loss, rates)
		return []*Node{loss, r.GradNorm, r.OK}
	})
	return &em.Loop[[]*tensors.Tensor, struct{}]{Data: e.data(), M: s}, err
}

// Maximize implements em.MStepper.
func (s exactEM) Maximize(at em.Moment, x []*tensors.Tensor, _ struct{}) (em.Maximization, error) {
	out, err := s.update.Call(s.optimizer.Rates(at.M), x[0])
	if err != nil {
		return em.Maximization{}, err
	}
	loss, norm, ok := out[0].Value().(float32), out[1].Value().(float32), out[2].Value().(bool)
	return em.NewMaximization(em.Update{Loss: float64(loss), GradNorm: float64(norm), OK: ok}), nil
}
