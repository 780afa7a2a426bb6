package gfn_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/gfn/envs"
	"github.com/gfnem/gfnem/internal/program"
	"github.com/gfnem/gfnem/internal/testkit"
	"github.com/gfnem/gfnem/rng"
)

// exploring are behaviours by their parameters; negative ones are left out.
var exploring = []struct{ beta, epsilon float64 }{{-1, -1}, {0.5, -1}, {2, -1}, {-1, 0.3}, {0.4, 0.2}, {1, 0}, {-1, 1}}

func behaviour(g *Graph, beta, epsilon float64) gfn.Behaviour {
	var b gfn.Behaviour
	if beta >= 0 {
		b.Beta = Scalar(g, dtypes.Float64, beta)
	}
	if epsilon >= 0 {
		b.Epsilon = Scalar(g, dtypes.Float64, epsilon)
	}
	return b
}

// probabilities is what a behaviour should do, on the host.
func probabilities(logits []float64, legal []bool, beta, epsilon float64) []float64 {
	if beta < 0 {
		beta = 1
	}
	epsilon = max(epsilon, 0)
	p := make([]float64, len(logits))
	sum, count := 0.0, 0.0
	for i, l := range logits {
		if legal[i] {
			p[i] = math.Exp(beta * l)
			sum += p[i]
			count++
		}
	}
	for i := range p {
		if legal[i] {
			p[i] = (1-epsilon)*p[i]/sum + epsilon/count
		}
	}
	return p
}

var (
	testLogits = [][]float64{{0.3, -1, 2, 0, 1}, {5, 5, -3, 700, 1}, {-2, 0.1, 0.2, -0.3, 0}, {1, 2, 3, 4, 5}}
	testLegal  = [][]bool{
		{true, true, true, true, true}, {true, true, true, false, false},
		{false, false, false, true, false}, {false, true, false, true, false},
	}
)

// choices are logits of actions, and which of them are legal.
type choices[L, B any] struct {
	Logits L
	Legal  B
}

// chances are the probabilities of actions.
type chances[T any] struct{ LogP, P T }

func TestLogProbs(t *testing.T) {
	for _, dtype := range []dtypes.DType{dtypes.Float32, dtypes.Float64} {
		for _, c := range exploring {
			out, err := program.Once[choices[[][]float64, [][]bool], chances[*tensors.Tensor]](backend(), nil, "chances",
				func(in choices[*Node, *Node]) chances[*Node] {
					logits := ConvertDType(in.Logits, dtype)
					logP := behaviour(logits.Graph(), c.beta, c.epsilon).LogProbs(logits, in.Legal)
					return chances[*Node]{ConvertDType(logP, dtypes.Float64), ConvertDType(Exp(logP), dtypes.Float64)}
				}, choices[[][]float64, [][]bool]{testLogits, testLegal})
			if err != nil {
				t.Fatal(err)
			}
			logP, p := out.LogP.Value().([][]float64), out.P.Value().([][]float64)
			tolerance := map[dtypes.DType]float64{dtypes.Float32: 1e-5, dtypes.Float64: 1e-12}[dtype]
			for i := range testLogits {
				for a, want := range probabilities(testLogits[i], testLegal[i], c.beta, c.epsilon) {
					if want == 0 && p[i][a] != 0 {
						t.Errorf("%v %s: illegal action %d of row %d has probability %g", c, dtype, a, i, p[i][a])
					}
					if want > 0 && !(math.Abs(logP[i][a]-math.Log(want)) < tolerance*(1+math.Abs(math.Log(want)))) {
						t.Errorf("%v %s: log-probability of action %d of row %d is %g, want %g", c, dtype, a, i, logP[i][a], math.Log(want))
					}
				}
			}
		}
	}
}

