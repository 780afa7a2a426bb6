// Segment finds words in sentences without spaces, by GFlowNet-EM, and compares itself with exact EM. See README.md.
package main

import (
	"flag"
	"fmt"

	. "github.com/gomlx/gomlx/core/graph"

	"github.com/gfnem/gfnem/backend"
	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/optim"
)

const batch = 100 // sentences of an update

// spec is GFlowNet-EM.
func (e experiment) spec() em.Spec {
	first := e.updates * 2 / 5 // E-steps, before the first M-step
	return em.Spec{
		Model: e.m, Env: e.m.Env(), Policy: policy{e.m}, Data: e.data(), Seed: e.seed,
		Wake: em.Wake{Objective: gfn.VarGrad{}, Samples: 8, Optimizer: optim.Optimizer{Groups: []optim.Group{
			{Scope: em.Phi, Rate: falling(0.005, first+e.updates/2, first+e.updates)},
		}}},
		Sleep: em.Sleep{Weight: 1, Batch: batch / 2},
		Gate:  em.Blocks{First: int(first)},
		MStep: em.MStep{Latents: em.Weighted{}, Optimizer: e.counting()},
	}
}

// counting makes M-steps, those of exact EM, too.
func (e experiment) counting() optim.Optimizer {
	rate := falling(0.1/float64(e.m.Max), e.updates/2, e.updates)
	return optim.Optimizer{Groups: []optim.Group{{Scope: em.Theta, Rule: counts{}, Rate: rate}}}
}

func falling(base float64, from, to uint64) optim.Rate {
	return optim.Rate{Base: base, Fall: optim.Fall{From: from, To: to, End: 0.01}}
}

// counts moves weights, of which only the proportions matter, by how often the latents of a batch have each word, less
// how often the model expects it: a part of a step of EM. Weights stay above 0 at rates below 1/Max, since the model
// expects no more than Max words in a sentence. On average it goes as far by noisy gradients as by exact ones, unlike
// Adam.
type counts struct{}

func (counts) Keeps() []string { return nil }

func (counts) Step(at optim.Point) (*Node, map[string]*Node) {
	return Mul(Mul(at.Value, at.Grad), ReduceAllSum(at.Value)), nil
}

func main() {
	seed := flag.Uint64("seed", 1, "of everything random")
	seeds := flag.Int("seeds", 1, "number of seeds, from that one on")
	updates := flag.Uint64("updates", 500, "M-steps of each method")
	data := flag.String("data", "", "learn from the lines of a file, instead of sentences of our making")
	figure := flag.String("figure", "", "write the training of the first seed as FIGURE.png and FIGURE.svg")
	flag.Parse()
	b := must(backend.Open(""))
	var all []*result
	for s := *seed; s < *seed+uint64(*seeds); s++ {
		all = append(all, must(must(newExperiment(b, *data, s, *updates)).run()))
	}
	fmt.Print(table(all))
	fmt.Printf("\nheld-out sentences as GFlowNet-EM cuts them:\n%s\n", all[0].examples(10))
	if *figure != "" {
		check(all[0].figure().Save(".", *figure))
	}
}
