package grammar

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/internal/testkit"
)

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
		exec := compiled{MustNewExec(newBackend(), func(in []*Node) []*Node {
			p := Potentials{Root: in[0], Rules: in[1], Terms: in[2], Lengths: in[3]}
			like := LogLikelihood(p)
			return append([]*Node{like, p.Viterbi().LogWeight}, Gradient(ReduceAllSum(like), p.Root, p.Rules, p.Terms)...)
		})}
		lengths := tensors.FromFlatDataAndDimensions([]int32{n, n - 5}, b)
		wide := exec.call(t, tables.Root, tables.Rules, tensors.FromFlatDataAndDimensions(terms, dims...), lengths)
		narrow := exec.call(t, tables32.Root, tables32.Rules, tensors.FromFlatDataAndDimensions(terms32, dims...), lengths)
		if wide[0][0] > -300 {
			t.Errorf("log p(x) = %v is no test of underflow", wide[0][0])
		}
		for i := range wide {
			for j := range wide[i] {
				// A likelihood is a sum of about 80 terms rounded at 2^-24 of 400; counts (up to 80 in all) inherit the same
				// relative error.
				if d := math.Abs(wide[i][j] - narrow[i][j]); !(d <= 1e-4*max(1, math.Abs(wide[i][j]))) {
					t.Fatalf("%s: output %d[%d] is %v in float32, %v in float64", kind, i, j, narrow[i][j], wide[i][j])
				}
			}
		}
	}
}

// A table for each sentence gives what sentences with these tables give alone, and each its own gradient; and a batch is
// the same in any order and with more padding.
func TestOwnTables(t *testing.T) {
	r := rand.New(rand.NewPCG(testkit.Seed(t), 0))
	const nt, pt, vocabulary = 2, 3, 3
	lengths := []int32{4, 2, 5, 3}
	b := len(lengths)
	build := func(p Potentials) []*Node {
		like := LogLikelihood(p)
		best := p.Viterbi()
		out := []*Node{like, best.LogWeight, best.Trees.Label, p.LogTree(best.Trees), p.LogDerivation(best.Trees, best.Tags)}
		return append(out, Gradient(ReduceAllSum(like), p.Root, p.Rules, p.Terms)...)
	}
	potentials := func(in []*Node) []*Node {
		return build(Potentials{Root: in[0], Rules: in[1], Terms: in[2], Lengths: in[3]})
	}
	exec := compiled{MustNewExec(newBackend(), potentials)}
	draw := func(n int) []float64 {
		x := make([]float64, n)
		for i := range x {
			x[i] = r.NormFloat64()
		}
		return x
	}
	const n, s = 6, nt + pt
	root, rules, terms := draw(b*nt), draw(b*nt*s*s), draw(b*n*pt)
	together := exec.call(t, tensors.FromFlatDataAndDimensions(root, b, nt), tensors.FromFlatDataAndDimensions(rules, b, nt, s, s),
		tensors.FromFlatDataAndDimensions(terms, b, n, pt), tensors.FromFlatDataAndDimensions(lengths, b))
	for i := range b {
		k := int(lengths[i])
		alone := exec.call(t, tensors.FromFlatDataAndDimensions(root[i*nt:][:nt], nt),
			tensors.FromFlatDataAndDimensions(rules[i*nt*s*s:][:nt*s*s], nt, s, s),
			tensors.FromFlatDataAndDimensions(terms[i*n*pt:][:k*pt], 1, k, pt), tensors.FromFlatDataAndDimensions(lengths[i:i+1], 1))
		for _, o := range []int{0, 1, 3} {
			same(t, "scores", together[o][i:i+1], alone[o])
		}
		same(t, "the score of the best derivation", alone[4], alone[1])
		same(t, "labels", together[2][i*(n-1):][:k-1], alone[2])
		same(t, "gradient to root", together[5][i*nt:][:nt], alone[5])
		same(t, "gradient to rules", together[6][i*nt*s*s:][:nt*s*s], alone[6])
		same(t, "gradient to terms", together[7][i*n*pt:][:k*pt], alone[7])
		same(t, "gradient to padding", together[7][(i*n+k)*pt:][:(n-k)*pt], make([]float64, (n-k)*pt))
	}
}

// Grammars that are sharper and sharper, as training makes them: float32 follows float64, and its gradient stays finite even
// where it no longer can.
func TestSharpGrammarsInFloat32(t *testing.T) {
	r := rand.New(rand.NewPCG(testkit.Seed(t), 0))
	const n, b, vocabulary = 12, 3, 5
	exec := newProgram(t, func(p Potentials) []*Node {
		like := LogLikelihood(p)
		return append([]*Node{like}, Gradient(ReduceAllSum(like), p.Root, p.Rules, p.Terms)...)
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
			wide := exec.run(t, g, words, lens)
			tables := g.LogProbs(dtypes.Float32)
			narrow := exec.call(t, tables.Root, tables.Rules, tables.Emit, words, lens)
			for i := range wide {
				for j, v := range narrow[i] {
					if math.IsNaN(v) || math.IsInf(v, 1) || i > 0 && math.IsInf(v, 0) {
						t.Fatalf("sharpness %v: output %d[%d] is %v", sharp, i, j, v)
					}
					// Logarithms of rules, up to 100, are rounded at 2^-24 of that, in each of about 30 factors.
					if sharp <= 6 && !(math.Abs(v-wide[i][j]) <= 1e-3*max(1, math.Abs(wide[i][j]))) {
						t.Fatalf("sharpness %v: output %d[%d] is %v, want %v", sharp, i, j, v, wide[i][j])
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
		p := newProgram(t, func(p Potentials) []*Node {
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
			size := len(one[o]) / b
			for to, from := range order {
				same(t, "outputs", two[o][to*size:][:size], one[o][from*size:][:size])
			}
		}
	}
}
