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

// potentialTensors are Potentials on the host.
type potentialTensors struct{ Root, Rules, Terms, Spans, Lengths *tensors.Tensor }

// ofPotentials makes a program of a function of potentials alone.
func ofPotentials[Out, NodesOut any](f func(Potentials) NodesOut) *program.Program[potentialTensors, Out] {
	return program.New[potentialTensors, Out](program.NewSet(newBackend(), nil), "potentials", f)
}

// inferred is likelihoods, of sentences, of best derivations and of a shape, and the gradients of the first and the
// last.
type inferred[T any] struct {
	LogX, Viterbi, Shape T
	Gradient, OfShape    []T
}

// all is what a comparison goes through.
func (x inferred[T]) all() []T {
	return slices.Concat([]T{x.LogX, x.Viterbi, x.Shape}, x.Gradient, x.OfShape)
}

// Sentences of forty words with about -10 per word: far below what float32 can hold as a probability. Likelihoods agree
// with float64 to the precision of float32, and so do expected counts; a chart without shifts would give -Inf.
func TestLongSentencesInFloat32(t *testing.T) {
	seed := testkit.Seed(t)
	const n, b, vocabulary = 40, 2, 50
	for _, kind := range []Kind{CFG, NCFG} {
		r := rand.New(rand.NewPCG(seed, 3))
		g := randomGrammar(r, kind, 3, 4, vocabulary, 0)
		tables := g.LogProbs(dtypes.Float64)
		tables32 := g.LogProbs(dtypes.Float32)
		hosts := g.hosts()
		terms := make([]float64, b*n*4*hosts)
		terms32 := make([]float32, len(terms))
		for i := range terms {
			terms32[i] = float32(-10 + r.NormFloat64())
			terms[i] = float64(terms32[i])
		}
		dims := []int{b, n, 4}
		if kind == NCFG {
			dims = append(dims, hosts)
		}
		trees := []*Tree{RandomTree(r, n, 3), RandomTree(r, n-5, 3)}
		infer := ofPotentials[inferred[*tensors.Tensor]](func(p Potentials) inferred[*Node] {
			slope := func(x *Node) []*Node { return Gradient(ReduceAllSum(x), p.Root, p.Rules, p.Terms) }
			like := LogLikelihood(p)
			shape := p.LogShape(constTrees(p.Root.Graph(), trees, n))
			return inferred[*Node]{like, p.Viterbi().LogWeight, shape, slope(like), slope(shape)}
		})
		lengths := tensors.FromFlatDataAndDimensions([]int32{n, n - 5}, b)
		wide := call(t, infer, potentialTensors{
			Root: tables.Root, Rules: tables.Rules, Terms: tensors.FromFlatDataAndDimensions(terms, dims...), Lengths: lengths,
		})
		narrow := call(t, infer, potentialTensors{
			Root: tables32.Root, Rules: tables32.Rules,
			Terms: tensors.FromFlatDataAndDimensions(terms32, dims...), Lengths: lengths,
		})
		if logX := floats(wide.LogX)[0]; logX > -300 {
			t.Errorf("log p(x) = %v is no test of underflow", logX)
		}
		for i, x := range wide.all() {
			wide, narrow := floats(x), floats(narrow.all()[i])
			for j := range wide {
				// A likelihood is a sum of about 80 terms rounded at 2^-24 of 400; counts (up to 80 in all) inherit the
				// same relative error.
				if d := math.Abs(wide[j] - narrow[j]); !(d <= 1e-4*max(1, math.Abs(wide[j]))) {
					t.Fatalf("%s: output %d[%d] is %v in float32, %v in float64", kind, i, j, narrow[j], wide[j])
				}
			}
		}
	}
}

// whole is all that is inferred, and scores of the best derivations.
type whole[T any] struct{ LogX, Best, Label, Tree, Derivation, Shape, Root, Rules, Terms T }

