package induce

import (
	"math"
	"testing"

	"github.com/gfnem/gfnem/grammar"
)

// The first losses of trainings are those of the day when they were frozen: a change of these is a change of what a
// seed means. Programs for other processors add up in another order, in single precision.
func TestFrozenLosses(t *testing.T) {
	for _, c := range []struct {
		init string
		kind grammar.Kind
		want [3]float64 // nats per sentence
	}{
		{grammar.Published, grammar.CFG, [3]float64{7.9922064, 7.3340194, 15.3488415}},
		{grammar.Published, grammar.NCFG, [3]float64{11.7044333, 9.2201575, 15.3295815}},
		{grammar.Xavier, grammar.CFG, [3]float64{7.3187140, 6.7660345, 10.0908204}},
		{grammar.Xavier, grammar.NCFG, [3]float64{7.1487582, 6.6871898, 10.5198694}},
	} {
		config := tinyConfig(Marginal)
		config.Model.Init, config.Model.Grammar = c.init, string(c.kind)
		s := tinySession(t, config)
		for i, want := range c.want {
			b := s.sampler.at(uint64(i))
			logX, err := s.Exact.LogLikelihoods(b.Sentences)
			if err != nil {
				t.Fatal(err)
			}
			got := 0.0
			for _, v := range logX {
				got -= v / float64(len(logX))
			}
			if !(math.Abs(got-want) <= 1e-5*want) {
				t.Errorf("%s %s: update %d has loss %.7f, want %.7f", c.init, c.kind, i, got, want)
			}
			steps(t, s, 1)
		}
	}
}
