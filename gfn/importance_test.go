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
