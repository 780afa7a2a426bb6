package lvmtest

import (
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/backend"
	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/gfn/envs"
	"github.com/gfnem/gfnem/internal/modellaws"
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
		panic("coins are lost")
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
	case "column":
		logP = InsertAxes(logP, 1)
	case "unnormalised":
		logP = Add(logP, MulScalar(ReduceAllSum(offset), 0.1))
	}
	return logP
}

func (c coins) LogJointTable(scope *model.Scope, x gfn.Batch, z gfn.State) *Node {
	b, k := x.Size(), z[0].Shape().Dim(0)
	table := Reshape(c.LogJoint(scope, x.Repeat(k), z.Tile(b)), b, k)
	switch c.fault {
	case "table": // latent k+1 for latent k
		table = Concatenate([]*Node{SliceAxis(table, 1, AxisRangeToEnd(1)), SliceAxis(table, 1, AxisElem(0))}, 1)
	case "narrow table":
		table = SliceAxis(table, 1, AxisRange(0, k-1))
	}
	return table
}

func (c coins) Sample(scope *model.Scope, r *rng.Stream, n int) (gfn.Batch, gfn.State) {
	switch {
	case c.fault == "too few":
		n--
	case c.fault == "shared" && n%4 == 0:
		x, z := coins{}.Sample(scope, r, n/4)
		return x.Repeat(4), z.Repeat(4)
	}
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
	switch c.fault {
	case "open":
		state = AddScalar(MulScalar(state, 0), envs.Unset)
	case "edge": // a coin that stands on its edge
		state = AddScalar(state, 1)
	case "three coins":
		state = Concatenate([]*Node{state, state}, 1)
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
	switch c.fault {
	case "flat value":
		bias = Reshape(bias, 2)
	case "no values":
		return []*model.Variable{scope.GetVariable("bias"), scope.GetVariable("offset")}, nil
	}
	return []*model.Variable{scope.GetVariable("bias"), scope.GetVariable("offset")}, []*Node{bias, offset}
}

// byMeans is coins that need the means of the coins and of what is left of the observations.
type byMeans struct {
	changed
	fault string
}

var _ lvm.Exponential = byMeans{}

func (m byMeans) Statistics(_ *model.Scope, x gfn.Batch, z gfn.State) []*Node {
	on := ConvertDType(z[0], float)
	out := []*Node{ReduceMean(on, 0), ReduceMean(Sub(x[0], MulScalar(on, 2)), 0)}
	switch m.fault {
	case "sums":
		out[1] = MulScalar(out[1], x.Size())
	case "rows kept":
		out[0] = on
	}
	return out
}

func (m byMeans) MaximizeMeans(scope *model.Scope, means []*Node) ([]*model.Variable, []*Node) {
	coins{}.variables(scope, means[0].Graph())
	mean := ClipScalar(means[0], 0.01, 0.99)
	bias, offset := InsertAxes(Sub(Log(mean), Log(OneMinus(mean))), 0), InsertAxes(means[1], 0)
	if m.fault == "not the maximum" {
		offset = MulScalar(offset, 0.5)
	}
	return []*model.Variable{scope.GetVariable("bias"), scope.GetVariable("offset")}, []*Node{bias, offset}
}

// What a model says of statistics has laws, too.
func TestExponential(t *testing.T) {
	b, err := backend.Open("")
	if err != nil {
		t.Fatal(err)
	}
	defer b.Finalize()
	for fault, law := range map[string]string{
		"": "", "sums": modellaws.Means, "rows kept": modellaws.Means, "not the maximum": modellaws.MaximumMeans,
	} {
		got := Check(b, byMeans{changed{Model: coins{}}, fault}, coinEnv)
		if law == "" && len(got) > 0 || law != "" && (len(got) != 1 || !strings.HasPrefix(got[0], law+": ")) {
			t.Errorf("%q: got %q, want %q", fault, got, law)
		}
	}
}

func TestCoins(t *testing.T) { Run(t, coins{}, coinEnv) }

// Every law has models that break it and are caught, and no other law is then reported.
func TestBroken(t *testing.T) {
	b, err := backend.Open("")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		fault, law, example string
	}{
		{"panic", modellaws.Run, "coins are lost"},
		{"column", modellaws.Shape, "LogJoint of 1024 pairs is (Float32)[1024, 1]"},
		{"too few", modellaws.Shape, "(Float32)[1023, 2]"},
		{"nan", modellaws.Finite, "NaN"},
		{"open", modellaws.Terminal, "can be built further"},
		{"edge", modellaws.Terminal, "cannot be built from the initial state"},
		{"three coins", modellaws.Terminal, "tensor 0 of the latents"},
		{"prior", modellaws.Score, "/theta/bias"},
		{"likelihood", modellaws.Score, "/theta/offset"},
		{"unnormalised", modellaws.Score, "/theta/offset"},
		{"shared", modellaws.Independent, "as much as it should"},
		{"rows", modellaws.Rows, "alone"},
		{"table", modellaws.Table, "of observation 0 and latent 0"},
		{"narrow table", modellaws.Table, "it is (Float32)[12, 12]"},
		{"maximum", modellaws.Maximum, "of the way to"},
		{"lower", modellaws.Maximum, "of the way to"},
		{"no values", modellaws.Maximum, "2 variables and 0 values"},
		{"flat value", modellaws.Maximum, "the value of /theta/bias is (Float32)[2]"},
	} {
		t.Run(c.fault, func(t *testing.T) {
			m := lvm.Model(coins{c.fault})
			if c.law == modellaws.Rows || c.fault == "unnormalised" {
				m = changed{Model: m} // neither table nor maximum, which would differ too
			}
			got := Check(b, m, coinEnv)
			if len(got) == 0 || !strings.HasPrefix(got[0], c.law+": ") || !strings.Contains(got[0], c.example) {
				t.Fatalf("got %q, want %q with %q", got, c.law, c.example)
			}
			if len(got) > 1 {
				t.Errorf("and also %q", got[1:])
			}
		})
	}
}
