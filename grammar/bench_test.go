package grammar

import (
	"flag"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/internal/program"
	"github.com/gfnem/gfnem/rng"
)

// normal draws a tensor of standard normal numbers plus a constant.
func normal(r *rand.Rand, plus float32, dims ...int) *tensors.Tensor {
	size := 1
	for _, d := range dims {
		size *= d
	}
	x := make([]float32, size)
	for i := range x {
		x[i] = float32(r.NormFloat64()) + plus
	}
	return tensors.FromFlatDataAndDimensions(x, dims...)
}

var benchWords = flag.Int("words", 20, "words of the sentences of benchmarks")

// inference is a function of potentials that is measured.
type inference func(p Potentials) []*Node

// forSizes benchmarks functions of potentials at 30 nonterminals, 60 preterminals, 20 words or as -words says, 32
// sentences: with one table of rules, with one for each sentence, and with rules that see the parent.
func forSizes(b *testing.B, bench func(b *testing.B, compile func(f inference) (call func(), took time.Duration))) {
	const nt, pt, batch = 30, 60, 32
	n := *benchWords
	const s = nt + pt
	r := rand.New(rand.NewPCG(1, 1))
	lengths := make([]int32, batch)
	for i := range lengths {
		lengths[i] = int32(n)
	}
	lens := tensors.FromFlatDataAndDimensions(lengths, batch)
	for _, c := range []struct {
		name        string
		rules, term []int
	}{
		{"shared", []int{nt, s, s}, []int{batch, n, pt}},
		{"own", []int{batch, nt, s, s}, []int{batch, n, pt}},
		{"parents", []int{nt, nt + 1, s, s}, []int{batch, n, pt, nt}},
	} {
		b.Run(c.name, func(b *testing.B) {
			args := []any{normal(r, 0, nt), normal(r, 0, c.rules...), normal(r, -5, c.term...), lens}
			bench(b, func(f inference) (func(), time.Duration) {
				exec := MustNewExec(newBackend(), func(root, raw, terms, lengths *Node) []*Node {
					rules := Reshape(LogSoftmax(Reshape(raw, c.rules[0], c.rules[1], -1)), c.rules...)
					if c.name == "shared" {
						rules = Reshape(LogSoftmax(Reshape(raw, nt, -1)), c.rules...)
					}
					return f(Potentials{Root: root, Rules: rules, Terms: terms, Lengths: lengths})
				})
				var shapesOf []shapes.Shape
				for _, x := range args {
					shapesOf = append(shapesOf, x.(*tensors.Tensor).Shape())
				}
				took := timed(func() {
					if _, err := exec.Compile(shapesOf...); err != nil {
						b.Fatal(err)
					}
				})
				return func() { exec.MustCall(args...) }, took
			})
		})
	}
}

// timed is how long a call takes.
func timed(call func()) time.Duration {
	begin := time.Now()
	call()
	return time.Since(begin)
}

func benchInference(b *testing.B, f inference) {
	forSizes(b, func(b *testing.B, compile func(f inference) (func(), time.Duration)) {
		call, compilation := compile(f)
		least := timed(call)
		for b.Loop() {
			least = min(least, timed(call))
		}
		b.ReportMetric(1e3*least.Seconds(), "ms-least")
		b.ReportMetric(compilation.Seconds(), "s-compile")
	})
}

func likelihoodOf(p Potentials) []*Node { return []*Node{LogLikelihood(p)} }
func gradientOf(p Potentials) []*Node {
	return Gradient(ReduceAllSum(LogLikelihood(p)), p.Root, p.Rules, p.Terms)
}
func viterbiOf(p Potentials) []*Node { return program.Nodes(p.Viterbi()) }
func sampleOf(p Potentials) []*Node {
	return program.Nodes(p.Sample(rng.In(Const(p.Root.Graph(), []uint64{1, 2, 3}))))
}
func mbrOf(p Potentials) []*Node { return program.Nodes(p.MBR()) }

func BenchmarkInside(b *testing.B)         { benchInference(b, likelihoodOf) }
func BenchmarkInsideGradient(b *testing.B) { benchInference(b, gradientOf) }
func BenchmarkViterbi(b *testing.B)        { benchInference(b, viterbiOf) }

// BenchmarkCompile compiles what a training and its evaluation need for sentences of one length, and runs none of it.
func BenchmarkCompile(b *testing.B) {
	for _, what := range []struct {
		name string
		inference
	}{{"inside", likelihoodOf}, {"gradient", gradientOf}, {"viterbi", viterbiOf}, {"mbr", mbrOf}, {"sample", sampleOf}} {
		b.Run(what.name, func(b *testing.B) {
			forSizes(b, func(b *testing.B, compile func(f inference) (func(), time.Duration)) {
				for b.Loop() {
					compile(what.inference)
				}
			})
		})
	}
}

// BenchmarkViterbiOverInside measures both in alternation.
func BenchmarkViterbiOverInside(b *testing.B) {
	forSizes(b, func(b *testing.B, compile func(f inference) (func(), time.Duration)) {
		inside, _ := compile(likelihoodOf)
		viterbi, _ := compile(viterbiOf)
		inside()
		viterbi()
		var times [2][]time.Duration
		for b.Loop() {
			times[0], times[1] = append(times[0], timed(inside)), append(times[1], timed(viterbi))
		}
		median := func(x []time.Duration) float64 { return 1e3 * slices.Sorted(slices.Values(x))[len(x)/2].Seconds() }
		b.ReportMetric(median(times[0]), "ms-inside")
		b.ReportMetric(median(times[1]), "ms-viterbi")
		b.ReportMetric(median(times[1])/median(times[0]), "ratio")
	})
}

func BenchmarkSample(b *testing.B) { benchInference(b, sampleOf) }
func BenchmarkMBR(b *testing.B)    { benchInference(b, mbrOf) }

// benchTrees measures the gradient of a score of a tree of each sentence to all potentials.
func benchTrees(b *testing.B, score func(p Potentials, z Trees) *Node) {
	benchInference(b, func(p Potentials) []*Node {
		r := rand.New(rand.NewPCG(1, 2))
		var trees []*Tree
		for range p.Terms.Shape().Dim(0) {
			trees = append(trees, RandomTree(r, *benchWords, 30))
		}
		return Gradient(ReduceAllSum(score(p, constTrees(p.Root.Graph(), trees, *benchWords))), p.Root, p.Rules, p.Terms)
	})
}

func BenchmarkLogTree(b *testing.B)  { benchTrees(b, Potentials.LogTree) }
func BenchmarkLogShape(b *testing.B) { benchTrees(b, Potentials.LogShape) }

// constTrees are trees over at most n words in a graph.
func constTrees(g *Graph, trees []*Tree, n int) Trees {
	packed, err := PackTrees(trees, n)
	if err != nil {
		panic(err)
	}
	return Trees{ConstTensor(g, packed.Left), ConstTensor(g, packed.Right), ConstTensor(g, packed.Label)}
}
