package parse

import (
	"math"

	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/stat"

	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/grammar/forest"
	"github.com/gfnem/gfnem/rng"
	"github.com/gfnem/gfnem/treebank"
)

// drawPlan says what is drawn for each sentence.
type drawPlan struct {
	samples int // trajectories
	trees   int // of these, how many have orders drawn of the trees where they end
	orders  int // of each such tree
}

// Draws are what trajectories say, sentence by sentence.
type Draws struct {
	First []*grammar.Tree // where the first trajectory ends
	Best  []*grammar.Tree // the tree with the most votes of their spans; nil if there was a single trajectory
	LogW  [][]float64     // log p(x,z) + log P_B - log P_F of each trajectory
	// Labels counts how often the trees of all sentences have each label.
	Labels []float64
	// Estimates of log q(z) - log p(x,z) where trajectories end, below and above it in expectation.
	low, high [][]float64
}

// DrawOnce makes one trajectory for each sentence.
func (p *GFlowNet) DrawOnce(sentences []treebank.Sentence, seed uint64) (*Draws, error) {
	return p.drawAll(sentences, drawPlan{samples: 1}, seed)
}

// drawAll draws trajectories for all sentences at temperature 1. A prior on shapes does not count.
func (p *GFlowNet) drawAll(sentences []treebank.Sentence, plan drawPlan, seed uint64) (*Draws, error) {
	n := len(sentences)
	d := &Draws{
		First: make([]*grammar.Tree, n), Best: make([]*grammar.Tree, n), LogW: make([][]float64, n),
		low: make([][]float64, n), high: make([][]float64, n), Labels: make([]float64, p.net.Labels),
	}
	return d, p.each(sentences, func(number int, at []int, x Padded) error {
		weights, err := p.net.Potentials.Call(x.SentenceTensors)
		if err != nil {
			return err
		}
		b := &batchDraws{
			GFlowNet: p, Draws: d, x: x, at: at, votes: newSpanVotes(x), seed: seed, number: uint64(number),
			target: forest.Target[*tensors.Tensor]{Weights: weights, Lengths: x.Lengths},
		}
		return b.run(plan)
	})
}

// batchDraws draws for a batch of sentences.
type batchDraws struct {
	*GFlowNet
	*Draws
	x      Padded
	at     []int // where the sentences are in Draws
	votes  *spanVotes
	seed   uint64
	number uint64 // of the batch
	target forest.Target[*tensors.Tensor]
}

func (b *batchDraws) key(name string, number ...uint64) *tensors.Tensor {
	return rng.Key(b.seed, "gfn/try/"+name, append([]uint64{b.number}, number...)...)
}

func (b *batchDraws) run(plan drawPlan) error {
	one := func(k uint64, _ int) ([][]float64, error) { return b.one(k, plan) }
	weights, err := em.Draws{Count: plan.samples, AtOnce: 1}.Weights(len(b.at), em.DrawerFunc(one))
	for i, w := range weights {
		b.LogW[b.at[i]] = w
	}
	if err != nil || plan.samples == 1 {
		return err
	}
	best, _, err := b.elect(b.x, b.votes)
	for i, z := range best {
		b.Best[b.at[i]] = z
	}
	return err
}

// one makes one trajectory of each sentence, and returns its log-weight.
func (b *batchDraws) one(k uint64, plan drawPlan) (logW [][]float64, err error) {
	d, err := b.draw(b.x, b.key("draw", k))
	if err != nil {
		return nil, err
	}
	out, err := b.net.Reward.Call(forest.RewardTensors{Target: b.target, Forest: d.walks.Forest, Inside: d.walks.Inside})
	if err != nil {
		return nil, err
	}
	if err := b.label(&d, b.key("labels", k), b.x); err != nil {
		return nil, err
	}
	logP, trees := widened(out.LogR), d.trees(b.x)
	b.votes.add(trees)
	for i, z := range trees {
		if k == 0 {
			b.First[b.at[i]] = z
		}
		logW = append(logW, []float64{logP[i] + d.logPB[i] - d.logPF[i]})
		for _, l := range z.Label {
			b.Labels[l]++
		}
	}
	if int(k) < plan.trees {
		err = b.reorder(k, plan.orders, d, logP)
	}
	return logW, err
}

// reorder draws orders of the trees where trajectories end, and estimates log q(z) - log p(x,z) from them.
func (b *batchDraws) reorder(k uint64, orders int, d drawn, logP []float64) error {
	key := func(o uint64) *tensors.Tensor { return b.key("order", k, o) }
	ratios, err := em.Draws{Count: orders, AtOnce: 1}.Weights(len(b.at), b.orders(b.x, d.walks, key))
	for i, r := range ratios {
		at := b.at[i]
		b.low[at] = append(b.low[at], logMean(r...)-logP[i])
		b.high[at] = append(b.high[at], logMean(append(r, d.logPF[i]-d.logPB[i])...)-logP[i])
	}
	return err
}

// klTrees estimates the divergence over trees of one sentence, and the variance of that, from the weights of
// trajectories and from estimates of log q(z) - log p(x,z) where some of them end. It is the divergence over
// trajectories, of which there are more, less what the orders of trees add, which varies little. The variance is an
// upper bound, since the two have trajectories in common.
func klTrees(logX float64, logW, logQ []float64) (value, variance float64) {
	mean, meanVariance := average(logW)
	orders := make([]float64, len(logQ))
	for k := range logQ {
		orders[k] = -logW[k] - logQ[k]
	}
	added, addedVariance := average(orders)
	shared := 2 * math.Sqrt(meanVariance*addedVariance*float64(len(logQ))/float64(len(logW)))
	return logX - mean - added, meanVariance + addedVariance + shared
}

// average returns a mean and the square of its standard error, 0 for a single number.
func average(x []float64) (mean, variance float64) {
	if len(x) == 1 {
		return x[0], 0
	}
	mean, variance = stat.MeanVariance(x, nil)
	return mean, variance / float64(len(x))
}
