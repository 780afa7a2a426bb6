// Noisyor learns a network of causes and effects by GFlowNet-EM, and compares it with exact and with mean-field EM. Four
// causes compete to explain each effect, and finding one makes the others less probable. Mean field, for which causes are
// independent given the effects, cannot say so; a GFlowNet, which decides on one cause after the other, can.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"sync"

	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/backend"
	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/gfn/envs"
	"github.com/gfnem/gfnem/lvm"
	"github.com/gfnem/gfnem/nn"
	"github.com/gfnem/gfnem/optim"
	"github.com/gfnem/gfnem/rng"
)

const causes, effects, float = 10, 30, dtypes.Float32

// links marks the twelve effects that each cause can have, [10,30]. They are known; how strong they are is not.
func links(g *Graph) *Node {
	known := make([]float32, causes*effects)
	for i := range causes * 12 {
		known[i/12*effects+(i/12*3+i%12)%effects] = 1
	}
	return Reshape(Const(g, known), causes, effects)
}

type noisyOR struct{} // the model, an lvm.Tabler: x_e is 0 with probability exp(-r_e), r_e = leak_e + sum_k z_k weight_ke

func (noisyOR) parameters(scope *model.Scope, g *Graph) (prior, weights, leak *Node) { // [1,10], [10,30], [1,30]
	weights = Mul(Exp(AddScalar(nn.Param(scope, g, float, "weights", 0.5, causes, effects), -0.3)), links(g))
	leak = AddScalar(Exp(AddScalar(nn.Param(scope, g, float, "leak", 0.5, 1, effects), -3)), 1e-3) // never 0
	return AddScalar(nn.Param(scope, g, float, "prior", 0.5, 1, causes), -1), weights, leak
}

// terms returns odds, [N,30], and rest, [N], such that log p(x,z) = x.odds + rest.
func (m noisyOR) terms(scope *model.Scope, z gfn.State) (odds, rest *Node) {
	on := ConvertDType(z[0], float)
	prior, weights, leak := m.parameters(scope, on.Graph())
	r := Add(Dot(on, weights).Product(), leak)
	odds = Add(Log(OneMinus(Exp(Neg(r)))), r) // log p(x_e=1|z) - log p(x_e=0|z)
	return odds, Sub(ReduceSum(Sub(Mul(on, prior), Softplus(prior)), 1), ReduceSum(r, 1))
}

func (m noisyOR) LogJoint(scope *model.Scope, x gfn.Batch, z gfn.State) *Node { // [N], of pairs
	odds, rest := m.terms(scope, z)
	return Add(ReduceSum(Mul(x[0], odds), 1), rest)
}

func (m noisyOR) LogJointTable(scope *model.Scope, x gfn.Batch, z gfn.State) *Node { // [B,K], of all x with all z
	odds, rest := m.terms(scope, z)
	return Add(Einsum("be,ke->bk", x[0], odds), InsertAxes(rest, 0))
}

func (m noisyOR) Sample(scope *model.Scope, r *rng.Stream, n int) (gfn.Batch, gfn.State) {
	u := r.Uniform(float, n, causes)
	prior, weights, leak := m.parameters(scope, u.Graph())
	z := ConvertDType(LessThan(u, Sigmoid(prior)), float)
	x := r.Bernoulli(OneMinus(Exp(Neg(Add(Dot(z, weights).Product(), leak)))))
	return gfn.Batch{ConvertDType(x, float)}, gfn.State{ConvertDType(z, dtypes.Int32)}
}

type policy struct{} // q(z|x): reads the effects, those still unexplained, and the causes decided so far

func (policy) Heads(scope *model.Scope, x gfn.Batch, s gfn.State, k int) gfn.Heads {
	seen, zero := x.Repeat(k)[0], ZerosLike(s[0]) // s is 1 (on), 0 (off) or -1 (not decided yet)
	on, decided := ConvertDType(GreaterThan(s[0], zero), float), ConvertDType(GreaterOrEqual(s[0], zero), float)
	open := MaxScalar(Sub(seen, Dot(on, links(on.Graph())).Product()), 0)
	logits := nn.MLP{Widths: []int{64, causes}}.Apply(scope, Concatenate([]*Node{seen, open, on, decided}, 1))
	next := gfn.Pick(logits, ConvertDType(ReduceSum(decided, 1), dtypes.Int32))
	return gfn.Heads{Forward: Stack([]*Node{ZerosLike(next), next}, 1)} // off, on
}

func main() {
	seed, updates := flag.Uint64("seed", 1, "of everything random"), flag.Uint64("updates", 1000, "of each model")
	flag.Parse()
	b, env := must(backend.Open("")), envs.Uniform(causes, 2) // a latent: one cause after the other, off (0) or on (1)
	truth, s1, s2, s3 := nn.NewStore(*seed), nn.NewStore(*seed+1), nn.NewStore(*seed+1), nn.NewStore(*seed+1)
	train := must(lvm.Draw(b, truth.Scope(em.Theta), noisyOR{}, rng.Key(*seed, "train"), 2000)).X
	test := must(lvm.Draw(b, truth.Scope(em.Theta), noisyOR{}, rng.Key(*seed, "test"), 1000)).X
	data := func() em.Data { return must(em.Shuffled(*seed, 50, train...)) }
	adam := func(scope string, rate float64) optim.Optimizer {
		drops := []optim.Drop{{Step: *updates / 2, Factor: 0.3}, {Step: *updates * 4 / 5, Factor: 0.3}}
		return optim.Optimizer{Groups: []optim.Group{{Scope: scope, Rate: optim.Rate{Base: rate, Drops: drops}}}}
	}
	exact := em.Classical{Model: noisyOR{}, Env: env, Data: data(), Optimizer: adam(em.Theta, 0.05)}
	field := em.Classical{Model: noisyOR{}, Env: env, Data: data(), Optimizer: adam(em.Theta, 0.05), Posterior: em.MeanField}
	flow := must(em.New(b, s2, em.Spec{Model: noisyOR{}, Env: env, Policy: policy{}, Data: data(), Seed: *seed + 1,
		Wake:  em.Wake{Objective: gfn.VarGrad{}, Samples: 4, Optimizer: adam(em.Phi, 0.02)},
		Sleep: em.Sleep{Weight: 1, Batch: 50}, Gate: em.Blocks{First: 200}, // q first meets the model it starts with
		MStep: em.MStep{Latents: em.Drawn{Samples: 2}, Optimizer: adam(em.Theta, 0.05)}}))
	var wg sync.WaitGroup // all start at the same parameters and make as many updates, on batches of the same data
	wg.Go(func() { must(exact.Train(b, s1, *updates)); must(field.Train(b, s3, *updates)) })
	must(0, flow.Train(context.Background(), func(s em.State) bool { return s.M == *updates }, nil))
	wg.Wait()
	best := must(exact.LogLikelihood(b, s1, test...))
	fmt.Printf("seed %d: log p(x) per held-out observation, and how far from exact EM\n", *seed)
	for i, s := range []*model.Store{truth, s1, s2, s3} {
		logP := must(exact.LogLikelihood(b, s, test...))
		fmt.Printf("%-13s %9.4f %+8.4f\n", []string{"truth", "exact EM", "GFlowNet-EM", "mean-field EM"}[i], logP, logP-best)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}
