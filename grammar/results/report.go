package results

import (
	"fmt"
	"path/filepath"

	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/grammar/induce"
	"github.com/gfnem/gfnem/grammar/parse"
	"github.com/gfnem/gfnem/report"
	"github.com/gfnem/gfnem/run"
	"github.com/gfnem/gfnem/treebank"
)

// figure is a figure of a report, which is also saved under its name.
type figure struct {
	name, caption string
	report.Figure
}

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
func (s session) Report(r *run.Run, res run.Result) error {
	own := res.(*Result)
	points, err := run.ReadMetrics(r.Dir())
	if err != nil {
		return err
	}
	p, err := s.parseForReport(s.HeldOut()[0])
	if err != nil {
		return err
	}
	if s.Network() != nil {
		if err := s.drawForReport(p); err != nil {
			return err
		}
	}
	trees, err := p.treeFigures()
	if err != nil {
		return err
	}
	page := &report.Page{Title: "Grammar induction", Lead: s.lead()}
	section := page.Section("Result")
	if own.Short != "" {
		section.Paragraph("Note: " + own.Short + ".")
	}
	for _, t := range own.tables() {
		section.Table(t)
	}
	for _, part := range []struct {
		heading string
		figures []figure
		tables  []*report.Table
	}{
		{"Training", s.curves(points, own), nil},
		{"Trees", trees, nil},
		{"Grammar", p.usageFigures(), []*report.Table{p.ruleTable(), p.wordTable()}},
	} {
		section := page.Section(part.heading)
		for _, f := range part.figures {
			if err := f.Save(r.Dir(), f.name); err != nil {
				return err
			}
			section.Figure(f.Figure, f.caption)
		}
		for _, t := range part.tables {
			section.Table(t)
		}
	}
	page.Section("Configuration").Pre(r.Config())
	page.Section("Provenance").Pre(r.Info().String())
	return page.WriteFile(filepath.Join(r.Dir(), "report.html"))
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
	if p.logX, err = s.Exact().LogLikelihoods(split.Sentences); err != nil {
		return nil, err
	}
	best, err := s.Exact().Parse(split.Sentences, parse.Viterbi, s.Config.Seed)
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
func (s session) curves(points []run.Point, res *Result) []figure {
	var from uint64 // updates of the prior, which come first
	if s.Prior.On {
		from = uint64(s.Prior.Updates)
	}
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
	all := append([]plot{
		{name: "loss", caption: "Loss of each batch, by words and sentence ends.", label: "nats per word", keys: []string{"loss_per_word"}},
		{name: "nll", caption: "−log p(x) of validation sentences, by words and sentence ends." + some, label: "nats per word", levels: truth,
			keys:  []string{"valid/nll_per_word", "valid/bound_per_word", "valid/flow_per_word"},
			names: []string{"learned", "bound by the GFlowNet", "flow estimate, no bound"}},
		{name: "f1", caption: "F1 of trees on validation sentences, mean of sentences." + some, label: "percent", levels: right,
			keys: []string{"valid/f1", "valid/gfn_f1"}, names: []string{"most probable derivations", "draws of the GFlowNet"}},
		{name: "acceptance", caption: "Accepted proposals of the Markov chains over trees.", label: "fraction",
			keys: []string{"chain/rotated", "chain/relabelled", "moves/accepted"}, names: []string{"rotations", "labels", "moves back and forth"}},
	}, s.gfnPlots()...)
	var out []figure
	for _, p := range all {
		p.x = "updates"
		if s.Network() != nil {
			p.x = "iterations"
		}
		out = p.appendTo(out, points, from)
	}
	prior := plot{name: "prior", label: "energy gap", x: "updates", keys: []string{"ebm/gap"},
		caption: "How much lower the energy of gold trees is than that of the trees which the prior draws, while it learns."}
	return prior.appendTo(out, points, 0)
}

// plot is a figure of metrics over time.
type plot struct {
	name, caption string
	x, label      string   // of the axes
	log           bool     // the scale of the second
	keys, names   []string // of metrics; names may be nil
	levels        []report.Level
}

// appendTo draws a plot, unless there is nothing to draw. Steps are counted from one of them.
func (p plot) appendTo(out []figure, points []run.Point, from uint64) []figure {
	lines := report.Lines{
		Axes: report.Axes{X: report.Axis{Label: p.x}, Y: report.Axis{Label: p.label, Log: p.log}}, Levels: p.levels,
	}
	for i, key := range p.keys {
		c := curve(points, key, from)
		if p.names != nil {
			c.Name = p.names[i]
		}
		if len(c.Y) > 0 {
			lines.Series = append(lines.Series, c)
		}
	}
	if len(lines.Series) == 0 {
		return out
	}
	return append(out, figure{p.name, p.caption, report.NewFigure(lines)})
}

// curve reads one metric of a run, with steps counted from one of them.
func curve(points []run.Point, key string, from uint64) report.Series {
	var c report.Series
	for _, p := range points {
		if v, ok := p.Values[key]; ok {
			c.X, c.Y = append(c.X, float64(p.Step)-float64(from)), append(c.Y, v)
		}
	}
	return c
}
