package lvmtest

import (
	"errors"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/backend"
	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/gfn/envs"
	"github.com/gfnem/gfnem/lvm"
	"github.com/gfnem/gfnem/nn"
	"github.com/gfnem/gfnem/rng"
)

const float = dtypes.Float32

var coinEnv = envs.Uniform(2, 2)

// coins: two hidden coins with unknown biases, each seen with normal noise of known size around 2z + an unknown offset.
// A fault breaks one law.
type coins struct{ fault string }

var (
	_ lvm.Maximizer = coins{}
	_ lvm.Tabler    = coins{}
)

func (c coins) variables(scope *model.Scope, g *Graph) (bias, offset *Node) {
	return nn.Param(scope, g, float, "bias", 1, 1, 2), nn.Param(scope, g, float, "offset", 1, 1, 2)
}

func (c coins) LogJoint(scope *model.Scope, x gfn.Batch, z gfn.State) *Node {
	if c.fault == "panic" {
		panic(errors.New("coins are lost"))
	}
	on := ConvertDType(z[0], float)
	bias, offset := c.variables(scope, on.Graph())
	noise := Sub(Sub(x[0], MulScalar(on, 2)), offset)
	logP := ReduceSum(Sub(Sub(Mul(on, bias), Softplus(bias)), MulScalar(Square(noise), 0.5)), 1)
	switch c.fault {
	case "rows":
		logP = Sub(logP, ReduceAllMean(logP))
	case "nan":
		logP = Log(AddScalar(logP, -1e6))
	}
	return logP
}

func (c coins) LogJointTable(scope *model.Scope, x gfn.Batch, z gfn.State) *Node {
	b, k := x.Size(), z[0].Shape().Dim(0)
	table := Reshape(c.LogJoint(scope, x.Repeat(k), z.Tile(b)), b, k)
	if c.fault == "table" {
		table = Transpose(table, 0, 1)
	}
	return table
}

func (c coins) Sample(scope *model.Scope, r *rng.Stream, n int) (gfn.Batch, gfn.State) {
	u := r.Uniform(float, n, 2)
	bias, offset := c.variables(scope, u.Graph())
	if c.fault == "prior" {
		bias = AddScalar(bias, 0.2)
	}
	if c.fault == "likelihood" {
		offset = AddScalar(offset, 0.05)
	}
	z := ConvertDType(LessThan(u, Sigmoid(bias)), float)
	x := Add(Add(MulScalar(z, 2), offset), r.Normal(float, n, 2))
	state := ConvertDType(z, dtypes.Int32)
	if c.fault == "open" {
		state = AddScalar(MulScalar(state, 0), envs.Unset)
	}
	return gfn.Batch{x}, gfn.State{state}
}

func (c coins) Maximize(scope *model.Scope, x gfn.Batch, z gfn.State) ([]*model.Variable, []*Node) {
	on := ConvertDType(z[0], float)
	oldBias, oldOffset := c.variables(scope, on.Graph())
	mean := ClipScalar(ReduceMean(on, 0), 0.01, 0.99)
	bias := InsertAxes(Sub(Log(mean), Log(OneMinus(mean))), 0)
	offset := InsertAxes(ReduceMean(Sub(x[0], MulScalar(on, 2)), 0), 0)
	switch c.fault {
	case "maximum": // half of the way
		bias, offset = MulScalar(Add(bias, oldBias), 0.5), MulScalar(Add(offset, oldOffset), 0.5)
	case "lower":
		offset = AddScalar(offset, 5)
	}
	return []*model.Variable{scope.GetVariable("bias"), scope.GetVariable("offset")}, []*Node{bias, offset}
}

func TestCoins(t *testing.T) { Run(t, coins{}, coinEnv) }

// Every law has a model that breaks it and is caught.
func TestBroken(t *testing.T) {
	b, err := backend.Open("")
	if err != nil {
		t.Fatal(err)
	}
	for fault, want := range map[string]string{
		"panic":      "coins are lost",
		"rows":       "alone and",
		"nan":        "LogJoint of sampled pair 0 is NaN",
		"table":      "LogJointTable of x 0 and z 1",
		"prior":      "expected gradient by /theta/bias",
		"likelihood": "expected gradient by /theta/offset",
		"open":       "sampled latent 0 is not a terminal state",
		"maximum":    "Maximize is not at a maximum",
		"lower":      "Maximize lowers the mean log-joint",
	} {
		got := Check(b, coins{fault}, coinEnv)
		if !strings.Contains(strings.Join(got, "\n"), want) {
			t.Errorf("%s: violations %q, want one with %q", fault, got, want)
		}
	}
}
