package main

import (
	"math"
	"math/rand/v2"
	"testing"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/backend"
	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/lvm"
	"github.com/gfnem/gfnem/nn"
	"github.com/gfnem/gfnem/rng"
)

// The bound, on the host and in a graph, is the expectation over all latents of log p(x,z) - log q(z).
func TestBound(t *testing.T) {
	b, err := backend.Open("")
	if err != nil {
		t.Fatal(err)
	}
	store := nn.NewStore(3)
	pairs, err := lvm.Draw(b, store.Scope(em.Theta), small, rng.Key(3, "bound"), 6)
	if err != nil {
		t.Fatal(err)
	}
	x := pairs.X[0]
	listed, err := em.Classical{Model: small, Env: small.env()}.Posteriors(b, store, x)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(3, 0))
	all := newTabler(b, store, small).of(x)
	flat := make([]float32, len(all)*small.causes)
	for i := range flat {
		flat[i] = r.Float32()
	}
	inGraph, err := model.CallOnce(b, store, func(_ *model.Scope, x, q *Node) *Node {
		return small.boundOf(store.Scope(em.Theta), x, q)
	}, x, tensors.FromFlatDataAndDimensions(flat, len(all), small.causes))
	if err != nil {
		t.Fatal(err)
	}
	graph := tensors.MustCopyFlatData[float32](inGraph)
	for i, o := range all {
		q := make([]float64, small.causes)
		for c := range q {
			q[c] = float64(flat[i*small.causes+c])
		}
		best, bestBound := o.fit()
		for _, try := range []struct {
			q     []float64
			bound float64
		}{{q, o.bound(q)}, {q, float64(graph[i])}, {best, bestBound}} {
			want := 0.0
			z := tensors.MustCopyFlatData[int32](listed[i].Z[0])
			for k, logJoint := range listed[i].LogJoint {
				logQ := 0.0
				for c, in := range z[k*small.causes : (k+1)*small.causes] {
					logQ += math.Log(math.Abs(float64(1-in) - try.q[c]))
				}
				want += math.Exp(logQ) * (logJoint - logQ)
			}
			if math.Abs(try.bound-want) > 1e-4*math.Abs(want) {
				t.Errorf("observation %d: the bound is %g, by enumeration %g", i, try.bound, want)
			}
			if try.bound > listed[i].LogP+1e-3 {
				t.Errorf("observation %d: the bound %g is above log p(x) = %g", i, try.bound, listed[i].LogP)
			}
		}
		if bestBound < o.bound(q) {
			t.Errorf("observation %d: the best bound %g is below that of a random q, %g", i, bestBound, o.bound(q))
		}
	}
}
