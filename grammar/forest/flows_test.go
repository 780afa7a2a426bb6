package forest

import (
	"fmt"
	"math"
	"testing"

	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/internal/program"
	"github.com/gfnem/gfnem/internal/testkit"
	"github.com/gfnem/gfnem/rng"
)

// TestReferenceFlows checks the flows and the policy that the tiny grammar and a uniform P_B determine.
func TestReferenceFlows(t *testing.T) {
	t.Parallel()
	three, four := list(t, 2, 0, 1, 2), list(t, 2, 2, 0, 1, 1)
	for _, c := range []struct {
		kind  grammar.Kind
		of    *listing
		logX  float64
		first []float64 // P_F at bare words, by gap and label
	}{
		{grammar.CFG, three, -5.3716430540, []float64{0.12736322, 0.39209925, 0.12096913, 0.35956840}},
		{grammar.CFG, four, -7.1661027767, []float64{0.17104943, 0.14351752, 0.08513602, 0.30856022, 0.08820865, 0.20352817}},
		{grammar.NCFG, three, -5.7657606164, nil},
		{grammar.NCFG, four, -7.2471364412, nil},
	} {
		logF, logPF := c.of.Solve(c.of.rewards(tinyGrammar(c.kind)), c.of.UniformBack())
		what := fmt.Sprintf("%s, %v: ", c.kind, c.of.words)
		checkNumber(t, what+"flow of bare words", logF[0], c.logX, 0.51e-10)
		for action, want := range c.first {
			checkNumber(t, fmt.Sprintf("%sP_F of action %d", what, action), math.Exp(logPF[c.of.edge[[2]int{0, action}]]), want, eight)
		}
	}
	cfg := tinyGrammar(grammar.CFG)
	logF, _ := four.Solve(four.rewards(cfg), four.UniformBack())
	_, states := four.edges([]closing{{1, 1}})
	checkNumber(t, "flow after (1,B)", logF[states[1]], -8.34194103, eight)
	checkNumber(t, "partial reward after (1,B)", partialReward(cfg, four.words, four.forest[states[1]]), -3.27545772, eight)
}

// optimum is a tabular policy on a listing, set to what a grammar and a backward policy determine.
type optimum struct {
	*listing
	g           *grammar.Grammar
	logF, logPF []float64
	logPB       []float64
	store       *model.Store
}

func newOptimum(t testing.TB, l *listing, kind grammar.Kind, logPB []float64) *optimum {
	t.Helper()
	o := &optimum{listing: l, g: tinyGrammar(kind), logPB: logPB, store: model.NewStore()}
	o.logF, o.logPF = l.Solve(l.rewards(o.g), logPB)
	n, na, nb := l.Len(), l.Env.Actions(), l.Env.BackActions()
	forward, backward, flow := make([]float64, n*na), make([]float64, n*nb), make([]float64, n)
	for i, e := range l.Edges {
		forward[e.From*na+e.Action], backward[e.To*nb+e.Back] = o.logPF[i], logPB[i]
	}
	for s := range flow {
		flow[s] = o.logF[s] - partialReward(o.g, l.words, l.forest[s])
	}
	o.set(t, "forward", forward, n, na)
	o.set(t, "backward", backward, n, nb)
	o.set(t, "flow", flow, n)
	return o
}

func (o *optimum) set(t testing.TB, name string, x []float64, dims ...int) {
	t.Helper()
	if _, err := o.store.CreateVariable("table/"+name, tensors.FromFlatDataAndDimensions(x, dims...)); err != nil {
		t.Fatal(err)
	}
}

// scored evaluates the policy on histories.
func (o *optimum) scored(h History) Scored {
	env := o.Env.(Env)
	net := gfn.Net{Env: env, Policy: gfn.Tabular{DAG: o.DAG, DType: dtypes.Float64, LearnBackward: true}, Scope: o.store.Scope("/table")}
	s := net.Score(replay(env, Sentences{h.Leaves, h.Length}.Batch(), h), gfn.Behaviour{})
	return Scored{Scores: s, History: h, Valid: h.steps(env.Steps()).valid}
}