// A table for each sentence gives what sentences with these tables give alone, and each its own gradient; and a batch
// is the same in any order and with more padding.
func TestOwnTables(t *testing.T) {
	r := rand.New(rand.NewPCG(testkit.Seed(t), 0))
	const nt, pt, vocabulary = 2, 3, 3
	lengths := []int32{4, 2, 5, 3}
	b := len(lengths)
	infer := ofPotentials[whole[*tensors.Tensor]](func(p Potentials) whole[*Node] {
		like := LogLikelihood(p)
		best := p.Viterbi()
		shape := p.LogShape(best.Trees)
		out := []*Node{like, best.LogWeight, best.Trees.Label, p.LogTree(best.Trees), p.LogDerivation(best.Trees, best.Tags), shape}
		return program.Of[whole[*Node]](append(out, Gradient(ReduceAllSum(Sub(like, MulScalar(shape, 0.3))), p.Root, p.Rules, p.Terms)...))
	})
	draw := func(n int) []float64 {
		x := make([]float64, n)
		for i := range x {
			x[i] = r.NormFloat64()
		}
		return x
	}
	const n, s = 6, nt + pt
	root, rules, terms := draw(b*nt), draw(b*nt*s*s), draw(b*n*pt)
	together := call(t, infer, potentialTensors{
		Root:    tensors.FromFlatDataAndDimensions(root, b, nt),
		Rules:   tensors.FromFlatDataAndDimensions(rules, b, nt, s, s),
		Terms:   tensors.FromFlatDataAndDimensions(terms, b, n, pt),
		Lengths: tensors.FromFlatDataAndDimensions(lengths, b),
	})
	for i := range b {
		k := int(lengths[i])
		alone := call(t, infer, potentialTensors{
			Root:    tensors.FromFlatDataAndDimensions(root[i*nt:][:nt], nt),
			Rules:   tensors.FromFlatDataAndDimensions(rules[i*nt*s*s:][:nt*s*s], nt, s, s),
			Terms:   tensors.FromFlatDataAndDimensions(terms[i*n*pt:][:k*pt], 1, k, pt),
			Lengths: tensors.FromFlatDataAndDimensions(lengths[i:i+1], 1),
		})
		same(t, "log p(x)", floats(together.LogX)[i:i+1], floats(alone.LogX))
		same(t, "the best score", floats(together.Best)[i:i+1], floats(alone.Best))
		same(t, "the score of the best tree", floats(together.Tree)[i:i+1], floats(alone.Tree))
		same(t, "the score of the best derivation", floats(alone.Derivation), floats(alone.Best))
		same(t, "the score of the best shape", floats(together.Shape)[i:i+1], floats(alone.Shape))
		same(t, "labels", floats(together.Label)[i*(n-1):][:k-1], floats(alone.Label))
		same(t, "gradient to root", floats(together.Root)[i*nt:][:nt], floats(alone.Root))
		same(t, "gradient to rules", floats(together.Rules)[i*nt*s*s:][:nt*s*s], floats(alone.Rules))
		byTerms := floats(together.Terms)
		same(t, "gradient to terms", byTerms[i*n*pt:][:k*pt], floats(alone.Terms))
		same(t, "gradient to padding", byTerms[(i*n+k)*pt:][:(n-k)*pt], make([]float64, (n-k)*pt))
	}
}

// Grammars that are sharper and sharper, as training makes them: float32 follows float64, and its gradient stays finite
// even where it no longer can.
func TestSharpGrammarsInFloat32(t *testing.T) {
	r := rand.New(rand.NewPCG(testkit.Seed(t), 0))
	const n, b, vocabulary = 12, 3, 5
	trees := []*Tree{RandomTree(r, n, 4), RandomTree(r, n, 4), RandomTree(r, 7, 4)}
	infer := newProgram[[]*tensors.Tensor](func(p Potentials) []*Node {
		like, shape := LogLikelihood(p), p.LogShape(constTrees(p.Root.Graph(), trees, n))
		slope := func(x *Node) []*Node { return Gradient(ReduceAllSum(x), p.Root, p.Rules, p.Terms) }
		return slices.Concat([]*Node{like}, slope(like), slope(shape))
	})
	for _, sharp := range []float64{3, 6, 20} {
		for range 10 {
			g := randomGrammar(r, CFG, 4, 4, vocabulary, 0)
			for _, table := range [][]float64{g.Root, g.Rules, g.Emit} {
				for i := range table {
					table[i] = math.Exp(sharp * r.NormFloat64())
				}
			}
			normalise(g.Root, len(g.Root))
			normalise(g.Rules, g.symbols()*g.symbols())
			normalise(g.Emit, vocabulary)
			_, words, lens := sentences(r, n, vocabulary, []int32{n, n, 7})
			wide := infer.run(t, g, words, lens)
			narrow := call(t, infer.Program, given[LogProbTensors, *tensors.Tensor]{g.LogProbs(dtypes.Float32), words, lens})
			for i := range wide {
				wide := floats(wide[i])
				for j, v := range floats(narrow[i]) {
					if math.IsNaN(v) || math.IsInf(v, 1) || i > 0 && math.IsInf(v, 0) {
						t.Fatalf("sharpness %v: output %d[%d] is %v", sharp, i, j, v)
					}
					// Logarithms of rules, up to 100, are rounded at 2^-24 of that, in each of about 30 factors.
					if sharp <= 6 && !(math.Abs(v-wide[j]) <= 1e-3*max(1, math.Abs(wide[j]))) {
						t.Fatalf("sharpness %v: output %d[%d] is %v, want %v", sharp, i, j, v, wide[j])
					}
				}
			}
		}
	}
}

// A batch in another order gives the same in that order.
func TestOrderOfBatch(t *testing.T) {
	r := rand.New(rand.NewPCG(testkit.Seed(t), 0))
	for _, kind := range []Kind{CFG, NCFG} {
		g := randomGrammar(r, kind, 3, 2, 3, 0)
		p := newProgram[[]*tensors.Tensor](func(p Potentials) []*Node {
			m := p.Marginals()
			return []*Node{m.LogLikelihood, m.Spans, m.Tags, p.Viterbi().LogWeight}
		})
		const n, b = 5, 4
		lengths := []int32{5, 2, 4, 3}
		flat, words, lens := sentences(r, n, 3, lengths)
		order := r.Perm(b)
		var moved, movedLengths []int32
		for _, i := range order {
			moved, movedLengths = append(moved, flat[i*n:][:n]...), append(movedLengths, lengths[i])
		}
		one := p.run(t, g, words, lens)
		two := p.run(t, g, tensors.FromFlatDataAndDimensions(moved, b, n), tensors.FromFlatDataAndDimensions(movedLengths, b))
		for o := range one {
			one, two := floats(one[o]), floats(two[o])
			size := len(one) / b
			for to, from := range order {
				same(t, "outputs", two[to*size:][:size], one[from*size:][:size])
			}
		}
	}
}
