// Large learns a noisy-OR network of 200 hidden causes and 1,000 visible effects by GFlowNet-EM, where nothing can be
// enumerated any more, and compares it with mean-field EM. ../main.go is the same model with ten causes.
//
//	go run ./examples/noisyor/large -seed 1
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"runtime/pprof"
	"time"

	"github.com/gfnem/gfnem/backend"
	"github.com/gfnem/gfnem/optim"
	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/gfn/envs"
	"github.com/gfnem/gfnem/lvm"
	"github.com/gfnem/gfnem/nn"
	"github.com/gfnem/gfnem/rng"
)

const (
	group = 5 // effects that have the same causes
	reach = 5 // groups of effects that a cause can bring about
	float = dtypes.Float32
)

// # The model

// network is p(x,z). Causes stand in a ring, and cause c can bring about the effects of groups c to c+4: so five causes
// compete to explain each effect, and neighbours share most of theirs. Effect e is absent with probability exp(-r_e),
// where the rates r_e = leak_e + sum_k z_k weight_ke add up over the causes that are present.
//
// By letters: N rows, C causes and as many groups, R=5 causes of a group, E=5 effects of a group.
type network struct {
	causes int
	most   int // causes present at once; what is above has a probability of about 1e-4, and is left out
}

var _ lvm.Model = network{}

func (m network) env() envs.Set { return envs.Set{Items: m.causes, Most: m.most} }

// rates are what is learned, as positive numbers.
type rates struct {
	prior   *Node // log odds of the causes, [1,C]
	weights *Node // [C,R,E]: entry g,j is of cause g-j on the effects of group g
	leak    *Node // [1,C,E]
}

func (m network) rates(theta *model.Scope, g *Graph) rates {
	prior := nn.Param(theta, g, float, "prior", 0.5, 1, m.causes)
	weights := nn.Param(theta, g, float, "weights", 1, m.causes, reach, group)
	leak := nn.Param(theta, g, float, "leak", 0.5, 1, m.causes, group)
	return rates{AddScalar(prior, -4), Exp(AddScalar(weights, -1)), AddScalar(Exp(AddScalar(leak, -4)), 1e-3)}
}

// of returns the weights of the j-th causes of all groups, [1,C,E].
func (r rates) of(j int) *Node {
	return InsertAxes(Squeeze(SliceAxis(r.weights, 1, AxisElem(j)), 1), 0)
}

// turn shifts causes or groups, the second axis, by so many places of the ring: entry i goes to i+by.
func turn(x *Node, by int) *Node {
	n := x.Shape().Dim(1)
	by = (by%n + n) % n
	if by == 0 {
		return x
	}
	return Concatenate([]*Node{SliceAxis(x, 1, AxisRange(n-by)), SliceAxis(x, 1, AxisRange(0, n-by))}, 1)
}

// effects are observations as [N,C,E].
func (m network) effects(x gfn.Batch) *Node { return Reshape(x[0], -1, m.causes, group) }

// present is 1 where a cause is in the set, [N,C].
func present(z gfn.State) *Node { return ConvertDType(z[0], float) }

// total is the rate of each effect, [N,C,E].
func (r rates) total(on *Node) *Node {
	sum := r.leak
	for j := range reach {
		sum = Add(sum, Mul(InsertAxes(turn(on, j), -1), r.of(j)))
	}
	return sum
}

// LogJoint is log p(x,z), [N].
func (m network) LogJoint(theta *model.Scope, x gfn.Batch, z gfn.State) *Node {
	seen, on := m.effects(x), present(z)
	r := m.rates(theta, seen.Graph())
	total := r.total(on)
	logOdds := Add(Log(OneMinus(Exp(Neg(total)))), total) // log p(x_e=1|z) - log p(x_e=0|z)
	logPrior := ReduceSum(Sub(Mul(on, r.prior), Softplus(r.prior)), 1)
	return Add(logPrior, ReduceSum(Sub(Mul(seen, logOdds), total), 1, 2))
}

// Sample draws n pairs (x,z): first the causes, then their effects.
func (m network) Sample(theta *model.Scope, random *rng.Stream, n int) (gfn.Batch, gfn.State) {
	u := random.Uniform(float, n, m.causes)
	r := m.rates(theta, u.Graph())
	on := ConvertDType(LessThan(u, Sigmoid(r.prior)), float)
	room := LessOrEqual(CumSum(on, 1), ConstAs(on, m.most))
	on = Mul(on, ConvertDType(room, float))
	x := random.Bernoulli(OneMinus(Exp(Neg(r.total(on)))))
	return gfn.Batch{Reshape(ConvertDType(x, float), n, -1)}, m.env().Of(ConvertDType(on, dtypes.Int32))
}

// gains are log p(x,z and the cause) - log p(x,z) of all causes at once, [N,C]: what makes each effect that is seen more
// probable counts for it, what it predicts and is not there counts against it.
func (m network) gains(theta *model.Scope, seen, on *Node) *Node {
	r := m.rates(theta, seen.Graph())
	absent := Exp(Neg(r.total(on))) // probability of no effect, [N,C,E]
	there := OneMinus(absent)
	sum := r.prior
	isSeen := GreaterThan(seen, ZerosLike(seen))
	for j := range reach {
		stays := Exp(Neg(r.of(j))) // by so much absence is less probable with the cause
		ratio := Where(isSeen, Div(OneMinus(Mul(absent, stays)), there), BroadcastToShape(stays, seen.Shape()))
		sum = Add(sum, turn(ReduceSum(Log(ratio), 2), -j))
	}
	return StopGradient(sum)
}

// # The policy

// policy adds causes to the set, or stops. It reads what the model, as it is, gains by each cause.
type policy struct{ network }

