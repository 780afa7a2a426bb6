// Noisyor learns a network of hidden causes and visible effects by GFlowNet-EM, and compares it with exact and with
// mean-field EM. It is a model of one's own from beginning to end: the model, how a latent is assembled, a policy that
// infers it, and the loop that learns both.
//
// Each of 10 causes is present or absent. It can bring about 12 of 30 effects, so that four causes compete to explain
// each effect, and finding one makes the others less probable. Mean field, for which causes are independent given the
// effects, cannot say so; a GFlowNet, which decides on one cause after the other, can.
//
//	go run ./examples/noisyor -seed 1
//
// And what replay and memory are worth (see kept.go):
//
//	go run ./examples/noisyor -kept 700
//
// And how it does beside reweighted wake-sleep, VIMCO and variational inference (see compare.go):
//
//	go run ./examples/noisyor -compare
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"path/filepath"
	"regexp"
	"sync"

	"github.com/gomlx/compute"
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

const (
	causes  = 10
	effects = 30
	float   = dtypes.Float32
)

// # The model
//
// A model answers two questions: how likely is a pair (x,z), and what does a random one look like? All of it is graph
// code, which is compiled, and differentiated for M-steps. Shapes stand beside what is computed: [N,30] are N rows of
// 30 numbers.

// noisyOR is p(x,z). Causes are present independently of each other. Effect e is absent with probability exp(-r_e),
// where the rates r_e = leak_e + sum_k z_k weight_ke add up over the causes that are present. The leak is what happens by
// itself.
type noisyOR struct{}

// The compiler checks that it is a model. It is a Tabler, too: exact EM scores all observations with all latents, which
// is faster at once than pair by pair. That is for the comparison below; a GFlowNet does not need it.
var _ lvm.Tabler = noisyOR{}

// links marks the effects that each cause can have, [10,30]. They are known; how strong they are is not.
func links(g *Graph) *Node {
	known := make([]float32, causes*effects)
	for cause := range causes {
		for i := range 12 {
			known[cause*effects+(3*cause+i)%effects] = 1
		}
	}
	return Reshape(Const(g, known), causes, effects)
}

// parameters are what is learned, made of variables that nn.Param looks up below a scope, or creates there. Rates are
// exponentials, so that they are positive.
func (noisyOR) parameters(theta *model.Scope, g *Graph) (prior, weights, leak *Node) {
	weights = nn.Param(theta, g, float, "weights", 0.5, causes, effects)
	weights = Mul(Exp(AddScalar(weights, -0.3)), links(g)) // [10,30]

	leak = nn.Param(theta, g, float, "leak", 0.5, 1, effects)
	leak = AddScalar(Exp(AddScalar(leak, -3)), 1e-3) // [1,30], never 0

	prior = nn.Param(theta, g, float, "prior", 0.5, 1, causes)
	prior = AddScalar(prior, -1) // [1,10], log odds of the causes
	return prior, weights, leak
}

// terms splits log p(x,z) = x.odds + rest into what depends on x and what does not: odds, [N,30], and rest, [N].
func (m noisyOR) terms(theta *model.Scope, z gfn.State) (odds, rest *Node) {
	on := ConvertDType(z[0], float) // [N,10], 1 where a cause is present
	prior, weights, leak := m.parameters(theta, on.Graph())

	r := Add(Dot(on, weights).Product(), leak)
	odds = Add(Log(OneMinus(Exp(Neg(r)))), r) // log p(x_e=1|z) - log p(x_e=0|z)

	logPrior := ReduceSum(Sub(Mul(on, prior), Softplus(prior)), 1)
	return odds, Sub(logPrior, ReduceSum(r, 1))
}

// LogJoint is log p(x,z) of rows of observations and latents, [N].
func (m noisyOR) LogJoint(theta *model.Scope, x gfn.Batch, z gfn.State) *Node {
	odds, rest := m.terms(theta, z)
	return Add(ReduceSum(Mul(x[0], odds), 1), rest)
}

// LogJointTable is log p(x,z) of every x with every z, [B,K].
func (m noisyOR) LogJointTable(theta *model.Scope, x gfn.Batch, z gfn.State) *Node {
	odds, rest := m.terms(theta, z)
	return Add(Einsum("be,ke->bk", x[0], odds), InsertAxes(rest, 0))
}

// Sample draws n pairs (x,z): first the causes, then their effects. All random numbers come from r.
func (m noisyOR) Sample(theta *model.Scope, r *rng.Stream, n int) (gfn.Batch, gfn.State) {
	u := r.Uniform(float, n, causes)
	prior, weights, leak := m.parameters(theta, u.Graph())
	z := ConvertDType(LessThan(u, Sigmoid(prior)), float)

	absent := Exp(Neg(Add(Dot(z, weights).Product(), leak)))
	x := r.Bernoulli(OneMinus(absent))
	return gfn.Batch{ConvertDType(x, float)}, gfn.State{ConvertDType(z, dtypes.Int32)}
}

// # The environment
//
// It says how a latent is assembled, action by action. Ours decides on one cause after the other, each off (0) or on
// (1): a sequence of 10 tokens of 2 kinds, which is in the box. What is not decided yet is -1. An environment or a model
// of your own is tested for the laws that the loop relies on by envtest.Run and lvmtest.Run, as in main_test.go.

var env = envs.Uniform(causes, 2)

// # The policy
//
// It is q(z|x), the network that takes the next action, given the observation and the state so far.

// policy reads the effects that are seen, those of them that no cause explains so far, and the causes decided on.
type policy struct{}

var _ gfn.Policy = policy{}

