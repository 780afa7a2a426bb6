package main

import (
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/nn"
)

// sums adds up, in logarithms, all ways to fill the first 0, 1, ... letters with segments, [B,Max+1], from the weights of
// segments that begin at each letter and have 1, 2, ... letters, [B,Max,Longest].
func sums(weights *Node) *Node {
	b, largest, longest := weights.Shape().Dim(0), weights.Shape().Dim(1), weights.Shape().Dim(2)
	one := SliceAxis(weights, 2, AxisElem(0))
	fill := []*Node{ZerosLike(Reshape(SliceAxis(one, 1, AxisElem(0)), b))}
	for end := 1; end <= largest; end++ {
		var ways []*Node // by the length of the last segment
		for l := 1; l <= min(longest, end); l++ {
			last := Reshape(SliceAxis(SliceAxis(weights, 1, AxisElem(end-l)), 2, AxisElem(l-1)), b)
			ways = append(ways, Add(fill[end-l], last))
		}
		fill = append(fill, nn.LogSumExp(Stack(ways, 1), 1))
	}
	return Stack(fill, 1)
}

// LogLikelihood is log p(x), [B], over all segmentations, and the weights of words [B,Max,Longest]. The gradient by these
// is how probable it is that a word begins at a letter and has so many.
func (m Words) LogLikelihood(theta *model.Scope, x *Node) (logP, words *Node) {
	t := m.tables(theta, x.Graph())
	words = m.words(t, x)
	return Add(gfn.Pick(sums(words), length(x)), m.rest(t, x)), words
}