// TestFrequencies counts sampled actions, on a sequence whose second position allows fewer of them: each state's must
// follow LogProbs, and illegal ones never come.
func TestFrequencies(t *testing.T) {
	seed := testkit.Seed(t)
	const rows = 100_000
	p := newProblem(t, envs.Sequence{Sizes: []int{5, 3}}, seed)
	p.randomise(seed)
	logits := p.get("policy/forward")
	for i, c := range exploring {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			actions := floats(compile[*tensors.Tensor, none](t, p, func(x gfn.Batch, r *rng.Stream, _ none) *Node {
				return record(p.net().Rollout(r, x, nil, behaviour(x[0].Graph(), c.beta, c.epsilon))).Action
			})(rows, rng.Key(seed, "frequencies", uint64(i)), none{}))
			// By both actions: the distribution over pairs is that of the first times that of the second.
			counts, illegal := make([]int, 15), 0
			for r := range rows {
				a, b := int(actions[2*r]), int(actions[2*r+1])
				if a > 4 || b > 2 {
					illegal++
					continue
				}
				counts[3*a+b]++
			}
			if illegal > 0 {
				t.Errorf("%d illegal actions", illegal)
			}
			joint := func(beta, epsilon float64) []float64 {
				want := make([]float64, 15)
				all, three := []bool{true, true, true, true, true}, []bool{true, true, true, false, false}
				first := probabilities(logits[:5], all, beta, epsilon)
				for _, e := range p.dag.Edges[:5] {
					second := probabilities(logits[5*e.To:5*e.To+5], three, beta, epsilon)
					for b := range 3 {
						want[3*e.Action+b] = first[e.Action] * second[b]
					}
				}
				return want
			}
			if q := chi2(counts, joint(c.beta, c.epsilon)); q < alpha {
				t.Errorf("p-value %g", q)
			}
			// The check can fail: a flatter behaviour does not fit, nor, where all is uniform, a steeper one.
			other := joint(0.8*math.Abs(c.beta), max(c.epsilon, 0)+0.1)
			if c.epsilon == 1 {
				other = joint(1, 0.8)
			}
			if q := chi2(counts, other); q > alpha {
				t.Errorf("another behaviour fits as well: p-value %g", q)
			}
		})
	}
}

// TestIndependentExploration checks that every action explores on its own. The policy is all but certain to take action 0,
// so any other action is exploration; the number of them in a batch must vary like independent coins, and those of
// the first and the second step must come together as often as chance has it. One coin for a whole batch, or for a
// whole trajectory, is caught.
func TestIndependentExploration(t *testing.T) {
	seed := testkit.Seed(t)
	const rows, batches, epsilon, size = 50, 400, 0.3, 5
	p := newProblem(t, envs.Uniform(2, size), seed)
	logits := p.get("policy/forward")
	for i := range logits {
		logits[i] = 0
		if i%size == 0 {
			logits[i] = 60
		}
	}
	p.set("policy/forward", logits)
	type sampler func(r *rng.Stream, x gfn.Batch) *Node // actions [B,2]
	roll := func(r *rng.Stream, x gfn.Batch, epsilon float64) *Node {
		return Stack(p.net().Rollout(r, x, nil, behaviour(x[0].Graph(), -1, epsilon)).Action, 1)
	}
	// mixed explores, in all steps, where a coin says so.
	mixed := func(r *rng.Stream, x gfn.Batch, coins ...int) *Node {
		explore, exploit := roll(r, x, 1), roll(r, x, 0)
		coin := LessThan(r.Uniform(dtypes.Float64, coins...), Scalar(x[0].Graph(), dtypes.Float64, epsilon))
		return Where(BroadcastToShape(coin, explore.Shape()), explore, exploit)
	}
	for _, c := range []struct {
		name             string
		sample           sampler
		byBatch, byTrack bool // whether the two checks should pass
	}{
		{"each action", func(r *rng.Stream, x gfn.Batch) *Node { return roll(r, x, epsilon) }, true, true},
		{"whole batch", func(r *rng.Stream, x gfn.Batch) *Node { return mixed(r, x, 1, 1) }, false, false},
		{"whole trajectory", func(r *rng.Stream, x gfn.Batch) *Node { return mixed(r, x, rows, 1) }, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			run := p.program(t, func(x gfn.Batch, r *rng.Stream) []*Node { return []*Node{c.sample(r, x)} })
			q := epsilon * (size - 1) / size // the probability to see exploration
			var x2 float64
			both := make([]int, 4)
			for b := range batches {
				actions := run(rows, rng.Key(seed, c.name, uint64(b)))[0]
				first := 0
				for r := range rows {
					one, two := actions[2*r] != 0, actions[2*r+1] != 0
					k := 0
					if one {
						first++
						k += 2
					}
					if two {
						k++
					}
					both[k]++
				}
				d := float64(first) - rows*q
				x2 += d * d / (rows * q * (1 - q))
			}
			// The sum of squares of batches is chi-square (nearly: 50 rows a batch, 400 batches).
			low := distuv.ChiSquared{K: batches}.CDF(x2)
			if ok := min(low, 1-low) > alpha; ok != c.byBatch {
				t.Errorf("variance of the number per batch: %g of what is expected", x2/batches)
			}
			if c.byBatch {
				v := chi2(both, []float64{(1 - q) * (1 - q), (1 - q) * q, q * (1 - q), q * q})
				if ok := v > alpha; ok != c.byTrack {
					t.Errorf("steps that explore together: %v, p-value %g", both, v)
				}
			}
		})
	}
}

// greedy is greedy trajectories with their log P_F, and that of others, greedy and not.
type greedy[T any] struct {
	By                  taken[T]
	Own, Others, Policy T
}

