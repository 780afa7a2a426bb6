package induce

import (
	"cmp"
	"math"
	"slices"

	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/stat"

	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/rng"
	"github.com/gfnem/gfnem/treebank"
)

// trialPlan says what is drawn for each sentence.
type trialPlan struct {
	samples int // trajectories
	trees   int // of these, how many have orders drawn of the trees where they end
	orders  int // of each such tree
}

// trials are what the trajectories of one sentence say.
type trials struct {
	first *grammar.Tree // where the first trajectory ends
	best  *grammar.Tree // the tree with the most votes of their spans; nil if there was a single trajectory
	logW  []float64     // log p(x,z) + log P_B - log P_F of each trajectory
	// Estimates of log q(z) - log p(x,z) where trajectories end, below and above it in expectation.
	low, high []float64
}

// try draws trajectories for all sentences at temperature 1. It also counts how often their trees have each label. A prior on shapes
// does not count.
func (p *GFNParser) try(sentences []treebank.Sentence, plan trialPlan, seed uint64) (all []trials, labels []float64, err error) {
	all, labels = make([]trials, len(sentences)), make([]float64, p.net.Nonterminals)
	err = p.batches(sentences, func(number int, at []int, b batch) error {
		w := &wakeUp{gflownet: p.net, batch: b}
		if p.net.EBM {
			w.prior = make([]float32, ebmSize)
		}
		var err error
		if w.potentials, err = p.net.potentials.Call(b.words, b.lengths); err != nil {
			return err
		}
		votes := newSpanVotes(b)
		for k := range plan.samples {
			key := func(name string, more ...uint64) *tensors.Tensor {
				return rng.Key(seed, "gfn/try/"+name, append([]uint64{uint64(number), uint64(k)}, more...)...)
			}
			d, err := p.draw(b, key("draw"))
			if err != nil {
				return err
			}
			out, _, err := w.reward(d.walks)
			if err != nil {
				return err
			}
			logP, trees := widened(out), d.trees(b)
			votes.add(trees)
			for i, t := range trees {
				one := &all[at[i]]
				if k == 0 {
					one.first = t
				}
				one.logW = append(one.logW, logP[i]+d.logPB[i]-d.logPF[i])
				for _, l := range t.Label {
					labels[l]++
				}
			}
			if k >= plan.trees {
				continue
			}
			ratios, err := p.orders(b, d.walks, plan.orders, func(o int) *tensors.Tensor { return key("order", uint64(o)) })
			if err != nil {
				return err
			}
			for i, r := range ratios {
				one := &all[at[i]]
				one.low = append(one.low, logMean(r...)-logP[i])
				one.high = append(one.high, logMean(append(r, d.logPF[i]-d.logPB[i])...)-logP[i])
			}
		}
		if plan.samples == 1 {
			return nil
		}
		best, _, err := p.elect(b, votes)
		for i, t := range best {
			all[at[i]].best = t
		}
		return err
	})
	return all, labels, err
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
