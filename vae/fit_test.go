package vae

import (
	"fmt"
	"math"
	"testing"

	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/run"
)

// The likelihood of a trained model, estimated as for the tables, is that of enumeration: a VQ-VAE's too, whose posterior is
// fitted for it and gives a lower figure than the published bound.
func TestLikelihoodOfSessions(t *testing.T) {
	for _, method := range []string{MethodVQ, MethodGFN, MethodPrior} {
		c := tinyConfig(method)
		c.Model.Codes, c.Epochs, c.Optim.DropOn = 2, 40, 30
		c.Eval.Samples, c.Eval.FitUpdates, c.Eval.ExtraEUpdates, c.Eval.Every = 400, 300, 0, 0
		s := tinySession(t, c)
		steps(t, s, int(s.total()))
		r, err := s.Evaluate()
		if err != nil {
			t.Fatal(err)
		}
		got := r.(*Result)
		exact, err := em.Classical{Model: s.codec.model, Env: s.size.Env()}.LogLikelihood(s.backend, s.store, batchOf(s.test, allOf(s.test.Len())))
		if err != nil {
			t.Fatal(err)
		}
		n := got.NLL
		t.Logf("%s: NLL %.3f, exact %.3f, ELBO %.3f, bound %.3f, effective samples %.1f, %.1f distinct",
			method, n.NLL, -exact, n.ELBO, got.Bound, n.ESS, n.Distinct)
		near(t, fmt.Sprintf("%s: NLL", method), n.NLL, -exact, 0.1+5*n.SampleErr)
		if n.ELBO > exact+1e-3 || n.Images != 20 || n.Samples != 400 || n.ESS < 2 {
			t.Errorf("%s: %+v", method, *n)
		}
		if method == MethodVQ && (!(n.NLL < got.Bound) || *got.Published != got.Bound || got.FitUpdates != 300) {
			t.Errorf("the bound of the VQ-VAE is %g, its NLL %g", got.Bound, n.NLL)
		}
		near(t, method+": reconstruction", got.Reconstruction, reconstruction(t, s), 1e-3)
		if method == MethodVQ {
			near(t, "the bound of the VQ-VAE", got.Bound, got.Reconstruction+4*math.Log(2), 1e-4)
			continue
		}
		if *got.Published != n.NLL {
			t.Errorf("%s: published %g, NLL %g", method, *got.Published, n.NLL)
		}
		near(t, method+": bound", got.Bound, -n.ELBO, 1) // one sample of each of 20 images: an error of about 0.15
	}
}

// A posterior that is behind its decoder, here by a whole training of M-updates, catches up by more E-updates; the published
// figure is that before them, and the training does not notice.
func TestRefresh(t *testing.T) {
	c := tinyConfig(MethodGFN)
	c.Model.Codes, c.Epochs, c.Optim.DropOn, c.Gate.Turn = 2, 20, 0, 1000
	c.Eval.Samples, c.Eval.ExtraEUpdates, c.Eval.Every = 400, 150, 0
	s := tinySession(t, c)
	steps(t, s, int(s.total()))
	sharpen(t, s.store, em.Theta, 1.3) // so that there is something to learn
	before := run.StateHash(stateOf(t, s))
	r, err := s.Evaluate()
	if err != nil {
		t.Fatal(err)
	}
	got := r.(*Result)
	t.Logf("ELBO %.3f, then %.3f; NLL %.3f, then %.3f", got.NLL.ELBO, got.Refreshed.ELBO, got.NLL.NLL, got.Refreshed.NLL)
	if !(got.Refreshed.ELBO > got.NLL.ELBO+0.2) || got.ExtraE != 150 || *got.Published != got.NLL.NLL {
		t.Errorf("%+v, then %+v; published %g", *got.NLL, *got.Refreshed, *got.Published)
	}
	near(t, "the likelihood", got.Refreshed.NLL, got.NLL.NLL, 5*(got.Refreshed.SampleErr+got.NLL.SampleErr))
	if run.StateHash(stateOf(t, s)) != before {
		t.Error("the training has changed")
	}
}

// reconstruction is -log p(x|z) of the most probable codes of the test images, by the means of their pixels.
func reconstruction(t *testing.T, s *session) (mean float64) {
	t.Helper()
	codes, err := s.codec.Encode(s.test, true, 0)
	if err != nil {
		t.Fatal(err)
	}
	means, err := s.codec.Decode(codes)
	if err != nil {
		t.Fatal(err)
	}
	for i, x := range s.test.Floats() {
		p := float64(means[i])
		if x == 0 {
			p = 1 - p
		}
		mean -= math.Log(p) / float64(s.test.Len())
	}
	return mean
}

func allOf(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}
