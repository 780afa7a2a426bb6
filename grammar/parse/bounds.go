package parse

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/treebank"
)

// fullPlan is what an evaluation draws for each sentence.
var fullPlan = drawPlan{samples: mbrSamples, trees: 2, orders: 16}

// Bounds say how near a GFlowNet is to the posterior of its grammar on some sentences, at temperature 1, without moves
// and without a prior on shapes.
type Bounds struct {
	Sentences int `json:"sentences"` // no longer than those that it reads
	Samples   int `json:"samples"`   // trajectories of each sentence
	Orders    int `json:"orders"`    // of each of the trees that KL over trees looks at

	// Bound is -E[log p(x,z) + log P_B - log P_F] over trajectories, an upper bound of -log p(x).
	Bound Measure `json:"bound"`
	// ImportanceBound is -E[log of the mean of exp(log p(x,z) + log P_B - log P_F) over all samples], which is tighter.
	ImportanceBound Measure `json:"importance_bound"`
	// Flow is what the network takes -log p(x) for. It bounds nothing, and is nil where no loss trains it.
	Flow *Measure `json:"flow_estimate,omitempty"`

	// KLTrajectories is the divergence from trajectories of P_F to those drawn by P_B from the exact posterior: Bound
	// less the exact -log p(x). That from q(z) to the posterior is no greater; it is between KLTreesLow and
	// KLTreesHigh, but for errors of drawing.
	KLTrajectories Measure `json:"kl_trajectories"`
	KLTreesLow     Measure `json:"kl_trees_at_least"`
	KLTreesHigh    Measure `json:"kl_trees_at_most"`

	// Spearman is the correlation of ranks between log p(x) and its flow estimate; nil without one, or where one of
	// them is constant.
	Spearman *float64 `json:"spearman,omitempty"`
	// ESS is how many exact samples the trajectories of a sentence are worth, mean of sentences.
	ESS float64 `json:"effective_samples"`
	// Labels is the number of nonterminals that the samples use, and LabelPerplexity exp of the entropy of how often.
	Labels          int     `json:"labels"`
	LabelPerplexity float64 `json:"label_perplexity"`
}

// Bounds compares the GFlowNet with the exact log p(x) of sentences. It also returns what was drawn for that.
func (p *GFlowNet) Bounds(sentences []treebank.Sentence, logX []float64, seed uint64) (*Bounds, *Draws, error) {
	d, err := p.drawAll(sentences, fullPlan, seed)
	if err != nil {
		return nil, nil, err
	}
	r := newBounds(sentences, logX, d)
	if p.NoFlows {
		return r, d, nil
	}
	flows, err := p.LogLikelihoods(sentences)
	if err != nil {
		return nil, nil, err
	}
	r.setFlows(sentences, logX, flows)
	return r, d, nil
}

func newBounds(sentences []treebank.Sentence, logX []float64, d *Draws) *Bounds {
	r := &Bounds{Sentences: len(sentences), Samples: fullPlan.samples, Orders: fullPlan.orders}
	r.Bound = measure(sentences, func(i int) (float64, float64) {
		mean, variance := average(d.LogW[i])
		return -mean, variance
	})
	r.ImportanceBound = measure(sentences, func(i int) (float64, float64) {
		e := gfn.EstimateLogZ(d.LogW[i])
		return -e.LogZ, e.StdErr * e.StdErr
	})
	for i := range sentences {
		r.ESS += gfn.EstimateLogZ(d.LogW[i]).ESS / float64(len(sentences))
	}
	r.KLTrajectories = measure(sentences, func(i int) (float64, float64) {
		mean, variance := average(d.LogW[i])
		return logX[i] - mean, variance
	})
	r.KLTreesLow = measure(sentences, func(i int) (float64, float64) { return klTrees(logX[i], d.LogW[i], d.low[i]) })
	r.KLTreesHigh = measure(sentences, func(i int) (float64, float64) { return klTrees(logX[i], d.LogW[i], d.high[i]) })
	return r
}

// setFlows adds what the network takes log p(x) for.
func (r *Bounds) setFlows(sentences []treebank.Sentence, logX, flows []float64) {
	flow := measure(sentences, func(i int) (float64, float64) { return -flows[i], 0 })
	r.Flow = &flow
	if c := spearman(logX, flows); !math.IsNaN(c) {
		r.Spearman = &c
	}
}

// Measure is a number in nats, averaged over sentences.
type Measure struct {
	PerWord     float64 `json:"per_word"` // every sentence has one more word, its end
	PerSentence float64 `json:"per_sentence"`
	// Error is the standard error of PerWord that comes from drawing trajectories, the sentences being given; 0 where
	// nothing was drawn.
	Error float64 `json:"per_word_error"`
}

// measure adds up what sentences say, each by a number and its variance.
func measure(sentences []treebank.Sentence, each func(i int) (value, variance float64)) Measure {
	var sum, variance float64
	for i := range sentences {
		v, s := each(i)
		sum, variance = sum+v, variance+s
	}
	tokens := float64(Tokens(sentences))
	return Measure{sum / tokens, sum / float64(len(sentences)), math.Sqrt(variance) / tokens}
}

// spearman is the correlation of ranks; NaN if one of the two is constant.
func spearman(x, y []float64) float64 { return stat.Correlation(ranks(x), ranks(y), nil) }

// ranks numbers values by size; equal ones share their mean number.
func ranks(x []float64) []float64 {
	sorted, order, out := slices.Clone(x), make([]int, len(x)), make([]float64, len(x))
	floats.Argsort(sorted, order)
	for from := 0; from < len(order); {
		to := from
		for to < len(order) && sorted[to] == sorted[from] {
			to++
		}
		for _, i := range order[from:to] {
			out[i] = float64(from+to-1) / 2
		}
		from = to
	}
	return out
}
