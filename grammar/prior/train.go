package prior

import (
	"fmt"
	"math"
	"slices"

	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/grammar/chain"
	"github.com/gfnem/gfnem/rng"
	"github.com/gfnem/gfnem/treebank"
)

// Config says how a prior is learned.
type Config struct {
	Seed   uint64
	Batch  int
	LR, L2 float64
	Reset  float64 // the probability that a tree of the buffer is replaced by a gold tree
}

// Trainer learns a prior from gold trees by persistent contrastive divergence: it lowers the energy of gold trees and
// raises that of trees in a buffer, which a Markov chain of rotations moves towards low energy.
type Trainer struct {
	Checkpoint
	c    Config
	gold []*grammar.Tree

	epoch uint64
	order []int // of gold trees in the epoch; nil at first
}

// Checkpoint is what a trainer remembers.
type Checkpoint struct {
	Params []float64       `json:"params"`
	First  []float64       `json:"first"` // moments of the gradient
	Second []float64       `json:"second"`
	Buffer []*grammar.Tree `json:"buffer"`
}

// NewTrainer prepares to learn from the gold trees of sentences.
func NewTrainer(c Config, sentences []treebank.Sentence) *Trainer {
	t := &Trainer{c: c}
	for _, s := range sentences {
		t.gold = append(t.gold, leftBinary(s.Gold, len(s.Words)))
	}
	t.Params = NewParameters(rng.New(c.Seed, "grammar/ebm"))
	t.First, t.Second = make([]float64, size), make([]float64, size)
	return t
}

// leftBinary is a binary tree with all gold spans in which constituents of more than two parts are divided to the left,
// as in the released code.
func leftBinary(gold []treebank.Span, n int) *grammar.Tree {
	// Mirror the sentence, divide to the right, and mirror back.
	mirror := func(spans []treebank.Span) []treebank.Span {
		out := make([]treebank.Span, len(spans))
		for i, s := range spans {
			out[i] = treebank.Span{n - 1 - s[1], n - 1 - s[0]}
		}
		return out
	}
	return treeOf(mirror(treebank.Binarize(mirror(gold), n)), n)
}

// treeOf makes a tree of the spans of a binary one, parts before wholes. Labels are 0.
func treeOf(spans []treebank.Span, n int) *grammar.Tree {
	t := &grammar.Tree{}
	at := make([]int, n)    // the node that begins with a word and covers most
	until := make([]int, n) // and its last word
	for i := range n {
		at[i], until[i] = i, i
	}
	for _, s := range spans {
		mid := until[s[0]] + 1
		t.Left, t.Right, t.Label = append(t.Left, at[s[0]]), append(t.Right, at[mid]), append(t.Label, 0)
		at[s[0]], until[s[0]] = n+len(t.Left)-1, s[1]
	}
	return t
}

// Step makes one update and returns how much lower the energy of gold trees is than that of the buffer. If that is not
// finite, parameters and moments stay as they are.
func (t *Trainer) Step(number uint64) float64 {
	perEpoch := uint64(max(1, len(t.gold)/t.c.Batch))
	if e := number / perEpoch; t.order == nil || e != t.epoch {
		t.epoch, t.order = e, rng.New(t.c.Seed, "grammar/ebm-epoch", e).Perm(len(t.gold))
	}
	batch := make([]*grammar.Tree, t.c.Batch)
	for i := range batch {
		batch[i] = t.gold[t.order[(int(number%perEpoch)*t.c.Batch+i)%len(t.order)]]
	}
	if number%perEpoch == 0 {
		t.Buffer = slices.Clone(batch)
	}
	r := rng.New(t.c.Seed, "grammar/ebm-step", number)
	net := NewNet(t.Params)
	for i, b := range t.Buffer {
		if b.Words() < 3 {
			continue
		}
		z := chain.NewTree(b)
		before := net.Energy(z)
		z.Rotate(r.IntN(z.Words() - 2))
		if u := math.Log(r.Float64()); u <= before-net.Energy(z) {
			t.Buffer[i] = z.Copy()
		}
	}
	grad := make([]float64, size)
	gap, w := 0.0, 1/float64(len(batch))
	for i := range batch {
		gap -= w * net.gradient(chain.NewTree(batch[i]), w, grad)
		gap += w * net.gradient(chain.NewTree(t.Buffer[i]), -w, grad)
	}
	if !notFinite(gap) && !slices.ContainsFunc(grad, notFinite) {
		t.adam(number+1, grad)
	} else {
		gap = math.NaN()
	}
	for i := range t.Buffer {
		if r.Float64() < t.c.Reset {
			t.Buffer[i] = batch[r.IntN(len(batch))]
		}
	}
	return gap
}

func notFinite(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) }

// adam follows a gradient, with the weight decay of the loss added.
func (t *Trainer) adam(count uint64, grad []float64) {
	const beta1, beta2, epsilon = 0.9, 0.99, 1e-8
	fix1, fix2 := 1-math.Pow(beta1, float64(count)), 1-math.Pow(beta2, float64(count))
	for i, g := range grad {
		g += 2 * t.c.L2 * t.Params[i]
		t.First[i] = beta1*t.First[i] + (1-beta1)*g
		t.Second[i] = beta2*t.Second[i] + (1-beta2)*g*g
		t.Params[i] -= t.c.LR * (t.First[i] / fix1) / (math.Sqrt(t.Second[i]/fix2) + epsilon)
	}
}

// LogPrior is -E(tree)/temperature, for chains of so many sentences that run at the same time.
func (t *Trainer) LogPrior(sentences int, temperature float64) func(sentence int, z *chain.Tree) float64 {
	nets := make([]*Net, sentences)
	for i := range nets {
		nets[i] = NewNet(t.Params)
	}
	return func(sentence int, z *chain.Tree) float64 { return -nets[sentence].Energy(z) / temperature }
}

// Check says whether what was loaded is whole.
func (s *Checkpoint) Check() error {
	if len(s.Params) != size || len(s.First) != size || len(s.Second) != size {
		return fmt.Errorf("the prior has %d parameters, want %d", len(s.Params), size)
	}
	return nil
}