// results are what objectives make of a policy on all paths.
type results struct {
	losses   map[string]float64 // the greatest
	balance  float64            // the greatest balance of all pairs of paths that meet in the middle
	logRatio float64            // the farthest from 0 that the logarithm of an acceptance ratio is
	sleep    float64            // the greatest element of the expected gradient of sleep
}

// scoredPaths are what objectives evaluate: paths from bare words, with weights, and pairs of paths from anywhere that
// meet in the middle.
type scoredPaths[H, T any] struct {
	Whole, All        H
	One, Two, Weights T
}

// evaluation is what they say.
type evaluation[T any] struct {
	Losses                      []T // by name
	Balance, LogRatio, Gradient T
}

// evaluate evaluates objectives; partial rewards are those of a kind of grammar.
func (o *optimum) evaluate(t testing.TB, r *rig, kind grammar.Kind) results {
	t.Helper()
	whole := o.paths()
	var all []hostPath // with every number of steps done before
	var middle []int   // the state that each begins at
	for _, p := range whole {
		_, states := o.edges(p.steps)
		for done := range p.steps {
			all = append(all, hostPath{p.words, p.steps, done})
			middle = append(middle, states[done])
		}
	}
	var one, two []int32
	for i, a := range middle {
		for j, b := range middle {
			if a == b {
				one, two = append(one, int32(i)), append(two, int32(j))
			}
		}
	}
	// The weight of a path in sleep: its tree's posterior times the probability of taking it apart along the path.
	weights := make([]float64, len(whole))
	for i, p := range whole {
		edges, states := o.edges(p.steps)
		weights[i] = o.logF[states[len(states)-1]] - o.logF[0]
		for _, e := range edges {
			weights[i] += o.logPB[e]
		}
		weights[i] = math.Exp(weights[i])
	}
	names := []string{"SubTB", "SubTB with lambda 0.5", "TB", "DB"}
	n := len(o.words)
	out, err := program.Once[scoredPaths[historyTensors, *tensors.Tensor], evaluation[*tensors.Tensor]](
		r.b, o.store, "evaluate", func(in scoredPaths[History, *Node]) evaluation[*Node] {
			s := o.scored(in.Whole)
			q := potentials(o.g, s.History)
			p := s.Rewarded(kind, q.ScoreTrees(s.Trees).Nodes, q.LogTree(s.Trees))
			var out evaluation[*Node]
			for _, loss := range []gfn.Objective{gfn.SubTB{}, gfn.SubTB{Lambda: 0.5}, gfn.TB{}, gfn.DB{}} {
				out.Losses = append(out.Losses, loss.Loss(p))
			}
			part := o.scored(in.All)
			logR := potentials(o.g, part.History).LogTree(part.Trees)
			take := func(x, at *Node) *Node { return Gather(x, InsertAxes(at, -1)) }
			half := func(at *Node) gfn.Path {
				return gfn.Path{LogPF: take(part.LogPF, at), LogPB: take(part.LogPB, at), LogR: take(logR, at)}
			}
			down, up := half(in.One), half(in.Two)
			sum := func(x *Node) *Node { return ReduceSum(x, 1) }
			there, here := Add(sum(down.LogPB), sum(up.LogPF)), Add(sum(up.LogPB), sum(down.LogPF))
			out.LogRatio = Add(Sub(up.LogR, down.LogR), Sub(here, there))
			dream := ReduceAllSum(Mul(in.Weights, gfn.Likelihood{}.Loss(gfn.Path{LogPF: s.LogPF})))
			out.Gradient = Gradient(dream, o.store.GetVariable("/table/forward").NodeValue(dream.Graph()))[0]
			out.Balance = gfn.PairBalance(down, up)
			return out
		}, scoredPaths[historyTensors, *tensors.Tensor]{
			Whole: pack(n, whole), All: pack(n, all),
			One: tensors.FromValue(one), Two: tensors.FromValue(two), Weights: tensors.FromValue(weights),
		})
	if err != nil {
		t.Fatal(err)
	}
	most := func(x *tensors.Tensor) (m float64) {
		for _, v := range float64s(t, x) {
			m = math.Max(m, math.Abs(v))
		}
		return m
	}
	res := results{
		losses: map[string]float64{}, balance: most(out.Balance), logRatio: most(out.LogRatio), sleep: most(out.Gradient),
	}
	for i, name := range names {
		res.losses[name] = most(out.Losses[i])
	}
	return res
}

