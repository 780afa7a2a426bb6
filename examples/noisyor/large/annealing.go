package main

import (
	"math"
	"math/rand/v2"
	"runtime"
	"sync"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/rng"
)

// # Annealed importance sampling
//
// A second estimate of log p(x), which knows nothing of GFlowNets (Neal, "Annealed Importance Sampling", 2001). A chain
// starts at the prior and makes Gibbs sweeps over the causes, under p(z) p(x|z)^beta, as beta goes from 0 to 1. The
// mean of the weights of chains is p(x) in expectation.

// annealed returns the log-weight of one chain.
func (o observation) annealed(r *rand.Rand, temperatures int) (logW float64) {
	causes := len(o.prior)
	pattern := make([]uint8, causes) // of the groups
	put := func(cause int, on bool) {
		for j := range reach {
			g, bit := (cause+j)%causes, uint8(1)<<j
			if pattern[g] &^= bit; on {
				pattern[g] |= bit
			}
		}
	}
	for cause, l := range o.prior {
		put(cause, r.Float64() < sigmoid(float64(l)))
	}
	for t := range temperatures {
		// Half of the path is spent where beta is small.
		beta := func(t int) float64 { return math.Pow(float64(t)/float64(temperatures), 2) }
		logP := 0.0
		for g, k := range pattern {
			logP += float64(o.group[g][k])
		}
		now := beta(t + 1)
		logW += (now - beta(t)) * logP
		for cause, prior := range o.prior {
			gain := float32(0)
			for j := range reach {
				g, bit := (cause+j)%causes, uint8(1)<<j
				gain += o.group[g][pattern[g]|bit] - o.group[g][pattern[g]&^bit]
			}
			put(cause, r.Float64() < sigmoid(float64(prior)+now*float64(gain)))
		}
	}
	return logW
}

// anneal estimates log p(x) of observations by so many chains.
func anneal(all []observation, seed uint64, chains, temperatures int) []gfn.Estimate {
	out := make([]gfn.Estimate, len(all))
	var wg sync.WaitGroup
	busy := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i, o := range all {
		wg.Go(func() {
			busy <- struct{}{}
			r := rng.New(seed, "annealing", uint64(i))
			logW := make([]float64, chains)
			for k := range logW {
				logW[k] = o.annealed(r, temperatures)
			}
			out[i] = gfn.EstimateLogZ(logW)
			<-busy
		})
	}
	wg.Wait()
	return out
}
