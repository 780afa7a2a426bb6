package grammar

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/gfnem/gfnem/internal/program"
	"github.com/gfnem/gfnem/internal/testkit"
	"github.com/gfnem/gfnem/rng"
)

// alpha is the false-alarm rate of one check; TestSample makes eight, so that it fails by chance once in 25,000 runs.
const alpha = 5e-6

// sampled is tables and sentences, and a key.
type sampled[G, T any] struct {
	Given given[G, T]
	Key   T
}

// Samples have the distribution of the enumerated posterior, with tags and without, for sentences as long as the batch
// and for padded ones. A sampler that flattens its choices is caught.
func TestSample(t *testing.T) {
	seed := testkit.Seed(t)
	const copies, calls, n = 1000, 20, 4
	lengths, words := make([]int32, 2*copies), make([]int32, 2*copies*n)
	short, long := []int32{1, 0, 2}, []int32{2, 0, 1, 1}
	for b := range copies {
		lengths[b], lengths[copies+b] = 3, 4
		copy(words[b*n:], short)
		copy(words[(copies+b)*n:], long)
	}
	flatter := func(x *Node) *Node { return PowScalar(x, 0.8) }
	for _, kind := range []Kind{CFG, NCFG} {
		g := randomGrammar(rand.New(rand.NewPCG(seed, 7)), kind, 2, 2, 3, 0)
		tables := g.LogProbs(dtypes.Float64)
		for name, twist := range map[string]func(*Node) *Node{"sampler": nil, "broken twin": flatter} {
			type input = sampled[LogProbTensors, *tensors.Tensor]
			set := program.NewSet(newBackend(), nil)
			sample := program.New[input, parseTensors](set, "sample", func(in sampled[LogProbs, *Node]) Parses {
				p := in.Given.Tables.For(in.Given.Words, in.Given.Lengths)
				random := rng.In(in.Key)
				if twist == nil {
					return p.Sample(random)
				}
				return p.decode(sumProduct, func(x *Node) *Node { return random.Categorical(twist(x)) }, 1)
			})
			full, shape := map[string]float64{}, map[string]float64{}
			for c := range calls {
				out := call(t, sample, input{given[LogProbTensors, *tensors.Tensor]{
					tables, tensors.FromFlatDataAndDimensions(words, 2*copies, n),
					tensors.FromFlatDataAndDimensions(lengths, 2*copies),
				}, rng.Key(seed, "sample", uint64(c))})
				for _, z := range UnpackTrees(out.Trees, out.Tags, lengths) {
					d := derive(g, z)
					full[d.full()]++
					shape[d.shape()]++
				}
			}
			for _, x := range [][]int32{short, long} {
				all := enumerate(g, x)
				total := logTotal(all)
				pFull, pShape := map[string]float64{}, map[string]float64{}
				for _, d := range all {
					pFull[d.full()] += math.Exp(d.logp - total)
					pShape[d.shape()] += math.Exp(d.logp - total)
				}
				with, without := chi2(full, pFull, copies*calls), chi2(shape, pShape, copies*calls)
				if twist == nil && (with < alpha || without < alpha) {
					t.Errorf("%s, %d words: p-value with tags %g, without %g", kind, len(x), with, without)
				}
				if twist != nil && with > alpha {
					t.Errorf("%s, %d words: the %s passes with p-value %g", kind, len(x), name, with)
				}
			}
		}
	}
}

// chi2 returns the probability of counts at least as far from what p expects of draws as these. Outcomes that are
// expected less than ten times are taken together.
func chi2(counts, p map[string]float64, draws float64) float64 {
	x, cells, seen := 0.0, 0, 0.0
	add := func(count, want float64) {
		if want > 0 {
			x += (count - want) * (count - want) / want
			cells++
		}
	}
	restCount, restWant := 0.0, 0.0
	for name, q := range p {
		seen += counts[name]
		if want := q * draws; want >= 10 {
			add(counts[name], want)
		} else {
			restCount, restWant = restCount+counts[name], restWant+want
		}
	}
	add(restCount, restWant)
	if seen != draws {
		return 0 // something impossible was drawn
	}
	return distuv.ChiSquared{K: float64(cells - 1)}.Survival(x)
}

