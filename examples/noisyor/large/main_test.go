package main

import (
	"math"
	"testing"
	"time"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/backend"
	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/gfn/envtest"
	"github.com/gfnem/gfnem/lvm"
	"github.com/gfnem/gfnem/lvm/lvmtest"
	"github.com/gfnem/gfnem/nn"
	"github.com/gfnem/gfnem/rng"
)

// small is a ring whose latents can be enumerated.
var small = network{causes: 10, most: 10}

// smallExperiment is one on it, with causes that are more often present.
func smallExperiment(t *testing.T) (e experiment, truth *model.Store) {
	t.Helper()
	b, err := backend.Open("")
	if err != nil {
		t.Fatal(err)
	}
	e = experiment{network: small, b: b, seed: 1, updates: 40, began: time.Now()}
	truth = nn.NewStore(e.seed)
	draw := func(name string, n int) *tensors.Tensor {
		p, err := lvm.Draw(b, truth.Scope(em.Theta), small, rng.Key(e.seed, name), n)
		if err != nil {
			t.Fatal(err)
		}
		return p.X[0]
	}
	draw("nothing", 1) // makes the variables
	prior := make([]float32, small.causes)
	for c := range prior {
		prior[c] = 2.5 // of which 4 is taken
	}
	v := truth.Scope(em.Theta).GetVariable("prior")
	if err := v.SetValue(tensors.FromFlatDataAndDimensions(prior, 1, small.causes)); err != nil {
		t.Fatal(err)
	}
	e.train, e.validation, e.test = draw("train", 400), draw("validation", 50), draw("test", 50)
	return e, truth
}

// exactly is log p(x) of the test observations, by enumeration.
func (e experiment) exactly(t *testing.T, store *model.Store) (logP []float64) {
	t.Helper()
	listed, err := em.Classical{Model: e.network, Env: e.env()}.Posteriors(e.b, store, e.test)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range listed {
		logP = append(logP, l.LogP)
	}
	return logP
}

func mean(x []float64) (m float64) {
	for _, v := range x {
		m += v / float64(len(x))
	}
	return m
}

func TestLaws(t *testing.T) {
	envtest.Run(t, small.env())
	lvmtest.Run(t, small, small.env())
}

// The gain of a cause is a difference of log p(x,z).
func TestGains(t *testing.T) {
	e, truth := smallExperiment(t)
	n := e.test.Shape().Dim(0)
	r := rng.New(1, "sets")
	in := make([]int32, n*small.causes)
	for i := range in {
		in[i] = int32(r.IntN(4) / 3)
	}
	theta := truth.Scope(em.Theta)
	call := func(f func(_ *model.Scope, x, in *Node) *Node, args ...any) []float32 {
		return tensors.MustCopyFlatData[float32](must(model.CallOnce(e.b, truth, f, args...)))
	}
	logJoint := func(in []int32) []float32 {
		return call(func(_ *model.Scope, x, in *Node) *Node {
			return small.LogJoint(theta, gfn.Batch{x}, small.env().Of(in))
		}, e.test, tensors.FromFlatDataAndDimensions(in, n, small.causes))
	}
	gains := call(func(_ *model.Scope, x, in *Node) *Node {
		return small.gains(theta, small.effects(gfn.Batch{x}), present(small.env().Of(in)))
	}, e.test, tensors.FromFlatDataAndDimensions(in, n, small.causes))
	before := logJoint(in)
	for c := range small.causes {
		with := append([]int32(nil), in...)
		for i := range n {
			with[i*small.causes+c] = 1
		}
		for i, after := range logJoint(with) {
			if in[i*small.causes+c] == 1 {
				continue
			}
			got, want := gains[i*small.causes+c], after-before[i]
			if math.Abs(float64(got-want)) > 1e-4*float64(1+math.Abs(float64(before[i]))) {
				t.Errorf("observation %d gains %g by cause %d, not %g", i, want, c, got)
			}
		}
	}
}

// A short training by either method raises the likelihood of test data. The same seed gives the same bits.
func TestTraining(t *testing.T) {
	e, truth := smallExperiment(t)
	l, err := e.learner(e.b, e.start(), e.data(), 0.03, 1, em.Blocks{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	start := mean(e.exactly(t, l.Store()))
	best := mean(e.exactly(t, truth))
	end := func(learn func(rate float64) (*model.Store, float64)) float64 {
		store, _ := learn(0.03)
		return mean(e.exactly(t, store))
	}
	byGFlowNet, again, byMeanField := end(e.byGFlowNet), end(e.byGFlowNet), end(e.byMeanField)
	t.Logf("start %.3f, truth %.3f, GFlowNet-EM %.3f, mean-field EM %.3f", start, best, byGFlowNet, byMeanField)
	for name, got := range map[string]float64{"GFlowNet-EM": byGFlowNet, "mean-field EM": byMeanField} {
		if !(got > start+0.3*(best-start)) {
			t.Errorf("%s: from %g to %g; the truth has %g", name, start, got, best)
		}
	}
	if byGFlowNet != again {
		t.Errorf("the same training ends at %g and at %g", byGFlowNet, again)
	}
}

// Everything together keeps the laws of a learner.
func TestLearner(t *testing.T) {
	e, _ := smallExperiment(t)
	l, err := e.learner(e.b, e.start(), e.data(), 0.03, 10, em.Blocks{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	found, err := l.Check(e.data()(0)...)
	if err != nil {
		t.Fatal(err)
	}
	if !found.OK() {
		t.Error(found.Broken)
	}
}
