package bench

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/gomlx/compute"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/grammar/forest"
	"github.com/gfnem/gfnem/internal/program"
	"github.com/gfnem/gfnem/nn"
	"github.com/gfnem/gfnem/report"
	"github.com/gfnem/gfnem/rng"
)

// Scaling is what inference costs at a size: trees drawn by a GFlowNet of the published width, or log p(x) by all trees.
type Scaling struct {
	Method   string  `json:"method"`
	Words    int     `json:"words"`   // of each sentence
	Symbols  int     `json:"symbols"` // a third of them nonterminals
	Batch    int     `json:"batch"`
	MedianMS float64 `json:"median_ms"`
	MinMS    float64 `json:"min_ms"`
}

// scalingMethods are compared, in this order.
var scalingMethods = []struct {
	name string
	step func(b compute.Backend, words, symbols, batch int) (func() error, error)
}{
	{"GFlowNet, full attention", func(b compute.Backend, n, s, batch int) (func() error, error) { return walkStep(b, n, s, batch, false) }},
	{"GFlowNet, linear attention", func(b compute.Backend, n, s, batch int) (func() error, error) { return walkStep(b, n, s, batch, true) }},
	{"inside, CFG", func(b compute.Backend, n, s, batch int) (func() error, error) {
		return allTrees(b, grammar.CFG, n, s, batch)
	}},
	{"inside, Non-CFG", func(b compute.Backend, n, s, batch int) (func() error, error) {
		return allTrees(b, grammar.NCFG, n, s, batch)
	}},
}

// The sizes of the paper's complexity table as a measurement.
var (
	ScalingWords   = []int{10, 20, 40, 80} // with ScalingSymbols[1] symbols
	ScalingSymbols = []int{30, 90, 270}    // with ScalingWords[1] words
)

// RunScaling measures all methods at all sizes, small ones first, for about the given time each.
func RunScaling(b compute.Backend, batch int, about time.Duration, each func(Scaling) error) error {
	type size struct{ words, symbols int }
	sizes := []size{}
	for _, n := range ScalingWords {
		sizes = append(sizes, size{n, ScalingSymbols[1]})
	}
	for _, s := range []int{ScalingSymbols[0], ScalingSymbols[2]} {
		sizes = append(sizes, size{ScalingWords[1], s})
	}
	for _, z := range sizes {
		for _, m := range scalingMethods {
			step, err := m.step(b, z.words, z.symbols, batch)
			if err != nil {
				return fmt.Errorf("%s: %w", m.name, err)
			}
			t, err := measure(m.name, step, about)
			if err != nil {
				return err
			}
			if err := each(Scaling{m.name, z.words, z.symbols, batch, t.MedianMS, t.MinMS}); err != nil {
				return err
			}
		}
	}
	return nil
}

// walkStep draws a tree for each sentence.
func walkStep(b compute.Backend, n, symbols, batch int, linear bool) (func() error, error) {
	store := nn.NewStore(0)
	net := forest.Paper(1000, symbols/3, symbols-symbols/3)
	net.Positions, net.Linear = n, linear
	sampler := forest.NewSampler(program.NewSet(b, store), net, nil)
	words, lengths := sentences(n, batch)
	x := forest.SentenceTensors{Words: words, Lengths: lengths}
	return func() error {
		w, err := sampler.Draw(rng.Key(0, "scaling"), em.Knobs[*tensors.Tensor]{}, x, n)
		if err != nil {
			return err
		}
		_, err = tensors.CopyFlatData[float32](w.MadeForward)
		return err
	}, nil
}

// sentences are of n words each.
func sentences(n, batch int) (words, lengths *tensors.Tensor) {
	all, lens := make([]int32, n*batch), make([]int32, batch)
	for i := range all {
		all[i] = int32(i % 1000)
	}
	for i := range lens {
		lens[i] = int32(n)
	}
	return tensors.FromFlatDataAndDimensions(all, batch, n), tensors.FromFlatDataAndDimensions(lens, batch)
}

// allTrees is log p(x) with one table of rules for all sentences.
func allTrees(b compute.Backend, kind grammar.Kind, n, symbols, batch int) (func() error, error) {
	nt := symbols / 3
	pt := symbols - nt
	rules, terms := []int{nt, symbols * symbols}, []int{batch, n, pt}
	shape := []int{nt, symbols, symbols}
	if kind == grammar.NCFG {
		rules, terms = []int{nt, nt + 1, symbols * symbols}, []int{batch, n, pt, nt}
		shape = []int{nt, nt + 1, symbols, symbols}
	}
	logs, err := NewExec(b, func(in []*Node) []*Node {
		return []*Node{Reshape(LogSoftmax(in[0]), shape...), LogSoftmax(in[1]), AddScalar(in[2], -5)}
	})
	if err != nil {
		return nil, err
	}
	in, err := logs.Call(normal(rules...), normal(nt), normal(terms...))
	if err != nil {
		return nil, err
	}
	_, lengths := sentences(n, batch)
	return runs(b, nn.NewStore(0), func(in []*Node) []*Node {
		return []*Node{grammar.LogLikelihood(grammar.Potentials{Rules: in[0], Root: in[1], Terms: in[2], Lengths: in[3]})}
	}, append(in, lengths)...)
}

// ScalingFigure draws times against the number of words and against that of symbols.
func ScalingFigure(all []Scaling) report.Figure {
	panel := func(title, x string, keep func(Scaling) bool, at func(Scaling) int) report.Panel {
		p := report.Lines{Axes: report.Axes{
			Title: title, X: report.Axis{Label: x, Log: true}, Y: report.Axis{Label: "milliseconds", Log: true},
		}}
		for _, m := range scalingMethods {
			s := report.Series{Name: m.name}
			for _, v := range slices.SortedFunc(slices.Values(all), func(a, b Scaling) int { return cmp.Compare(at(a), at(b)) }) {
				if v.Method == m.name && keep(v) {
					s.X, s.Y = append(s.X, float64(at(v))), append(s.Y, v.MedianMS)
				}
			}
			if len(s.X) > 0 {
				p.Series = append(p.Series, s)
			}
		}
		return p
	}
	words := func(s Scaling) bool { return s.Symbols == ScalingSymbols[1] }
	symbols := func(s Scaling) bool { return s.Words == ScalingWords[1] }
	return report.Figure{Panels: [][]report.Panel{{
		panel(fmt.Sprintf("%d symbols", ScalingSymbols[1]), "words of a sentence", words, func(s Scaling) int { return s.Words }),
		panel(fmt.Sprintf("%d words", ScalingWords[1]), "symbols", symbols, func(s Scaling) int { return s.Symbols }),
	}}}
}