// TestOptimum: flows that a grammar and a backward policy determine make all losses of all paths zero, and every move
// be accepted; and there the gradient of sleep vanishes in expectation.
func TestOptimum(t *testing.T) {
	t.Parallel()
	seed := testkit.Seed(t)
	for _, words := range [][]int32{{0, 1, 2}, {2, 0, 1, 1}} {
		l := list(t, 2, words...)
		for _, kind := range []grammar.Kind{grammar.CFG, grammar.NCFG} {
			for _, back := range []string{"uniform", "arbitrary"} {
				logPB := l.UniformBack()
				if back == "arbitrary" {
					logPB = l.randomBack(seed)
				}
				o := newOptimum(t, l, kind, logPB)
				r := tinyRig(t, seed, words)
				what := fmt.Sprintf("%v, %s, %s P_B", words, kind, back)
				o.checkZero(t, what, o.evaluate(t, r, kind))
				if back == "uniform" {
					o.checkTwins(t, what, r, kind)
				}
			}
		}
	}
}

// randomBack draws a backward policy.
func (l *listing) randomBack(seed uint64) []float64 {
	r := rng.New(seed, "back")
	logPB, total := make([]float64, len(l.Edges)), make([]float64, l.Len())
	for i, e := range l.Edges {
		logPB[i] = 2 * r.NormFloat64()
		total[e.To] += math.Exp(logPB[i])
	}
	for i, e := range l.Edges {
		logPB[i] -= math.Log(total[e.To])
	}
	return logPB
}

func (o *optimum) checkZero(t *testing.T, what string, got results) {
	t.Helper()
	for name, loss := range got.losses {
		checkNumber(t, what+": root of "+name, math.Sqrt(loss), 0, 1e-10)
	}
	checkNumber(t, what+": root of the balance of moves", math.Sqrt(got.balance), 0, 1e-10)
	checkNumber(t, what+": logarithm of an acceptance ratio", got.logRatio, 0, 1e-10)
	checkNumber(t, what+": expected gradient of sleep", got.sleep, 0, 1e-10)
}

// checkTwins sees that what is not the optimum is told from it: partial rewards of the other kind of grammar, and a
// forward policy and flows that are a little off.
func (o *optimum) checkTwins(t *testing.T, what string, r *rig, kind grammar.Kind) {
	t.Helper()
	other := grammar.NCFG
	if kind == other {
		other = grammar.CFG
	}
	got := o.evaluate(t, r, other)
	for _, name := range []string{"SubTB", "SubTB with lambda 0.5", "DB"} {
		if got.losses[name] < 0.1 {
			t.Errorf("%s: with partial rewards of the other kind %s is %g", what, name, got.losses[name])
		}
	}
	checkNumber(t, what+": TB, which sees no partial rewards", math.Sqrt(got.losses["TB"]), 0, 1e-10)

	v := o.store.GetVariable("/table/forward")
	x := float64s(t, v.MustValue())
	x[0] += 0.1
	if err := v.SetValue(tensors.FromFlatDataAndDimensions(x, v.Shape().Dimensions...)); err != nil {
		t.Fatal(err)
	}
	got = o.evaluate(t, r, kind)
	for name, loss := range got.losses {
		if loss < 1e-5 {
			t.Errorf("%s: with another policy %s is %g", what, name, loss)
		}
	}
	if got.balance < 1e-5 || got.logRatio < 1e-3 || got.sleep < 1e-3 {
		t.Errorf("%s: with another policy balance %g, acceptance %g, sleep %g", what, got.balance, got.logRatio, got.sleep)
	}
}