// Two derivations of one sentence are drawn independently: pairs of shapes with labels have the product of the
// posterior with itself. Taking the first one twice is caught. There are four checks, so that it fails by chance once
// in 50,000 runs.
func TestSamplesOfOneSentence(t *testing.T) {
	seed := testkit.Seed(t)
	const copies, n = 4000, 3
	lengths, words := make([]int32, 2*copies), make([]int32, 2*copies*n)
	short, long := []int32{1, 0}, []int32{2, 0, 1}
	for b := range copies {
		lengths[b], lengths[copies+b] = 2, 3
		copy(words[b*n:], short)
		copy(words[(copies+b)*n:], long)
	}
	for _, kind := range []Kind{CFG, NCFG} {
		g := randomGrammar(rand.New(rand.NewPCG(seed, 7)), kind, 2, 2, 3, 0)
		set := program.NewSet(newBackend(), nil)
		type input = sampled[LogProbTensors, *tensors.Tensor]
		sample := program.New[input, parseTensors](set, "samples", func(in sampled[LogProbs, *Node]) Parses {
			return in.Given.Tables.For(in.Given.Words, in.Given.Lengths).Samples(rng.In(in.Key), 2)
		})
		out := call(t, sample, input{given[LogProbTensors, *tensors.Tensor]{
			g.LogProbs(dtypes.Float64), tensors.FromFlatDataAndDimensions(words, 2*copies, n),
			tensors.FromFlatDataAndDimensions(lengths, 2*copies),
		}, rng.Key(seed, "samples")})
		trees := UnpackTrees(out.Trees, out.Tags, append(lengths, lengths...))
		for s, x := range [][]int32{short, long} {
			all := enumerate(g, x)
			total := logTotal(all)
			one, pairs := map[string]float64{}, map[string]float64{}
			for _, d := range all {
				one[d.shape()] += math.Exp(d.logp - total)
			}
			for a, p := range one {
				for b, q := range one {
					pairs[a+" "+b] = p * q
				}
			}
			drawn, twice := map[string]float64{}, map[string]float64{}
			for i := s * copies; i < (s+1)*copies; i++ {
				a, b := trees[i].Shape(), trees[2*copies+i].Shape()
				drawn[a+" "+b]++
				twice[a+" "+a]++
			}
			if p := chi2(drawn, pairs, copies); p < alpha {
				t.Errorf("%s, %d words: p-value %g", kind, len(x), p)
			}
			if p := chi2(twice, pairs, copies); p > alpha {
				t.Errorf("%s, %d words: one draw taken twice passes with p-value %g", kind, len(x), p)
			}
		}
	}
}

// Walks down a shared chart find what walks down charts of their own do, whoever a table of rules belongs to.
func TestWalksShareAChart(t *testing.T) {
	r := rand.New(rand.NewPCG(testkit.Seed(t), 0))
	const nt, pt, n, b, each = 2, 3, 5, 3, 2
	const s = nt + pt
	lengths := tensors.FromValue([]int32{5, 2, 4})
	type found[T any] struct{ Shared, Repeated, Once, Score, ScoreOnce T }
	p := ofPotentials[found[[]*tensors.Tensor]](func(p Potentials) found[[]*Node] {
		best := func(x *Node) *Node { return ArgMax(x, -1, dtypes.Int32) }
		shared, once := p.decode(maxPlus, best, each), p.Viterbi()
		again := p.Repeat(each)
		score := []*Node{again.LogTree(shared.Trees), again.LogShape(shared.Trees)}
		return found[[]*Node]{
			program.Nodes(shared), program.Nodes(again.Viterbi()), program.Nodes(once), score,
			[]*Node{p.LogTree(once.Trees), p.LogShape(once.Trees)},
		}
	})
	draw := func(dims ...int) *tensors.Tensor {
		x := make([]float64, shapes.Make(dtypes.Float64, dims...).Size())
		for i := range x {
			x[i] = r.NormFloat64()
		}
		return tensors.FromFlatDataAndDimensions(x, dims...)
	}
	for _, in := range []potentialTensors{
		{Root: draw(nt), Rules: draw(nt, s, s), Terms: draw(b, n, pt)},
		{Root: draw(b, nt), Rules: draw(b, nt, s, s), Terms: draw(b, n, pt)},
		{Root: draw(nt), Rules: draw(nt, nt+1, s, s), Terms: draw(b, n, pt, nt)},
	} {
		in.Lengths = lengths
		out := call(t, p, in)
		for i, once := range append(out.Once, out.ScoreOnce...) {
			want := append(floats(once), floats(once)...)
			same(t, "walks of one chart", floats(append(out.Shared, out.Score...)[i]), want)
			if i < len(out.Once) {
				same(t, "repeated potentials", floats(out.Repeated[i]), want)
			}
		}
	}
}
