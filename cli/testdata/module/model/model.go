// Package model is a model of somebody who uses the library: two coins, of which one is tossed eight times.
package model

import (
	"math"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/gfn/envs"
	"github.com/gfnem/gfnem/nn"
	"github.com/gfnem/gfnem/optim"
	"github.com/gfnem/gfnem/rng"
	"github.com/gfnem/gfnem/task"
)

// Config is what a user can change.
type Config struct {
	Seed    uint64 `toml:"seed" help:"seed of all random numbers"`
	Updates int    `toml:"updates" range:"1,1e6" help:"M-steps"`
	Rows    int    `toml:"rows" range:"2,1e6" help:"observations"`
}

// Task learns the coins.
var Task = task.Of(task.Definition[Config]{
	Name:    "coins",
	About:   "Two coins, of which one is tossed eight times.",
	Presets: []task.Preset[Config]{{Name: "quick", Config: Config{Updates: 1000, Rows: 200}}},
	Start:   start,
})

func start(_ compute.Backend, c Config) (task.Learning, error) {
	data, err := em.Shuffled(c.Seed, c.Rows/2, draw(c.Seed, c.Rows))
	return task.Learning{
		Spec: em.Spec{
			Model: coins{}, Env: envs.Uniform(1, 2), Policy: policy{}, Data: data,
			Wake:  em.Wake{Explore: em.Explore{Epsilon: em.Constant(0.1)}, Optimizer: adam(em.Phi)},
			MStep: em.MStep{Optimizer: adam(em.Theta)},
		},
		MSteps:  uint64(c.Updates),
		HeldOut: []*tensors.Tensor{draw(c.Seed+1, 100)},
		Metrics: func(m *task.Learned) (map[string]float64, error) {
			p := tensors.MustCopyFlatData[float32](m.Theta().GetVariable("logits").MustValue())
			return map[string]float64{"apart": math.Abs(float64(p[0] - p[1]))}, nil
		},
	}, err
}

func adam(scope string) optim.Optimizer {
	return optim.Optimizer{Groups: []optim.Group{{Scope: scope, Rate: optim.Rate{Base: 0.02}}}}
}

// draw tosses coins that show heads in 20 and in 90 of 100 tosses, [n,8].
func draw(seed uint64, n int) *tensors.Tensor {
	r := rng.New(seed, "tosses", 0)
	x := make([]float32, 8*n)
	for i := range n {
		p := []float64{0.2, 0.9}[r.IntN(2)]
		for j := range 8 {
			if r.Float64() < p {
				x[8*i+j] = 1
			}
		}
	}
	return tensors.FromFlatDataAndDimensions(x, n, 8)
}

// coins is p(x,z): z, [B,1], is the coin, and both are equally likely.
type coins struct{}

// logit is that of heads, [B,1].
func (coins) logit(theta *model.Scope, z gfn.State) *Node {
	which := OneHot(Squeeze(z[0], 1), 2, dtypes.Float32) // [B,2]
	return Dot(which, nn.Param(theta, which.Graph(), dtypes.Float32, "logits", 1, 2, 1)).Product()
}

func (m coins) LogJoint(theta *model.Scope, x gfn.Batch, z gfn.State) *Node {
	logit := BroadcastToShape(m.logit(theta, z), x[0].Shape()) // [B,8]
	return AddScalar(ReduceSum(Sub(Mul(x[0], logit), Softplus(logit)), 1), -math.Ln2)
}

func (m coins) Sample(theta *model.Scope, r *rng.Stream, n int) (gfn.Batch, gfn.State) {
	u := r.Uniform(dtypes.Float32, n, 9)
	z := gfn.State{ConvertDType(GreaterThan(SliceAxis(u, 1, AxisElem(8)), ConstAs(u, 0.5)), dtypes.Int32)}
	p := BroadcastToDims(Sigmoid(m.logit(theta, z)), n, 8)
	return gfn.Batch{ConvertDType(LessThan(SliceAxis(u, 1, AxisRange(0, 8)), p), dtypes.Float32)}, z
}

// policy is q(z|x).
type policy struct{}

func (policy) Heads(phi *model.Scope, x gfn.Batch, s gfn.State, k int) gfn.Heads {
	out := nn.MLP{Widths: []int{8, 3}}.Apply(phi, x.Repeat(k)[0])
	return gfn.Heads{
		Forward: SliceAxis(out, 1, AxisRange(0, 2)),
		Flow:    Squeeze(SliceAxis(out, 1, AxisElem(2)), 1),
	}
}
