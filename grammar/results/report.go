package results

import (
	"cmp"
	"fmt"

	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/grammar/induce"
	"github.com/gfnem/gfnem/grammar/parse"
	"github.com/gfnem/gfnem/report"
	"github.com/gfnem/gfnem/run"
	"github.com/gfnem/gfnem/task"
	"github.com/gfnem/gfnem/treebank"
)

// lead says in a sentence what a report is about.
func (s session) lead() string {
	switch {
	case s.Fixed != "":
		return "A grammar that was given, and the trees that a GFlowNet learned to find by it."
	case s.Prior.On:
		return "A grammar learned from sentences, with a prior on the shapes of trees that was learned from annotated ones, and the trees that it finds."
	}
	return "A grammar learned from sentences alone, and the trees that it finds."
}

// Report implements run.Session.
func (s session) Report(r *run.Run, dir string, res run.Result) error {
	return s.AtBest(func() error { return s.report(r, dir, res) })
}

func (s session) report(r *run.Run, dir string, res run.Result) error {
	own := res.(*Result)
	points, err := run.ReadMetrics(r.Dir())
	if err != nil {
		return err
	}
	p, err := s.parseForReport(s.Shown())
	if err != nil {
		return err
	}
	if s.Network != nil {
		if err := s.drawForReport(p); err != nil {
			return err
		}
	}
	trees, err := p.treeFigures()
	if err != nil {
		return err
	}
	page := task.Page(r, s, res, s.lead())
	section := page.Section("Result").Note(own.Short).Note(own.Start).Note(own.Measured.Note()).Note(run.Unfinished(s))
	for _, t := range own.tables() {
		section.Table(t)
	}
	learned := page.Section("Grammar")
	err = cmp.Or(page.Section("Training").Figures(dir, s.curves(points, own)...),
		page.Section("Trees").Figures(dir, trees...), learned.Figures(dir, p.usageFigures()...))
	if err != nil {
		return err
	}
	learned.Table(p.ruleTable()).Table(p.wordTable())
	data, note := s.Dataset()
	page.Section("Data").Note(note).Table(data.Table())
	return task.Finish(page, r, dir)
}

// parsed is a split with its most probable derivations.
type parsed struct {
	*grammar.Grammar
	split       *treebank.Split
	trees       []*grammar.Tree
	logP        []float64 // of the derivations
	logX        []float64 // of the sentences
	usage       []float64 // how many constituents have each nonterminal
	tagged      []float64 // how many words have each preterminal
	below, host [][]int   // how often a nonterminal is below a parent (0 is ROOT), and a preterminal below a nonterminal
	gfn         *gfnDrawn // what the GFlowNet has drawn; nil with other methods
}

// parseForReport parses a split with the grammar as it is.
func (s session) parseForReport(split *treebank.Split) (p *parsed, err error) {
	p = &parsed{split: split}
	if p.Grammar, err = s.Learned(); err != nil {
		return nil, err
	}
	if p.logX, err = s.Exact.LogLikelihoods(split.Sentences); err != nil {
		return nil, err
	}
	best, err := s.Exact.Parse(split.Sentences, parse.Viterbi, s.Config.Seed)
	if err != nil {
		return nil, err
	}
	p.trees = parse.Trees(best)
	for _, f := range best {
		p.logP = append(p.logP, f.LogDerivation)
	}
	p.count()
	return p, nil
}

// count fills in how often symbols are used.
func (p *parsed) count() {
	nt, pt := len(p.Nonterminals), len(p.Preterminals)
	p.usage, p.tagged = labels(p.trees, nt), make([]float64, pt)
	p.below, p.host = make([][]int, nt), make([][]int, pt)
	for i := range p.below {
		p.below[i] = make([]int, nt+1)
	}
	for i := range p.host {
		p.host[i] = make([]int, nt)
	}
	for _, t := range p.trees {
		n := t.Words()
		for m, label := range t.Label {
			for _, c := range []int{t.Left[m], t.Right[m]} {
				if c < n {
					p.tagged[t.Tags[c]]++
					p.host[t.Tags[c]][label]++
				} else {
					p.below[t.Label[c-n]][label+1]++
				}
			}
		}
		p.below[t.Label[n-2]][0]++
	}
}

// curves are what was measured during the training; those without a point are left out.
func (s session) curves(points []run.Point, res *Result) (out []report.Named) {
	valid := res.Splits[0]
	var truth, right []report.Level
	if valid.Name == treebank.Valid {
		if valid.TrueNLL != nil {
			truth = []report.Level{{Name: "the true distribution, on the whole split", Value: *valid.TrueNLL}}
		}
		for _, f := range valid.F1 {
			if f.Trees == "right-branching" {
				right = []report.Level{{Name: "right-branching, on the whole split", Value: f.Sentence}}
			}
		}
	}
	some := fmt.Sprintf(" At most %d validation sentences are behind each point.", induce.Watched)
	x, nats, fraction := report.Axis{Label: "updates"}, report.Axis{Label: "nats per word"}, report.Axis{Label: "fraction"}
	if s.Network != nil {
		x.Label = "iterations"
	}
	plots := append([]report.Plot{
		{Name: "loss", Caption: "Loss of each batch, by words and sentence ends.", Y: nats, Keys: []string{"loss_per_word"}},
		{Name: "nll", Caption: "−log p(x) of validation sentences, by words and sentence ends." + some, Y: nats, Levels: truth,
			Keys:  []string{"valid/nll_per_word", "valid/bound_per_word", "valid/flow_per_word"},
			Names: []string{"learned", "bound by the GFlowNet", "flow estimate, no bound"}},
		{Name: "f1", Caption: "F1 of trees on validation sentences, mean of sentences." + some, Y: report.Axis{Label: "percent"}, Levels: right,
			Keys: []string{"valid/f1", "valid/gfn_f1"}, Names: []string{"most probable derivations", "draws of the GFlowNet"}},
		{Name: "acceptance", Caption: "Accepted proposals of the Markov chains over trees.", Y: fraction,
			Keys: []string{"chain/rotated", "chain/relabelled", "moves/accepted"}, Names: []string{"rotations", "labels", "moves back and forth"}},
	}, s.gfnPlots()...)
	for i := range plots {
		plots[i].X = x
	}
	draw := func(from uint64, plots ...report.Plot) {
		for _, p := range plots {
			if f, ok := p.Draw(func(key string) (x, y []float64) { return curve(points, key, from) }); ok {
				out = append(out, f)
			}
		}
	}
	var from uint64 // updates of the prior come first
	if s.Prior.On {
		from = uint64(s.Prior.Updates)
	}
	draw(from, plots...)
	draw(0, report.Plot{Name: "prior", X: report.Axis{Label: "updates"}, Y: report.Axis{Label: "energy gap"}, Keys: []string{"ebm/gap"},
		Caption: "How much lower the energy of gold trees is than that of the trees which the prior draws, while it learns."})
	return out
}

// curve reads one metric of a run, with steps counted from one of them.
func curve(points []run.Point, key string, from uint64) (x, y []float64) {
	x, y = run.Curve(points, key)
	for i := range x {
		x[i] -= float64(from)
	}
	return x, y
}
