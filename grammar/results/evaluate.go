package results

import (
	"cmp"
	"fmt"

	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/grammar/parse"
	"github.com/gfnem/gfnem/report"
	"github.com/gfnem/gfnem/rng"
	"github.com/gfnem/gfnem/run"
	"github.com/gfnem/gfnem/treebank"
)

// Result is what a training leads to.
type Result struct {
	Task    string `json:"task"`
	Method  string `json:"method"`
	Grammar string `json:"grammar"`
	Seed    uint64 `json:"seed"`
	Updates uint64 `json:"updates"`
	// Iterations of GFlowNet-EM, in some of which the grammar was updated.
	Iterations uint64 `json:"iterations,omitempty"`
	// Short says that a training has ended with fewer updates than it was to make, and why; empty if not.
	Short string `json:"short,omitempty"`
	// Start says which of several starts was gone on with, the best by validation likelihood; empty if there was one.
	Start string `json:"start,omitempty"`
	// Measured says which state of the training this is of.
	Measured run.Standing  `json:"measured"`
	Splits   []SplitResult `json:"splits"`
}

var _ run.Result = (*Result)(nil)

// Headline implements run.Headliner: of the last split the F1 of most probable derivations, or the likelihood where
// there are no gold trees.
func (r *Result) Headline() (run.Headline, bool) {
	if len(r.Splits) == 0 {
		return run.Headline{}, false
	}
	s := r.Splits[len(r.Splits)-1]
	for _, f := range s.F1 {
		if f.Trees == string(parse.Viterbi) {
			return run.Headline{Name: s.Name + " F1", Value: f.Sentence}, true
		}
	}
	return run.Headline{Name: s.Name + " nats per word", Value: s.NLL, Low: true}, true
}

// SplitResult is the quality of a grammar on one split.
type SplitResult struct {
	Name      string `json:"name"`
	Sentences int    `json:"sentences"`
	// NLL is the negative log-likelihood in nats per word, where every sentence has one more word, its end.
	NLL float64 `json:"nll_per_word"`
	// TrueNLL is the same of the distribution the sentences were drawn from, if it is known.
	TrueNLL *float64 `json:"true_nll_per_word,omitempty"`
	F1      []F1     `json:"f1,omitempty"`
	// ByLength tells shorter sentences from longer ones, the last entry being all; nil if all are short.
	ByLength []Length `json:"by_length,omitempty"`
	// Labels is the number of nonterminals that most probable derivations use, and LabelPerplexity exp of the entropy
	// of how often: a grammar that has collapsed uses few.
	Labels          int     `json:"labels"`
	LabelPerplexity float64 `json:"label_perplexity"`
	// GFlowNet compares method gfn's network with exact inference.
	GFlowNet *parse.Bounds `json:"gflownet,omitempty"`
	// Listed does so without drawing, where the grammar is fixed and sentences are short.
	Listed *parse.Listed `json:"listed,omitempty"`
}

// F1 is how well trees match gold trees, in percent.
type F1 struct {
	Trees    string  `json:"trees"`
	Sentence float64 `json:"sentence"`
	Corpus   float64 `json:"corpus"`
	// Released is the mean of sentences by the metric of the released code, which loses a span at random.
	Released float64 `json:"released_sentence"`
}

// Evaluate implements run.Session.
func (s session) Evaluate() (out run.Result, err error) {
	err = s.AtBest(func() error {
		out, err = s.evaluateNow()
		return err
	})
	return out, err
}

// evaluateNow measures the grammar and the GFlowNet as they are.
func (s session) evaluateNow() (*Result, error) {
	updates, iterations := s.Counts()
	r := &Result{
		Task: Task{}.Name(), Method: s.Method, Grammar: s.Config.Model.Grammar, Seed: s.Config.Seed,
		Updates: updates, Short: s.Short(), Measured: s.Standing(),
	}
	if s.Network != nil {
		r.Iterations = iterations
	}
	if start, of, ok := s.Chosen(); ok {
		r.Start = fmt.Sprintf("start %d of %d was gone on with, the best by validation after %d updates", start, of, s.RestartUpdates)
	}
	for _, split := range s.HeldOut() {
		one, err := s.evaluate(split)
		if err != nil {
			return nil, err
		}
		r.Splits = append(r.Splits, one)
	}
	return r, nil
}

func (s session) evaluate(split *treebank.Split) (SplitResult, error) {
	r := SplitResult{Name: split.Name, Sentences: len(split.Sentences)}
	logX, err := s.Exact.LogLikelihoods(split.Sentences)
	if err != nil {
		return r, err
	}
	r.NLL, r.ByLength = parse.NatsPerWord(logX, split.Sentences), byLength(split.Sentences, logX)
	if split.TrueLogProb != nil {
		v := -*split.TrueLogProb / float64(parse.Tokens(split.Sentences))
		r.TrueNLL = &v
	}
	for _, how := range []parse.Decode{parse.Viterbi, parse.MBR, parse.Sample} {
		found, err := s.Exact.Parse(split.Sentences, how, s.Config.Seed)
		if err != nil {
			return r, err
		}
		trees := parse.Trees(found)
		if how == parse.Viterbi {
			r.Labels, r.LabelPerplexity = report.Usage(labels(trees, s.Model.Nonterminals))
		}
		if err := r.score(string(how), split, parse.Spans(trees)); err != nil {
			return r, err
		}
	}
	if s.Network != nil {
		if err := s.compare(&r, split, logX); err != nil {
			return r, err
		}
	}
	if !split.Gold {
		return r, nil
	}
	for _, b := range treebank.TrivialTrees(split.Sentences, rng.New(s.Config.Seed, "grammar/random-trees")) {
		if err := r.score(b.Name, split, b.Trees); err != nil {
			return r, err
		}
	}
	return r, nil
}

// labels counts how often trees have each label.
func labels(trees []*grammar.Tree, count int) []float64 {
	out := make([]float64, count)
	for _, t := range trees {
		for _, l := range t.Label {
			out[l]++
		}
	}
	return out
}

// compare adds what the GFlowNet does on a split, given the exact log p(x) of its sentences. Those that are longer than
// it reads are left out; then there is no F1 of its trees for all.
func (s session) compare(r *SplitResult, split *treebank.Split, logX []float64) error {
	short := *split
	short.Sentences, logX = upTo(s.Network.Longest(), split.Sentences, logX)
	if len(short.Sentences) == 0 {
		return nil
	}
	bounds, draws, err := s.Network.Bounds(short.Sentences, logX, s.Config.Seed)
	if err != nil {
		return err
	}
	bounds.Labels, bounds.LabelPerplexity = report.Usage(draws.Labels)
	r.GFlowNet = bounds
	err = cmp.Or(r.score(string(parse.GFNSample), &short, parse.Spans(draws.First)),
		r.score(string(parse.GFNMBR), &short, parse.Spans(draws.Best)))
	if err == nil && s.Fixed != "" {
		r.Listed, err = s.Network.List(short.Sentences)
	}
	return err
}

// score adds the F1 of trees, if there are gold trees; of all sentences of a split, or of the shorter ones.
func (r *SplitResult) score(name string, split *treebank.Split, spans [][]treebank.Span) error {
	if !split.Gold {
		return nil
	}
	if len(split.Sentences) < r.Sentences {
		return r.scoreLengths(name, split.Sentences, spans)
	}
	one, err := f1Of(name, split.Sentences, spans)
	if err != nil {
		return err
	}
	r.F1 = append(r.F1, one)
	return r.scoreLengths(name, split.Sentences, spans)
}
