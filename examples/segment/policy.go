package main

import (
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/nn"
)

// policy is q(z|x). It reads what the model thinks of the words around a gap, and so follows when the model changes.
type policy struct{ Words }

var _ gfn.Encoder = policy{}

// Encode returns log odds that a word ends behind each letter, if it then has 1, 2, ... letters: [B,Max,Longest]. They
// are those of this word against all longer ones that begin where it begins, corrected by a network that sees the words
// around.
func (p policy) Encode(phi *model.Scope, x gfn.Batch) gfn.Batch {
	const least = -20
	t := p.tables(phi.Store().Scope(em.Theta), x[0].Graph())
	words := MaxScalar(p.words(t, x[0]), least) // [B,Max,Longest], by where they begin
	window := []*Node{words}
	for i := 1; i <= p.Longest; i++ {
		window = append(window, shifted(words, i, least), shifted(words, -i, least))
	}
	in := MulScalar(AddScalar(Concatenate(window, 2), -least/2), 0.2)
	odds := nn.MLP{Widths: []int{128, 128, p.Longest}}.Apply(phi, in)
	var against []*Node
	for l := range p.Longest - 1 {
		this, longer := SliceAxis(words, 2, AxisElem(l)), SliceAxis(words, 2, AxisRange(l+1, p.Longest))
		against = append(against, shifted(Sub(Squeeze(this, 2), nn.LogSumExp(longer, 2)), l, 0))
	}
	against = append(against, ZerosLike(against[0])) // the longest words end in any case
	return gfn.Batch{Add(odds, Stack(against, 2))}
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
