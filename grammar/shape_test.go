package grammar

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/internal/program"
	"github.com/gfnem/gfnem/internal/testkit"
)

// shapesOver are all binary trees over n words, with label 0.
func shapesOver(n int) (out []*Tree) {
	var over func(first, last int) [][][2]int
	over = func(first, last int) (all [][][2]int) { // spans of two words or more, bottom-up
		if first == last {
			return [][][2]int{nil}
		}
		for mid := first; mid < last; mid++ {
			for _, l := range over(first, mid) {
				for _, r := range over(mid+1, last) {
					all = append(all, append(slices.Concat(l, r), [2]int{first, last}))
				}
			}
		}
		return all
	}
	for _, spans := range over(0, n-1) {
		z := &Tree{Label: make([]int, n-1)}
		roots := make([]int, n) // of each word
		for i := range roots {
			roots[i] = i
		}
		for m, s := range spans {
			z.Left, z.Right = append(z.Left, roots[s[0]]), append(z.Right, roots[s[1]])
			for i := s[0]; i <= s[1]; i++ {
				roots[i] = n + m
			}
		}
		out = append(out, z)
	}
	return out
}

// unlabelled writes the shape of a derivation.
func (d *derivation) unlabelled() string {
	bare := *d
	bare.symbol = 0
	if d.left == nil {
		return bare.shape()
	}
	return "0(" + d.left.unlabelled() + " " + d.right.unlabelled() + ")"
}

// shapeInput is sentences with trees, bottom-up and in the order of gaps, and the weights of a sum of scores.
type shapeInput[G, Z, T any] struct {
	Given          given[G, T]
	Bottom, ByGaps Z
	Weights        T
}

type shapeTensors = shapeInput[LogProbTensors, TreeTensors, *tensors.Tensor]

type shapeScores[T any] struct{ Bottom, ByGaps score[T] }

func shapeProgram() *program.Program[shapeTensors, shapeScores[*tensors.Tensor]] {
	set := program.NewSet(newBackend(), nil)
	build := func(in shapeInput[LogProbs, Trees, *Node]) shapeScores[*Node] {
		p := in.Given.Tables.For(in.Given.Words, in.Given.Lengths)
		of := func(z Trees) score[*Node] {
			x := p.LogShape(z)
			return program.Of[score[*Node]](append([]*Node{x}, Gradient(ReduceAllSum(Mul(x, in.Weights)), p.Root, p.Rules, p.Terms)...))
		}
		return shapeScores[*Node]{of(in.Bottom), of(in.ByGaps)}
	}
	return program.New[shapeTensors, shapeScores[*tensors.Tensor]](set, "shapes", build)
}

