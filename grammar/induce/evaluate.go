package induce

import (
	"errors"
	"fmt"
	"io"

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
	Short  string        `json:"short,omitempty"`
	Splits []SplitResult `json:"splits"`
}

var _ run.Result = (*Result)(nil)

// SplitResult is the quality of a grammar on one split.
type SplitResult struct {
	Name      string `json:"name"`
	Sentences int    `json:"sentences"`
	// NLL is the negative log-likelihood in nats per word, where every sentence has one more word, its end.
	NLL float64 `json:"nll_per_word"`
	// TrueNLL is the same of the distribution the sentences were drawn from, if it is known.
	TrueNLL *float64 `json:"true_nll_per_word,omitempty"`
	F1      []F1     `json:"f1,omitempty"`
	// Labels is the number of nonterminals that most probable derivations use, and LabelPerplexity exp of the entropy of
	// how often: a grammar that has collapsed uses few.
	Labels          int     `json:"labels"`
	LabelPerplexity float64 `json:"label_perplexity"`
	// GFlowNet compares method gfn's network with exact inference.
	GFlowNet *GFNResult `json:"gflownet,omitempty"`
	// Listed does so without drawing, where the grammar is fixed and sentences are short.
	Listed *Listed `json:"listed,omitempty"`
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
func (s *session) Evaluate() (run.Result, error) {
	r := &Result{
		Task: Task{}.Name(), Method: s.Method, Grammar: s.Grammar, Seed: s.Config.Seed, Updates: s.made(), Iterations: s.loop.State().Iteration, Short: s.short(),
	}
	for _, split := range heldOut(s.data) {
		one, err := s.evaluate(split)
		if err != nil {
			return nil, err
		}
		r.Splits = append(r.Splits, one)
	}
	return r, nil
}

// short explains a training that has ended with fewer updates than it was to make.
func (s *session) short() string {
	if s.gfn == nil || !s.Done() || s.made() >= uint64(s.Config.Updates) {
		return ""
	}
	if s.fixed != nil {
		return fmt.Sprintf("max_iterations = %d ended the training after %d of %d updates", s.MaxIterations, s.made(), s.Config.Updates)
	}
	return fmt.Sprintf("max_iterations = %d ended the training after %d of %d M-steps: raise it, or the threshold of the gate",
		s.MaxIterations, s.made(), s.Config.Updates)
}

// heldOut are the splits that a grammar is evaluated on.
func heldOut(d *treebank.Dataset) []*treebank.Split {
	var out []*treebank.Split
	for _, name := range []string{treebank.Valid, treebank.Test} {
		if split, err := d.Split(name); err == nil && len(split.Sentences) > 0 {
			out = append(out, split)
		}
	}
	return out
}

func (s *session) evaluate(split *treebank.Split) (SplitResult, error) {
	r := SplitResult{Name: split.Name, Sentences: len(split.Sentences)}
	logP, err := s.parser.LogLikelihoods(split.Sentences)
	if err != nil {
		return r, err
	}
	tokens := tokensOf(split.Sentences)
	r.NLL = perToken(logP, tokens)
	if split.TrueLogProb != nil {
		v := -*split.TrueLogProb / float64(tokens)
		r.TrueNLL = &v
	}
	for _, how := range []Decode{Viterbi, MBR, Sample} {
		trees, _, err := s.parser.Parse(split.Sentences, how, s.Config.Seed)
		if err != nil {
			return r, err
		}
		if how == Viterbi {
			count := make([]float64, s.Nonterminals)
			for _, t := range trees {
				for _, l := range t.Label {
					count[l]++
				}
			}
			r.Labels, r.LabelPerplexity = report.Usage(count)
		}
		if split.Gold {
			if err := r.score(string(how), split, spansOf(trees)); err != nil {
				return r, err
			}
		}
	}
	if s.gfn != nil {
		if err := s.evaluateGFN(&r, split, logP); err != nil {
			return r, err
		}
		if r.Listed, err = s.list(split); err != nil {
			return r, err
		}
	}
	if split.Gold {
		err = r.baselines(split, s.Config.Seed)
	}
	return r, err
}

// score adds an F1.
func (r *SplitResult) score(name string, split *treebank.Split, spans [][]treebank.Span) error {
	own, err := treebank.F1(split.Sentences, spans, treebank.Standard)
	if err != nil {
		return err
	}
	released, err := treebank.F1(split.Sentences, spans, treebank.Released)
	if err != nil {
		return err
	}
	r.F1 = append(r.F1, F1{Trees: name, Sentence: own.Sentence, Corpus: own.Corpus, Released: released.Sentence})
	return nil
}

// baselines adds the F1 of trees that know nothing of the words, and of the best that a binary tree can do.
func (r *SplitResult) baselines(split *treebank.Split, seed uint64) error {
	for _, b := range treebank.TrivialTrees(split.Sentences, rng.New(seed, "grammar/random-trees")) {
		if err := r.score(b.Name, split, b.Trees); err != nil {
			return err
		}
	}
	return nil
}

// perToken is the negative of a sum of log-likelihoods by the number of words and sentence ends.
func perToken(logP []float64, tokens int) float64 {
	nll := 0.0
	for _, v := range logP {
		nll -= v
	}
	return nll / float64(tokens)
}

// watch measures the grammar on some validation sentences, for the curves.
func (s *session) watch(log map[string]float64) error {
	split, err := s.data.Split(treebank.Valid)
	if err != nil || len(split.Sentences) == 0 {
		return nil
	}
	some := spread(split.Sentences, watched)
	logP, err := s.parser.LogLikelihoods(some)
	if err != nil {
		return err
	}
	log["valid/nll_per_word"] = perToken(logP, tokensOf(some))
	if s.gfn != nil {
		if err := s.watchGFN(log, some, split.Gold); err != nil && !errors.Is(err, errNotFinite) { // which the updates count
			return err
		}
	}
	if !split.Gold {
		return nil
	}
	trees, _, err := s.parser.Parse(some, Viterbi, s.Config.Seed)
	if err != nil {
		return err
	}
	score, err := treebank.F1(some, spansOf(trees), treebank.Standard)
	log["valid/f1"] = score.Sentence
	return err
}

// spread takes at most n sentences at even distances, since files are often sorted by length.
func spread(all []treebank.Sentence, n int) []treebank.Sentence {
	if len(all) <= n {
		return all
	}
	some := make([]treebank.Sentence, n)
	for i := range some {
		some[i] = all[i*len(all)/n]
	}
	return some
}

// watched is the number of validation sentences behind a point of the curves.
const watched = 256

// tables compare trees, split by split.
func (r *Result) tables() []*report.Table {
	var out []*report.Table
	for _, s := range r.Splits {
		t := &report.Table{
			Title:   fmt.Sprintf("%s: %d sentences, %.4f nats per word", s.Name, s.Sentences, s.NLL),
			Columns: report.Columns("trees", "sentence F1", "corpus F1", "sentence F1 as released"),
			Notes: []string{
				"nats per word: -log p(x), summed over sentences, by the number of words and sentence ends",
				fmt.Sprintf("%d of the nonterminals are used by most probable derivations, perplexity %.1f", s.Labels, s.LabelPerplexity),
			},
		}
		if s.TrueNLL != nil {
			t.Notes = append(t.Notes, fmt.Sprintf("the distribution that the sentences come from has %.4f nats per word", *s.TrueNLL))
		}
		for _, f := range s.F1 {
			t.Add(report.Text(f.Trees), report.Number(f.Sentence, 2), report.Number(f.Corpus, 2), report.Number(f.Released, 2))
		}
		out = append(out, t)
		if s.GFlowNet != nil {
			out = append(out, s.gfnTable())
		}
		if s.Listed != nil {
			out = append(out, s.listedTable())
		}
	}
	return out
}

// Print implements run.Result.
func (r *Result) Print(w io.Writer) error {
	for _, t := range r.tables() {
		if _, err := fmt.Fprintln(w, t); err != nil {
			return err
		}
	}
	if r.Short == "" {
		return nil
	}
	_, err := fmt.Fprintf(w, "Note: %s.\n", r.Short)
	return err
}
