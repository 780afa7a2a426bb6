package parse

import (
	"math"
	"slices"

	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/grammar/forest"
	"github.com/gfnem/gfnem/rng"
	"github.com/gfnem/gfnem/treebank"
)

// A GFlowNet ends in a tree z with the probability q(z) that all trajectories to z have together, one for each order in
// which its nodes can be made:
//
//	q(z) = sum_t P_F(t) = E[P_F(t) / P_B(t|z)] over orders t drawn by P_B.
//
// So the logarithm of an average of these ratios is below log q(z) in expectation (Jensen's inequality). If z was drawn
// by the GFlowNet itself and the ratio of the trajectory that made it is averaged in, it is above (Sobolev and Vetrov,
// "Importance Weighted Hierarchical Variational Inference", 2019). Both tend to log q(z) with the number of orders.

// orders draws orders of the trees that walks stand at, one of each sentence in a call, with log P_F - log P_B.
func (p *GFlowNet) orders(x Padded, walks forest.WalkTensors, key func(k uint64) *tensors.Tensor) em.Drawer {
	return em.DrawerFunc(func(k uint64, _ int) ([][]float64, error) {
		down, err := p.net.Undo(key(k), walks, x.Longest())
		if err != nil {
			return nil, err
		}
		return ratios(down.UndoneForward, down.UndoneBack), nil
	})
}

// ratios are the differences of numbers of single precision, each on its own.
func ratios(a, b *tensors.Tensor) [][]float64 {
	out, less := widened(a), widened(b)
	for i := range out {
		out[i] -= less[i]
	}
	return slices.Collect(slices.Chunk(out, 1))
}

// logMean is the logarithm of the average of exponentials.
func logMean(x ...float64) float64 { return gfn.LogSumExp(x) - math.Log(float64(len(x))) }

// LogQ estimates log q(z) of given trees from so many orders of each.
func (p *GFlowNet) LogQ(
	sentences []treebank.Sentence, trees []*grammar.Tree, count int, seed uint64,
) ([]float64, error) {
	out := make([]float64, len(sentences))
	return out, p.each(sentences, func(number int, at []int, x Padded) error {
		packed, err := grammar.PackByGaps(rowsOf(trees, at, p.Rows), x.Room())
		if err != nil {
			return err
		}
		walks, err := p.net.StandAt.Call(forest.TreesTensors{Sentences: x.SentenceTensors, Trees: packed})
		if err != nil {
			return err
		}
		key := func(k uint64) *tensors.Tensor { return rng.Key(seed, "gfn/orders", uint64(number), k) }
		estimates, err := em.Draws{Count: count, AtOnce: 1}.Estimates(len(at), p.orders(x, walks, key))
		for i, e := range estimates {
			out[at[i]] = e.LogZ
		}
		return err
	})
}
