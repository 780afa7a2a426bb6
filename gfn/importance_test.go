package gfn_test

import (
	"math"
	"testing"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/internal/testkit"
	"github.com/gfnem/gfnem/rng"
)

// TestUnbiased sums the weights of all trajectories, each with its probability: that is Z, whatever the policies.
func TestUnbiased(t *testing.T) {
	for _, c := range append(smallEnvs[:1:1], smallEnvs[2:]...) {
		t.Run(c.name, func(t *testing.T) {
			seed := testkit.Seed(t)
			p := newProblem(t, c.env, seed)
			p.randomise(seed)
			now := p.current()
			paths := allPaths(p.dag)
			logW := floats(compile[*tensors.Tensor, any](t, p, func(x gfn.Batch, _ *rng.Stream, actions *Node) *Node {
				net := p.net()
				tr := replay(net, x, actions)
				return net.Path(tr, net.Score(tr, gfn.Behaviour{}), p.reward(x, tr.Last()), nil).LogWeights()
			})(len(paths), rng.Key(seed, "unused"), actionTable(p.dag, paths)))
			var z, elbo float64
			for i, w := range forwardWeights(paths, now) {
				z += w * math.Exp(logW[i])
				elbo += w * logW[i]
			}
			if d := math.Abs(math.Log(z) - p.logF[0]); !(d < 1e-12) {
				t.Errorf("log of the mean weight is off by %g", d)
			}
			if d := math.Abs(elbo - p.dag.ELBO(now, p.logR)); !(d < 1e-11) {
				t.Errorf("mean log-weight is off by %g", d)
			}
		})
	}
}

// What weights say does not depend on the parts in which they are added up, and is what the definitions say.
func TestWeights(t *testing.T) {
	r := rng.New(testkit.Seed(t), "weights")
	never := math.Inf(-1)
	for name, logW := range map[string][]float64{
		"one": {-3}, "equal": {5, 5, 5}, "spread": {-900, 0, 3, 700}, "zeros": {never, 1, never, never, 2, never},
		"small": {-2000, -2001, -1999}, "random": nil,
	} {
		if logW == nil {
			for range 1000 {
				logW = append(logW, 3*r.NormFloat64()-50)
			}
		}
		n, top := float64(len(logW)), never
		for _, l := range logW {
			top = max(top, l)
		}
		var sum, squares, mean float64
		for _, l := range logW {
			w := math.Exp(l - top)
			sum, squares, mean = sum+w, squares+w*w, mean+l/n
		}
		variance := (squares - sum*sum/n) / (n - 1) // of weights
		want := gfn.Estimate{LogZ: top + math.Log(sum/n), ESS: sum * sum / squares, ELBO: mean}
		if n > 1 {
			want.StdErr = math.Sqrt(max(variance, 0)/n) / (sum / n)
		}
		for _, size := range []int{1, 3, len(logW)} {
			var w gfn.Weights
			for at := 0; at < len(logW); at += size {
				w.Add(logW[at:min(at+size, len(logW))]...)
			}
			w.Add()
			got := w.Estimate()
			same := func(a, b float64) bool { return a == b || math.Abs(a-b) <= 1e-10*(1+math.Abs(b)) }
			if !same(got.LogZ, want.LogZ) || !same(got.ESS, want.ESS) || !same(got.ELBO, want.ELBO) || !(math.Abs(got.StdErr-want.StdErr) <= 1e-7) {
				t.Errorf("%s, %d at a time: %+v, want %+v", name, size, got, want)
			}
		}
	}
	if e := gfn.EstimateLogZ([]float64{never, never}); e.LogZ != never || e.ESS != 0 || !math.IsNaN(e.StdErr) {
		t.Errorf("weights that are all zero: %+v", e)
	}
	if e := gfn.EstimateLogZ([]float64{math.NaN(), 1}); !math.IsNaN(e.LogZ) || !math.IsNaN(e.ESS) {
		t.Errorf("a weight that is no number: %+v", e)
	}
}