// TestGreedy checks that a greedy behaviour takes the best legal action, and knows that it does.
func TestGreedy(t *testing.T) {
	seed := testkit.Seed(t)
	p := newProblem(t, envs.Hypergrid{Side: 4, Dims: 2}, seed)
	p.randomise(seed)
	best := map[int]int{} // by state, the edge of highest probability
	now := p.current()
	for i, e := range p.dag.Edges {
		if j, ok := best[e.From]; !ok || now.LogPF[i] > now.LogPF[j] {
			best[e.From] = i
		}
	}
	run := compile[greedy[*tensors.Tensor], none](t, p, func(x gfn.Batch, r *rng.Stream, _ none) greedy[*Node] {
		how := gfn.Behaviour{Greedy: true, Epsilon: Scalar(x[0].Graph(), dtypes.Float64, 0.5)}
		net := p.net()
		tr := net.Rollout(r, x, nil, how)
		other := net.Rollout(r, x, nil, uniform(x[0].Graph()))
		return greedy[*Node]{
			record(tr), net.Score(tr, how).LogPF, net.Score(other, how).LogPF, net.Score(other, gfn.Behaviour{}).LogPF,
		}
	})
	out := numbers[greedy[[]float64]](run(32, rng.Key(seed, "greedy"), none{}))
	for _, path := range follow(p.dag, out.By) {
		for _, e := range path {
			if best[p.dag.Edges[e].From] != e {
				t.Errorf("edge %d is not the best", e)
			}
		}
	}
	if size(out.Own) != 0 {
		t.Error("greedy actions do not have probability 1")
	}
	never := 0
	for i, l := range out.Others {
		if l != 0 && math.Exp(l) != 0 {
			t.Errorf("an action has the greedy log-probability %g", l)
		}
		if l != 0 && out.Policy[i] != 0 {
			never++
		}
	}
	if never == 0 {
		t.Error("all actions are greedy")
	}
}

// scoredPaths is trajectories and their scores.
type scoredPaths[T any] struct {
	By           taken[T]
	LogPF, LogPB T
}

// untempered is trajectories in both directions, and what the behaviour itself gives those that go up.
type untempered[T any] struct {
	Up, Down scoredPaths[T]
	Tempered T
}

// TestScoresAreUntempered checks that what a loss sees does not depend on how trajectories were drawn: log-probabilities
// are those of the policy's table, edge by edge; and that Score with the behaviour that drew them gives that one's.
func TestScoresAreUntempered(t *testing.T) {
	seed := testkit.Seed(t)
	p := newProblem(t, envs.Hypergrid{Side: 3, Dims: 2}, seed)
	p.randomise(seed)
	now := p.current()
	steps := p.env.Steps()
	const rows = 64
	for _, c := range exploring {
		run := compile[untempered[*tensors.Tensor], none](t, p, func(x gfn.Batch, r *rng.Stream, _ none) untempered[*Node] {
			how := behaviour(x[0].Graph(), c.beta, c.epsilon)
			net := p.net()
			up := net.Rollout(r, x, nil, how)
			down := net.Backtrack(r, x, up.Last(), nil, how)
			a, b, tempered := net.Score(up, gfn.Behaviour{}), net.Score(down, gfn.Behaviour{}), net.Score(up, how)
			return untempered[*Node]{
				scoredPaths[*Node]{record(up), a.LogPF, a.LogPB}, scoredPaths[*Node]{record(down), b.LogPF, b.LogPB},
				tempered.LogPF,
			}
		})
		out := numbers[untempered[[]float64]](run(rows, rng.Key(seed, "untempered"), none{}))
		for i, o := range []scoredPaths[[]float64]{out.Up, out.Down} {
			for r, path := range follow(p.dag, o.By) {
				pf, pb := make([]float64, steps), make([]float64, steps)
				shift := 0 // where the path begins
				if i == 1 {
					shift = steps - len(path)
				}
				for t, e := range path {
					pf[shift+t], pb[shift+t] = now.LogPF[e], now.LogPB[e]
				}
				if d := farthest(o.LogPF[r*steps:(r+1)*steps], pf); !(d < 1e-12) {
					t.Errorf("%v, direction %d: log P_F is off by %g", c, i, d)
				}
				if d := farthest(o.LogPB[r*steps:(r+1)*steps], pb); !(d < 1e-12) {
					t.Errorf("%v, direction %d: log P_B is off by %g", c, i, d)
				}
			}
		}
		changes := c.beta >= 0 && c.beta != 1 || c.epsilon > 0
		if same := farthest(out.Tempered, out.Up.LogPF) < 1e-12; same == changes {
			t.Errorf("%v: the behaviour's own log-probabilities equal the policy's: %t", c, same)
		}
	}
}