func shapeArgs(t testing.TB, g *Grammar, words, lengths *tensors.Tensor, trees []*Tree, n int, weights []float64) (in shapeTensors) {
	t.Helper()
	in.Given = given[LogProbTensors, *tensors.Tensor]{g.LogProbs(dtypes.Float64), words, lengths}
	in.Weights = tensors.FromFlatDataAndDimensions(weights, len(weights))
	var err error
	if in.Bottom, err = PackTrees(trees, n); err == nil {
		in.ByGaps, err = PackByGaps(trees, n)
	}
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// The probability of a shape is the sum over all its labels and tags, and gradients are expected counts given the
// shape, each sentence times its weight; whatever the labels of the tree and the order of its merges.
func TestShapesAgainstEnumeration(t *testing.T) {
	r := rand.New(rand.NewPCG(testkit.Seed(t), 0))
	weights := []float64{1, -2, 0.5, 3}
	for _, s := range sizes {
		p := shapeProgram()
		for i := range 40 {
			g := randomGrammar(r, s.kind, s.nt, s.pt, 3, []float64{0, 0.3}[i%2])
			flat, words, lens := sentences(r, s.n, 3, s.lengths)
			var trees []*Tree
			var want []float64
			count := newTally(g, s.n, len(s.lengths))
			for b, l := range s.lengths {
				z := randomTree(r, int(l), s.nt, s.pt)
				trees = append(trees, z)
				shape := (&Tree{Left: z.Left, Right: z.Right, Label: make([]int, l-1)}).Shape()
				same := slices.DeleteFunc(enumerate(g, flat[b*s.n:][:l]), func(d *derivation) bool { return d.unlabelled() != shape })
				want = append(want, logTotal(same))
				if len(same) > 0 {
					count.add(g, b, same, weights[b])
				}
			}
			out := call(t, p, shapeArgs(t, g, words, lens, trees, s.n, weights[:len(trees)]))
			for order, x := range map[string]score[*tensors.Tensor]{"bottom-up": out.Bottom, "by gaps": out.ByGaps} {
				same(t, "log p(x,s) "+order, floats(x.LogP), want)
				same(t, "root "+order, floats(x.Root), count.root)
				same(t, "rules "+order, floats(x.Rules), count.rules)
				same(t, "terms "+order, floats(x.Terms), count.terms)
			}
			if t.Failed() {
				t.Fatalf("%s with %d nonterminals, %d preterminals, %d words, grammar %d", s.kind, s.nt, s.pt, s.n, i)
			}
		}
	}
}

// Over all shapes, of which there are as many as Catalan numbers say, probabilities add up to that of the sentence.
func TestShapesAddUp(t *testing.T) {
	r := rand.New(rand.NewPCG(testkit.Seed(t), 0))
	const room = 7
	for _, kind := range []Kind{CFG, NCFG} {
		var trees []*Tree
		var lengths []int32
		var flat []int32
		sentence := []int32{0, 2, 1, 1, 0, 2, 3}
		for n, catalan := range map[int]int{2: 1, 3: 2, 4: 5, 5: 14, 6: 42, 7: 132} {
			shapes := shapesOver(n)
			if len(shapes) != catalan {
				t.Fatalf("%d shapes over %d words, want %d", len(shapes), n, catalan)
			}
			for _, z := range shapes {
				trees, lengths, flat = append(trees, z), append(lengths, int32(n)), append(flat, sentence...)
			}
		}
		words := tensors.FromFlatDataAndDimensions(flat, len(trees), room)
		lens := tensors.FromFlatDataAndDimensions(lengths, len(trees))
		g := randomGrammar(r, kind, 3, 4, 4, 0)
		in := shapeArgs(t, g, words, lens, trees, room, make([]float64, len(trees)))
		byLength := map[int32][]float64{}
		for i, v := range floats(call(t, shapeProgram(), in).Bottom.LogP) {
			byLength[lengths[i]] = append(byLength[lengths[i]], v)
		}
		logX := floats(newProgram[*tensors.Tensor](LogLikelihood).run(t, g, words, lens))
		for i, l := range lengths {
			if got := logSumExp(byLength[l]); !near(got, logX[i]) {
				t.Fatalf("%s: shapes over %d words add up to %.15g, want %.15g", kind, l, got, logX[i])
			}
		}
	}
}

// The gradient is the slope along a random direction of all tables.
func TestShapeGradient(t *testing.T) {
	r := rand.New(rand.NewPCG(testkit.Seed(t), 0))
	const n = 7
	for _, kind := range []Kind{CFG, NCFG} {
		g := randomGrammar(r, kind, 3, 4, 5, 0)
		lengths := []int32{7, 4, 6, 2}
		_, words, lens := sentences(r, n, 5, lengths)
		var trees []*Tree
		for _, l := range lengths {
			trees = append(trees, RandomTree(r, int(l), 3))
		}
		weights := []float64{1, -2, 0.5, 3}
		in := shapeArgs(t, g, words, lens, trees, n, weights)
		type slope[T any] struct{ Value, Root, Rules, Emit T }
		set := program.NewSet(newBackend(), nil)
		p := program.New[shapeTensors, slope[*tensors.Tensor]](set, "slope", func(in shapeInput[LogProbs, Trees, *Node]) slope[*Node] {
			q := in.Given.Tables
			x := ReduceAllSum(Mul(q.For(in.Given.Words, in.Given.Lengths).LogShape(in.ByGaps), in.Weights))
			return program.Of[slope[*Node]](append([]*Node{x}, Gradient(x, q.Root, q.Rules, q.Emit)...))
		})
		out := call(t, p, in)
		tables := in.Given.Tables
		want := 0.0
		var along [][]float64
		for _, grad := range []*tensors.Tensor{out.Root, out.Rules, out.Emit} {
			var d []float64
			for _, v := range floats(grad) {
				d = append(d, r.NormFloat64())
				want += v * d[len(d)-1]
			}
			along = append(along, d)
		}
		const eps = 1e-5 // its square is 1e-10, of which central differences are off, and rounding 1e-15/eps
		at := func(h float64) float64 {
			moved := func(x *tensors.Tensor, d []float64) *tensors.Tensor {
				values := floats(x)
				for i := range values {
					values[i] += h * d[i]
				}
				return tensors.FromFlatDataAndDimensions(values, x.Shape().Dimensions...)
			}
			in.Given.Tables = LogProbTensors{moved(tables.Root, along[0]), moved(tables.Rules, along[1]), moved(tables.Emit, along[2])}
			return floats(call(t, p, in).Value)[0]
		}
		if got := (at(eps) - at(-eps)) / (2 * eps); !(math.Abs(got-want) <= 1e-7*max(1, math.Abs(want))) || want == 0 {
			t.Errorf("%s: slope %v, gradient says %v", kind, got, want)
		}
	}
}

// A non-context-free grammar whose tables are the same for all parents scores shapes as the context-free one.
func TestShapesWithoutParents(t *testing.T) {
	r := rand.New(rand.NewPCG(testkit.Seed(t), 0))
	const n = 6
	g := randomGrammar(r, CFG, 3, 2, 4, 0.2)
	same0 := New(NCFG, g.Nonterminals, g.Preterminals, g.Words)
	copy(same0.Root, g.Root)
	for x := range 3 {
		for p := range 4 {
			copy(same0.RuleRow(x, p), g.RuleRow(x, 0))
		}
		for tag := range 2 {
			copy(same0.EmitRow(tag, x), g.EmitRow(tag, 0))
		}
	}
	lengths := []int32{6, 5, 3, 6, 2}
	_, words, lens := sentences(r, n, 4, lengths)
	var trees []*Tree
	for _, l := range lengths {
		trees = append(trees, RandomTree(r, int(l), 3))
	}
	score := func(g *Grammar) []float64 {
		return floats(call(t, shapeProgram(), shapeArgs(t, g, words, lens, trees, n, make([]float64, len(trees)))).Bottom.LogP)
	}
	same(t, "log p(x,s)", score(same0), score(g))
}
