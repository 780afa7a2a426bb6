package main

import (
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/nn"
)

// policy is q(z|x). It looks at what the model thinks of the words around a gap, so that it follows when the model changes.
type policy struct{ Words }

var _ gfn.Encoder = policy{}

// Encode returns log odds that a word ends behind each letter, if it then has 1, 2, ... letters: [B,Max,Longest].
func (p policy) Encode(phi *model.Scope, x gfn.Batch) gfn.Batch {
	t := p.tables(phi.Store().Scope(em.Theta), x[0].Graph())
	words := MulScalar(AddScalar(MaxScalar(p.words(t, x[0]), -20), 10), 0.2) // of words that begin at a letter
	window := []*Node{words}
	for i := 1; i <= p.Longest; i++ {
		left, right := ShiftWithScalar(words, 1, ShiftDirRight, i, -2), ShiftWithScalar(words, 1, ShiftDirLeft, i, -2)
		window = append(window, left, right)
	}
	return gfn.Batch{nn.MLP{Widths: []int{128, 128, p.Longest}}.Apply(phi, StopGradient(Concatenate(window, 2)))}
}

// Heads returns logits of both actions in k states of each sentence: it looks up what Encode said.
func (p policy) Heads(_ *model.Scope, x gfn.Batch, s gfn.State, k int) gfn.Heads {
	odds := Reshape(x.Repeat(k)[0], -1, p.Max*p.Longest)
	cut := s[0] // [N,Max-1]: 1 where a word ends, 0 where it goes on, -1 where that is not decided
	gap := ReduceSum(ConvertDType(GreaterOrEqual(cut, ZerosLike(cut)), integer), 1)
	place := OnePlus(Iota(cut.Graph(), cut.Shape(), 1))
	begun := ReduceMax(Where(Equal(cut, OnesLike(cut)), place, ZerosLike(place)), 1)
	ends := gfn.Pick(odds, Add(MulScalar(gap, p.Longest), Sub(gap, begun)))
	return gfn.Heads{Forward: Stack([]*Node{ZerosLike(ends), ends}, 1)}
}
