package gfn_test

import (
	"math"
	"testing"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/gfn/envs"
	"github.com/gfnem/gfnem/internal/testkit"
	"github.com/gfnem/gfnem/rng"
)

// TestLearn trains a table by trajectory balance on the usual grid, on-policy but for some exploration, until its objects
// come in proportion to the reward.
func TestLearn(t *testing.T) {
	seed := testkit.Seed(t)
	env := envs.Hypergrid{Side: 8, Dims: 2}
	d := enumerate(t, env)
	policy := gfn.Tabular{DAG: d}
	p := &problem{env: env, dag: d, store: model.NewStore()}
	names := []string{"/policy/forward", "/policy/logz"}
	step := p.program(t, func(x gfn.Batch, r *rng.Stream) []*Node {
		g := x[0].Graph()
		net := gfn.Net{Env: env, Policy: policy, Scope: p.store.Scope("policy")}
		tr := net.Rollout(r, x, nil, behaviour(g, -1, 0.05))
		path := net.Path(tr, net.ScoreSampled(tr, gfn.Behaviour{}), env.LogReward(x, tr.Last()), nil)
		loss := ReduceAllMean(gfn.TB{}.Loss(path))
		var vars []*Node
		for _, name := range names {
			vars = append(vars, p.store.GetVariable(name).NodeValue(g))
		}
		return append(Gradient(loss, vars...), loss)
	})
	target := rewards(t, d, env)
	distance := func() float64 {
		tables, err := d.Tabulate(backend(), p.store, "policy", policy, []*tensors.Tensor{blank(1)})
		if err != nil {
			t.Fatal(err)
		}
		return gfn.TotalVariation(d.Terminating(tables[0]), gfn.Normalise(target))
	}
	before := distance()
	const steps, rows = 300, 64
	adams := []*adam{{rate: 0.1}, {rate: 0.1}}
	for i := range steps {
		out := step(rows, rng.Key(seed, "learn", uint64(i)))
		for k, name := range names {
			v := p.store.GetVariable(name)
			value := adams[k].step(tensors.MustCopyFlatData[float32](v.MustValue()), out[k], 1-float64(i)/steps)
			if err := v.SetValue(tensors.FromFlatDataAndDimensions(value, v.Shape().Dimensions...)); err != nil {
				t.Fatal(err)
			}
		}
	}
	tv := distance()
	logZ := tensors.ToScalar[float32](p.store.GetVariable("/policy/logz").MustValue())
	t.Logf("total variation %.3g, before %.3g, log Z %.3f, exact %.3f", tv, before, logZ, gfn.LogSumExp(target))
	if !(tv < 0.05 && before > 0.5) {
		t.Errorf("total variation %g, before %g", tv, before)
	}
	if d := math.Abs(float64(logZ) - gfn.LogSumExp(target)); !(d < 0.05) {
		t.Errorf("log Z is off by %g", d)
	}
}

// rewards returns the log-rewards of all objects.
func rewards(t *testing.T, d *gfn.DAG, env envs.Hypergrid) []float64 {
	t.Helper()
	out, err := CallOnce(backend(), func(in []*Node) *Node { return env.LogReward(nil, in) }, d.States()[0], d.States()[1])
	if err != nil {
		t.Fatal(err)
	}
	all := tensors.MustCopyFlatData[float64](out)
	logR := make([]float64, len(d.Objects))
	for i, s := range d.Objects {
		logR[i] = all[s]
	}
	return logR
}

// adam is the optimiser of Kingma and Ba (2015), by hand.
type adam struct {
	rate float64
	m, v []float64
	t    int
}

func (a *adam) step(x []float32, g []float64, scale float64) []float32 {
	if a.m == nil {
		a.m, a.v = make([]float64, len(x)), make([]float64, len(x))
	}
	a.t++
	for i := range x {
		a.m[i] = 0.9*a.m[i] + 0.1*g[i]
		a.v[i] = 0.999*a.v[i] + 0.001*g[i]*g[i]
		m := a.m[i] / (1 - math.Pow(0.9, float64(a.t)))
		v := a.v[i] / (1 - math.Pow(0.999, float64(a.t)))
		x[i] -= float32(a.rate * scale * m / (math.Sqrt(v) + 1e-8))
	}
	return x
}
