package bench

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gomlx/compute"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/grammar/forest"
	"github.com/gfnem/gfnem/internal/memory"
	"github.com/gfnem/gfnem/internal/program"
	"github.com/gfnem/gfnem/nn"
	"github.com/gfnem/gfnem/report"
	"github.com/gfnem/gfnem/rng"
)

// inference is the size of a grammar and of its sentences.
type inference struct{ nonterminals, preterminals, words, sentences int }

// insideStep is inside at the size that options say, each sentence having rules of its own.
func insideStep(gradient bool) repeated {
	return func(b compute.Backend, o Options) (prepared, error) {
		z := inference{o.Nonterminals, o.Preterminals, o.Words, o.Sentences}
		return z.inside(grammar.CFG, true, gradient)(b, o)
	}
}

// weights are those of all derivations, and insideOut their sums.
type (
	weights[T any]      struct{ Root, Rules, Terms, Lengths T }
	insideOut[T, G any] struct {
		Total     T
		Gradients G
	}
)

// inside adds up random derivations of each sentence, with the gradient to all weights or without.
func (z inference) inside(kind grammar.Kind, own, gradient bool) repeated {
	symbols := z.nonterminals + z.preterminals
	root, terms := []int{z.nonterminals}, []int{z.sentences, z.words, z.preterminals}
	if own {
		root = []int{z.sentences, z.nonterminals}
	}
	rules := slices.Clone(root)
	if kind == grammar.NCFG {
		rules, terms = append(rules, z.nonterminals+1), append(terms, z.nonterminals)
	}
	rules = append(rules, symbols, symbols)
	return func(b compute.Backend, _ Options) (prepared, error) {
		s := program.NewSet(b, nil)
		p := program.New[weights[*tensors.Tensor], insideOut[float64, []*tensors.Tensor]](s, "inside",
			func(w weights[*Node]) (out insideOut[*Node, []*Node]) {
				q := grammar.Potentials{Root: w.Root, Rules: w.Rules, Terms: w.Terms, Lengths: w.Lengths}
				out.Total = ReduceAllSum(grammar.LogLikelihood(q))
				if gradient {
					out.Gradients = Gradient(out.Total, q.Rules, q.Root, q.Terms)
				}
				return out
			})
		memory.Must("a table of weights of rules", append([]int{4}, rules...)...) // the largest of all, before any is drawn
		w := weights[*tensors.Tensor]{normal(root...), normal(rules...), normal(terms...), z.lengths()}
		return prepared{func() error {
			out, err := p.Call(w)
			for _, t := range out.Gradients {
				err = errors.Join(err, t.FinalizeAll())
			}
			return err
		}, s.Close}, nil
	}
}

func (z inference) lengths() *tensors.Tensor {
	memory.Must("a batch of sentences", 8, z.sentences)
	return tensors.FromValue(slices.Repeat([]int32{int32(z.words)}, z.sentences))
}

// walks draw a tree for each sentence by a GFlowNet of the published width.
func (z inference) walks(linear bool) repeated {
	net := forest.Paper(1000, z.nonterminals, z.preterminals)
	net.Positions, net.Linear = z.words, linear
	memory.Must("a batch of sentences", 8, z.words, z.sentences)
	words := make([]int32, z.words*z.sentences)
	for i := range words {
		words[i] = int32(i % net.Words)
	}
	return func(b compute.Backend, _ Options) (prepared, error) {
		s := program.NewSet(b, nn.NewStore(0))
		sampler := forest.NewSampler(s, net, nil)
		x := forest.SentenceTensors{
			Words: tensors.FromFlatDataAndDimensions(words, z.sentences, z.words), Lengths: z.lengths(),
		}
		return prepared{func() error {
			w, err := sampler.Draw(rng.Key(0, "scaling"), em.Knobs[*tensors.Tensor]{}, x, z.words)
			if err != nil {
				return err
			}
			_, err = tensors.CopyFlatData[float32](w.MadeForward)
			return err
		}, s.Close}, nil
	}
}

// The sizes of the paper's complexity table as a measurement: numbers of words with 90 symbols, and of symbols with 20
// words. A third of the symbols are nonterminals.
const midWords, midSymbols = 20, 90

func scaling(b compute.Backend, o Options, each func(Result) error) error {
	o.For /= 5 // there are many
	var all variants
	for _, size := range []struct{ words, symbols int }{
		{10, midSymbols}, {midWords, midSymbols}, {40, midSymbols}, {80, midSymbols}, {midWords, 30}, {midWords, 270},
	} {
		z := inference{size.symbols / 3, size.symbols - size.symbols/3, size.words, o.Sentences}
		values := map[string]float64{
			"words": float64(size.words), "symbols": float64(size.symbols), "sentences": float64(o.Sentences),
		}
		all = append(all,
			variant{"GFlowNet, full attention", values, z.walks(false)},
			variant{"GFlowNet, linear attention", values, z.walks(true)},
			variant{"inside, CFG", values, z.inside(grammar.CFG, false, false)},
			variant{"inside, Non-CFG", values, z.inside(grammar.NCFG, false, false)},
		)
	}
	return all.measure(b, o, each)
}

// drawScaling draws times against the number of words and against that of symbols.
func drawScaling(all []Result) report.Figure {
	panel := func(x, label, fixed string, at float64) report.Panel {
		p := report.Lines{Axes: report.Axes{
			Title: fmt.Sprintf("%g %s", at, fixed),
			X:     report.Axis{Label: label, Log: true}, Y: report.Axis{Label: "milliseconds", Log: true},
		}}
		for _, r := range slices.SortedStableFunc(slices.Values(all), func(a, b Result) int {
			return cmp.Compare(a.Values[x], b.Values[x])
		}) {
			if r.Values[fixed] != at {
				continue
			}
			_, name, _ := strings.Cut(r.Workload, " ")
			i := slices.IndexFunc(p.Series, func(s report.Series) bool { return s.Name == name })
			if i < 0 {
				i, p.Series = len(p.Series), append(p.Series, report.Series{Name: name})
			}
			p.Series[i].X, p.Series[i].Y = append(p.Series[i].X, r.Values[x]), append(p.Series[i].Y, r.MedianMS)
		}
		return p
	}
	return report.Figure{Panels: [][]report.Panel{{
		panel("words", "words of a sentence", "symbols", midSymbols), panel("symbols", "symbols", "words", midWords),
	}}}
}
