package task_test

import (
	"math"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/backend"
	"github.com/gfnem/gfnem/cli/command"
	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/gfn/envs"
	"github.com/gfnem/gfnem/nn"
	"github.com/gfnem/gfnem/rng"
	"github.com/gfnem/gfnem/task"
)

// coins is a mixture of two coins: z says which one is tossed 8 times, x how each toss ended.
type coins struct{}

const tosses = 8

// logits are those of heads, of both coins, [2,1].
func (coins) logits(theta *model.Scope, g *Graph) *Node {
	return nn.Param(theta, g, dtypes.Float32, "logits", 1, 2, 1)
}

func (m coins) LogJoint(theta *model.Scope, x gfn.Batch, z gfn.State) *Node {
	which := OneHot(Squeeze(z[0], 1), 2, dtypes.Float32)                 // [B,2]
	logit := Dot(which, m.logits(theta, which.Graph())).Product()        // [B,1]
	each := Sub(Mul(x[0], logit), Softplus(Add(logit, ZerosLike(x[0])))) // [B,8]
	return AddScalar(ReduceSum(each, 1), -math.Ln2)
}

func (m coins) Sample(theta *model.Scope, r *rng.Stream, n int) (gfn.Batch, gfn.State) {
	second := ConvertDType(LessThan(r.Uniform(dtypes.Float32, n), r.Uniform(dtypes.Float32, n)), dtypes.Int32) // [n]
	which := OneHot(second, 2, dtypes.Float32)
	p := Sigmoid(Dot(which, m.logits(theta, second.Graph())).Product()) // [n,1]
	x := LessThan(r.Uniform(dtypes.Float32, n, tosses), BroadcastToDims(p, n, tosses))
	return gfn.Batch{ConvertDType(x, dtypes.Float32)}, gfn.State{InsertAxes(second, -1)}
}

// guess is q(z|x) of the tosses.
type guess struct{}

func (guess) Heads(phi *model.Scope, x gfn.Batch, s gfn.State, k int) gfn.Heads {
	out := nn.MLP{Widths: []int{8, 3}}.Apply(phi, x.Repeat(k)[0])
	return gfn.Heads{
		Forward: SliceAxis(out, 1, AxisRange(0, 2)),
		Flow:    Squeeze(SliceAxis(out, 1, AxisElem(2)), 1),
	}
}

type config struct {
	Seed    uint64 `toml:"seed" help:"seed of all random numbers"`
	Updates int    `toml:"updates" range:"1,1e6" help:"M-updates"`
	Rows    int    `toml:"rows" range:"2,1e6" help:"observations"`
}

// tossed draws observations of coins with heads in 20 and in 90 of 100 tosses.
func tossed(seed uint64, n int) *tensors.Tensor {
	r := rng.New(seed, "tosses", 0)
	x := make([]float32, 0, n*tosses)
	for range n {
		p := []float64{0.2, 0.9}[r.IntN(2)]
		for range tosses {
			var one float32
			if r.Float64() < p {
				one = 1
			}
			x = append(x, one)
		}
	}
	return tensors.FromFlatDataAndDimensions(x, n, tosses)
}

func learning(c config) (task.Learning, error) {
	x := tossed(c.Seed, c.Rows)
	data, err := em.Shuffled(c.Seed, c.Rows/2, x)
	return task.Learning{
		Spec: em.Spec{
			Model: coins{}, Env: envs.Uniform(1, 2), Policy: guess{}, Data: data,
			Wake: em.Wake{Explore: em.Explore{Epsilon: em.Constant(0.1)}},
			Gate: em.Blocks{E: 2},
		},
		MSteps:  uint64(c.Updates),
		HeldOut: []*tensors.Tensor{tossed(c.Seed+1, 50)},
		Metrics: func(m *task.Learned) (map[string]float64, error) {
			logits := tensors.MustCopyFlatData[float32](m.Theta().GetVariable("logits").MustValue())
			return map[string]float64{"spread": math.Abs(float64(logits[0] - logits[1])), "undefined": math.NaN()}, nil
		},
		Watch: 7,
	}, err
}

// toy learns the coins.
var toy = task.Of(task.Definition[config]{
	Name:  "coins",
	About: "Two coins, of which one is tossed eight times.",
	Presets: []task.Preset[config]{
		{Name: "quick", Config: config{Updates: 6, Rows: 20}},
		{Name: "long", Config: config{Updates: 300, Rows: 200}},
	},
	Start: func(_ compute.Backend, c config) (task.Learning, error) { return learning(c) },
	Tables: []task.Table{{
		Name: "coins", Title: "Few and many observations",
		Rows: []task.Row{{Name: "few", Set: []string{"rows=4"}}, {Name: "many", Set: []string{"rows=40"}}},
		Runs: 2,
	}},
	Shortcuts: []command.Shortcut{{Flag: "observations", Key: "rows", Placeholder: "N", Help: "how many"}},
})

func open(t *testing.T) compute.Backend {
	t.Helper()
	b, err := backend.Open("")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// startOf is a task that learns what it is given.
func startOf(l task.Learning) *task.Task[struct{}] {
	return task.Of(task.Definition[struct{}]{
		Name:  "coins",
		Start: func(compute.Backend, struct{}) (task.Learning, error) { return l, nil },
	})
}