var _ gfn.Policy = policy{}

// Heads returns logits of adding each cause, and of stopping, in the states s, k of each observation: [N,C+1].
func (p policy) Heads(phi *model.Scope, x gfn.Batch, s gfn.State, k int) gfn.Heads {
	on := present(s)
	gain := ClipScalar(p.gains(phi.Store().Scope(em.Theta), p.effects(x.Repeat(k)), on), -12, 12)
	out := OneMinus(on)
	worth := Mul(out, MulScalar(gain, 0.25))
	var near []*Node // a cause and its competitors: what is gained by each, and whether it is present
	for by := 1 - reach; by < reach; by++ {
		near = append(near, turn(worth, by), turn(on, by))
	}
	left := Log(OnePlus(ReduceAndKeep(Mul(out, Exp(gain)), ReduceSum, 1)))
	likely := ReduceAndKeep(Mul(out, Sigmoid(gain)), ReduceSum, 1)
	count := ReduceAndKeep(on, ReduceSum, 1)
	all := Concatenate([]*Node{MulScalar(left, 0.25), likely, MulScalar(count, 0.25)}, 1) // [N,3]

	hidden := Add(nn.Linear(phi.At("near"), Stack(near, 2), 24), InsertAxes(nn.Linear(phi.At("all"), all, 24), 1))
	add := Add(gain, Squeeze(nn.Linear(phi.At("add"), nn.ReLU(hidden), 1), 2)) // [N,C]
	stop := nn.MLP{Widths: []int{24, 1}}.Apply(phi.At("stop"), all)
	return gfn.Heads{Forward: Concatenate([]*Node{add, stop}, 1)}
}

// # The loop

// setting is how long and how fast models learn.
type setting struct {
	updates  uint64
	batch    int
	phi, rho float64
}

// learner trains q and p; without M-steps if its model stays as it is.
func (m network) learner(b compute.Backend, store *model.Store, data em.Data, seed uint64, s setting, gate em.Gate) (
	*em.Learner, error,
) {
	return em.New(b, store, em.Spec{
		Model: m, Env: m.env(), Policy: policy{m}, Data: data, Seed: seed,
		Wake:  em.Wake{Objective: gfn.VarGrad{}, Samples: 4, Optimizer: adam(em.Phi, s.phi, s.updates)},
		Sleep: em.Sleep{Weight: 1, Batch: s.batch},
		Gate:  gate,
		MStep: em.MStep{Latents: em.Weighted{}, Optimizer: adam(em.Theta, s.rho, s.updates)},
	})
}

// adam trains the variables below a scope at a rate that falls in the second half.
func adam(scope string, rate float64, updates uint64) optim.Optimizer {
	fall := optim.Fall{From: updates / 2, To: updates, End: 0.05}
	return optim.Optimizer{ClipNorm: 10, Groups: []optim.Group{{Scope: scope, Rate: optim.Rate{Base: rate, Fall: fall}}}}
}

func main() {
	seed := flag.Uint64("seed", 1, "of everything random")
	updates := flag.Uint64("updates", 1000, "of each model")
	phi := flag.Float64("phi", 0.003, "")
	rho := flag.Float64("theta", 0.03, "")
	mf := flag.Bool("mf", false, "")
	prof := flag.String("prof", "", "")
	flag.Parse()
	if *prof != "" {
		f := must(os.Create(*prof))
		pprof.StartCPUProfile(f)
		defer pprof.StopCPUProfile()
	}
	b := must(backend.Open(""))
	m := network{causes: 200, most: 12}
	truth := nn.NewStore(*seed)
	draw := func(name string, n int) lvm.Pairs {
		return must(lvm.Draw(b, truth.Scope(em.Theta), m, rng.Key(*seed, name), n))
	}
	train, validation := draw("train", 4000), draw("validation", 500)
	on := 0.0
	for _, z := range tensors.MustCopyFlatData[int32](train.Z[0]) {
		on += float64(z) / 4000
	}
	seen := 0.0
	for _, x := range tensors.MustCopyFlatData[float32](train.X[0]) {
		seen += float64(x) / 4000
	}
	fmt.Printf("%.2f causes present, %.1f effects seen\n", on, seen)
	s := setting{*updates, 32, *phi, *rho}
	store := nn.NewStore(*seed + 1)
	if *mf {
		began := time.Now()
		tab := newTabler(b, store, m)
		must(0, m.meanField(b, store, must(em.Shuffled(*seed, s.batch, train.X...)), *rho, *updates, func(step uint64) {
			if (step+1)%50 == 0 {
				_, v := fitted(tab.of(first(validation.X[0], 100)))
				fmt.Println(step+1, time.Since(began).Seconds(), v)
			}
		}))
		return
	}
	l := must(m.learner(b, store, must(em.Shuffled(*seed, s.batch, train.X...)), *seed+1, s, em.Blocks{First: 50}))
	began := time.Now()
	each := func(r em.Report) error {
		if r.State.Iteration%50 == 0 {
			p := must(l.Posterior())
			v := em.Summarise(must(p.LogLikelihood(16, first(validation.X[0], 100))))
			fmt.Println(r.State.Iteration, time.Since(began).Seconds(), r.Wake.Loss, r.SleepLoss, r.Metrics, fmt.Sprintf("%.3f %.3f ess %.2f", v.LogP, v.ELBO, v.ESS))
			p.Close()
		}
		return nil
	}
	must(0, l.Train(context.Background(), func(s em.State) bool { return s.M == *updates }, each))
}

func first(t *tensors.Tensor, n int) *tensors.Tensor {
	width := t.Shape().Dim(1)
	return tensors.FromFlatDataAndDimensions(tensors.MustCopyFlatData[float32](t)[:n*width], n, width)
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}