// Heads returns the logits of actions in the states s, of which there are k for each observation.
func (policy) Heads(phi *model.Scope, x gfn.Batch, s gfn.State, k int) gfn.Heads {
	seen := x.Repeat(k)[0] // [N,30]
	zero := ZerosLike(s[0])
	on := ConvertDType(GreaterThan(s[0], zero), float)         // [N,10]
	decided := ConvertDType(GreaterOrEqual(s[0], zero), float) // [N,10]
	open := MaxScalar(Sub(seen, Dot(on, links(on.Graph())).Product()), 0)

	in := Concatenate([]*Node{seen, open, on, decided}, 1)
	logits := nn.MLP{Widths: []int{64, causes}}.Apply(phi, in) // [N,10], one for each cause

	next := ConvertDType(ReduceSum(decided, 1), dtypes.Int32) // [N], the cause to decide on
	logit := gfn.Pick(logits, next)
	return gfn.Heads{Forward: Stack([]*Node{ZerosLike(logit), logit}, 1)} // [N,2]: off, on
}

// # The loop
//
// A learner alternates E-steps, which train q to sample in proportion to p(x,z), and M-steps, which train p on samples
// of q. What is left out below has a default: see em.Spec.

func newLearner(b compute.Backend, store *model.Store, data em.Data, seed, updates uint64) (*em.Learner, error) {
	return em.New(b, store, em.Spec{
		Model:  noisyOR{},
		Env:    env,
		Policy: policy{},
		Data:   data,
		Seed:   seed,
		// E-steps compare four samples of each observation with each other.
		Wake: em.Wake{Objective: gfn.VarGrad{}, Samples: 4, Optimizer: adam(em.Phi, 0.02, updates)},
		// They also learn from 50 pairs that the model dreams, whose causes are known.
		Sleep: em.Sleep{Weight: 1, Batch: 50},
		// After each E-step comes an M-step; only at first q meets the model that it starts with.
		Gate:  em.Blocks{First: 200},
		MStep: em.MStep{Latents: em.Drawn{Samples: 2}, Optimizer: adam(em.Theta, 0.05, updates)},
	})
}

// adam trains the variables below a scope, at a rate that falls twice.
func adam(scope string, rate float64, updates uint64) optim.Optimizer {
	drops := []optim.Drop{{Step: updates / 2, Factor: 0.3}, {Step: updates * 4 / 5, Factor: 0.3}}
	return optim.Optimizer{Groups: []optim.Group{
		{Scope: scope, Rate: optim.Rate{Base: rate, Drops: drops}},
	}}
}

// # The comparison
//
// Observations come from a model whose parameters are drawn at random. Three learners start at the same parameters,
// other than these, and make as many updates on the same minibatches. With 1,024 latents the likelihood can still be
// computed exactly.

func main() {
	seed := flag.Uint64("seed", 1, "of everything random")
	updates := flag.Uint64("updates", 1000, "of each model")
	most := flag.Int("kept", 0, "instead, show what replay and memory are worth in so many E-updates")
	others := flag.Bool("compare", false, "instead, compare with other estimators, with rates chosen for each")
	only := flag.String("only", "", "methods of -compare, as a regular expression; exact EM is always there")
	seeds := flag.Int("seeds", 3, "how many, from -seed on, for -kept and -compare")
	figure := flag.String("figure", "", "also draw what -kept finds, as `NAME`.png and NAME.svg")
	flag.Parse()
	b := must(backend.Open(""))
	if *most > 0 {
		table, curves := kept(b, *seed, *seeds, *most)
		fmt.Print(table)
		if *figure != "" {
			must(0, curves.Save(filepath.Dir(*figure), filepath.Base(*figure)))
		}
		return
	}
	if *others {
		best, choice := compare(b, *seed, *seeds, *updates, must(regexp.Compile(*only)))
		fmt.Printf("%s\n%s", best, choice)
		return
	}

	truth := nn.NewStore(*seed)
	draw := func(name string, n int) lvm.Pairs {
		return must(lvm.Draw(b, truth.Scope(em.Theta), noisyOR{}, rng.Key(*seed, name), n))
	}
	train, test := draw("train", 2000), draw("test", 1000)
	data := func() em.Data { return must(em.Shuffled(*seed, 50, train.X...)) }
	start := func() *model.Store { return nn.NewStore(*seed + 1) }

	learned := start()
	learner := must(newLearner(b, learned, data(), *seed+1, *updates))
	defer learner.Close()

	exact := em.Classical{Model: noisyOR{}, Env: env, Data: data(), Optimizer: adam(em.Theta, 0.05, *updates)}
	byExact := start()

	meanField := exact
	meanField.Data, meanField.Posterior = data(), em.MeanField
	byMeanField := start()

	var wg sync.WaitGroup
	wg.Go(func() {
		must(exact.Train(b, byExact, *updates))
		must(meanField.Train(b, byMeanField, *updates))
	})
	enough := func(s em.State) bool { return s.M == *updates }
	if err := learner.Train(context.Background(), enough, nil); err != nil {
		log.Fatal(err)
	}
	wg.Wait()

	fmt.Printf("seed %d: log p(x) per held-out observation, and how far from exact EM\n", *seed)
	best := must(exact.LogLikelihood(b, byExact, test.X...))
	for _, row := range []struct {
		name  string
		store *model.Store
	}{
		{"truth", truth},
		{"exact EM", byExact},
		{"GFlowNet-EM", learned},
		{"mean-field EM", byMeanField},
	} {
		logP := must(exact.LogLikelihood(b, row.store, test.X...))
		fmt.Printf("%-13s %9.4f %+8.4f\n", row.name, logP, logP-best)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}
