package induce

import (
	"cmp"
	"math"
	"slices"

	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/stat"

	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/grammar/prior"
	"github.com/gfnem/gfnem/rng"
	"github.com/gfnem/gfnem/treebank"
)

// drawPlan says what is drawn for each sentence.
type drawPlan struct {
	samples int // trajectories
	trees   int // of these, how many have orders drawn of the trees where they end
	orders  int // of each such tree
}

// draws are what the trajectories of one sentence say.
type draws struct {
	first *grammar.Tree // where the first trajectory ends
	best  *grammar.Tree // the tree with the most votes of their spans; nil if there was a single trajectory
	logW  []float64     // log p(x,z) + log P_B - log P_F of each trajectory
	// Estimates of log q(z) - log p(x,z) where trajectories end, below and above it in expectation.
	low, high []float64
}

// drawAll draws trajectories for all sentences at temperature 1. It also counts how often their trees have each label. A prior on shapes
// does not count.
func (p *GFNParser) drawAll(sentences []treebank.Sentence, plan drawPlan, seed uint64) (all []draws, labels []float64, err error) {
	all, labels = make([]draws, len(sentences)), make([]float64, p.net.Nonterminals)
	err = p.batches(sentences, func(number int, at []int, b batch) error {
		t := &batchDraws{GFNParser: p, scorer: walker{gflownet: p.net, batch: b}, seed: seed, number: uint64(number), labels: labels}
		if err := t.run(plan); err != nil {
			return err
		}
		for i, to := range at {
			all[to] = t.each[i]
		}
		return nil
	})
	return all, labels, err
}

// batchDraws is the draws of a batch of sentences.
type batchDraws struct {
	*GFNParser
	scorer walker // rewards trees
	seed   uint64
	number uint64 // of the batch
	votes  *spanVotes
	each   []draws // by sentence
	labels []float64
}

func (t *batchDraws) key(name string, number ...uint64) *tensors.Tensor {
	return rng.Key(t.seed, "gfn/try/"+name, append([]uint64{t.number}, number...)...)
}

func (t *batchDraws) run(plan drawPlan) (err error) {
	b := t.scorer.batch
	t.votes, t.each = newSpanVotes(b), make([]draws, b.size)
	if t.net.EBM {
		t.scorer.prior = make([]float32, prior.Size) // of a coldness of 0
	}
	weights, err := t.net.Potentials(b.observed())
	if err != nil {
		return err
	}
	t.scorer.aim(weights)
	for k := range plan.samples {
		d, logP, err := t.draw(uint64(k))
		if err != nil {
			return err
		}
		if k < plan.trees {
			if err := t.reorder(uint64(k), d, logP, plan.orders); err != nil {
				return err
			}
		}
	}
	if plan.samples == 1 {
		return nil
	}
	best, _, err := t.elect(b, t.votes)
	for i, z := range best {
		t.each[i].best = z
	}
	return err
}

// draw makes one trajectory of each sentence, and returns them with log p(x,z) where they end.
func (t *batchDraws) draw(k uint64) (drawn, []float64, error) {
	d, err := t.GFNParser.draw(t.scorer.batch, t.key("draw", k))
	if err != nil {
		return d, nil, err
	}
	out, err := t.net.Reward(t.scorer.target, d.walks.Forest)
	if err != nil {
		return d, nil, err
	}
	logP, trees := widened(out.LogR), d.trees(t.scorer.batch)
	t.votes.add(trees)
	for i, z := range trees {
		one := &t.each[i]
		if k == 0 {
			one.first = z
		}
		one.logW = append(one.logW, logP[i]+d.logPB[i]-d.logPF[i])
		for _, l := range z.Label {
			t.labels[l]++
		}
	}
	return d, logP, nil
}

// reorder draws orders of the trees where trajectories end.
func (t *batchDraws) reorder(k uint64, d drawn, logP []float64, count int) error {
	ratios, err := t.orders(t.scorer.batch, d.walks, count, func(o int) *tensors.Tensor { return t.key("order", k, uint64(o)) })
	for i, r := range ratios {
		one := &t.each[i]
		one.low = append(one.low, logMean(r...)-logP[i])
		one.high = append(one.high, logMean(append(r, d.logPF[i]-d.logPB[i])...)-logP[i])
	}
	return err
}

// klTrees estimates the divergence over trees of one sentence, and the variance of that, from estimates of log q(z) - log p(x,z) where
// some of the trajectories end. It is the one over trajectories, of which there are more, less what the orders of trees add, which
// varies little. The variance is an upper bound, since the two have trajectories in common.
func (t draws) klTrees(logX float64, logQ []float64) (value, variance float64) {
	mean, meanVariance := average(t.logW)
	orders := make([]float64, len(logQ))
	for k := range logQ {
		orders[k] = -t.logW[k] - logQ[k]
	}
	added, addedVariance := average(orders)
	shared := 2 * math.Sqrt(meanVariance*addedVariance*float64(len(logQ))/float64(len(t.logW)))
	return logX - mean - added, meanVariance + addedVariance + shared
}

// Measure is a number in nats, averaged over sentences.
type Measure struct {
	PerWord     float64 `json:"per_word"` // every sentence has one more word, its end
	PerSentence float64 `json:"per_sentence"`
	// Error is the standard error of PerWord that comes from drawing trajectories, the sentences being given; 0 where nothing was drawn.
	Error float64 `json:"per_word_error"`
}

// measure adds up what sentences say, each by a number and its variance.
func measure(sentences []treebank.Sentence, each func(i int) (value, variance float64)) Measure {
	var sum, variance float64
	for i := range sentences {
		v, s := each(i)
		sum, variance = sum+v, variance+s
	}
	tokens := float64(tokensOf(sentences))
	return Measure{PerWord: sum / tokens, PerSentence: sum / float64(len(sentences)), Error: math.Sqrt(variance) / tokens}
}

// average returns a mean and the square of its standard error, 0 for a single number.
func average(x []float64) (mean, variance float64) {
	if len(x) == 1 {
		return x[0], 0
	}
	mean, variance = stat.MeanVariance(x, nil)
	return mean, variance / float64(len(x))
}

// spearman is the correlation of ranks; NaN if one of the two is constant.
func spearman(x, y []float64) float64 { return stat.Correlation(ranks(x), ranks(y), nil) }

// ranks numbers values by size; equal ones share their mean number.
func ranks(x []float64) []float64 {
	order := make([]int, len(x))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(x[a], x[b]) })
	out := make([]float64, len(x))
	for from := 0; from < len(order); {
		to := from
		for to < len(order) && x[order[to]] == x[order[from]] {
			to++
		}
		for _, i := range order[from:to] {
			out[i] = float64(from+to-1) / 2
		}
		from = to
	}
	return out
}
