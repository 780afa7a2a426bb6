// Package lvmtest tests the laws of lvm.Model, for models of your own too:
//
//	func TestModel(t *testing.T) { lvmtest.Run(t, noisyOR{}, envs.Uniform(10, 2)) }
package lvmtest

import (
	"fmt"
	"math"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/gfnem/gfnem/backend"
	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/lvm"
	"github.com/gfnem/gfnem/nn"
	"github.com/gfnem/gfnem/rng"
)

// Seed is that of the parameters and of all samples.
const Seed = 1

// FalseAlarm is the probability with which a correct model is reported for a seed drawn at random.
const FalseAlarm = 1e-5

// scope holds the model's variables.
const scope = "/theta"

// Run reports every law that a model breaks, at parameters and samples drawn from Seed. The latents of the model are
// terminal states of env.
func Run(t *testing.T, m lvm.Model, env gfn.Env) {
	t.Helper()
	b, err := backend.Open("")
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("seed %d", Seed)
	for _, v := range Check(b, m, env) {
		t.Error(v)
	}
}

// Check returns the violations that Run reports.
func Check(b compute.Backend, m lvm.Model, env gfn.Env) []string {
	c := &checker{b: b, m: m, env: env, store: nn.NewStore(Seed)}
	for _, law := range []func() error{c.draw, c.terminal, c.finite, c.rows, c.score, c.table, c.maximum} {
		if err := law(); err != nil {
			c.failed = append(c.failed, err.Error())
			if c.pairs.Z == nil { // without samples there is nothing to check
				break
			}
		}
	}
	return c.failed
}

type checker struct {
	b      compute.Backend
	m      lvm.Model
	env    gfn.Env
	store  *model.Store
	pairs  lvm.Pairs
	failed []string
}

// few is the number of pairs of the laws that hold exactly.
const few = 8

func (c *checker) draw() (err error) {
	c.pairs, err = lvm.Draw(c.b, c.theta(), c.m, rng.Key(Seed, "lvmtest"), few)
	return err
}

func (c *checker) theta() *model.Scope { return c.store.Scope(scope) }

// eval runs a graph on pairs and returns its output as float64.
func (c *checker) eval(p lvm.Pairs, f func(x gfn.Batch, z gfn.State) *Node) ([]float64, error) {
	var args []any
	for _, t := range append(append([]*tensors.Tensor{}, p.X...), p.Z...) {
		args = append(args, t)
	}
	out, err := model.CallOnce(c.b, c.store, func(_ *model.Scope, in []*Node) *Node {
		return ConvertDType(f(gfn.Batch(in[:len(p.X)]), gfn.State(in[len(p.X):])), dtypes.Float64)
	}, args...)
	if err != nil {
		return nil, err
	}
	return tensors.CopyFlatData[float64](out)
}

func (c *checker) logJoint(p lvm.Pairs) ([]float64, error) {
	return c.eval(p, func(x gfn.Batch, z gfn.State) *Node { return c.m.LogJoint(c.theta(), x, z) })
}

func (c *checker) terminal() error {
	ends, err := c.eval(c.pairs, func(_ gfn.Batch, z gfn.State) *Node { return gfn.Terminal(c.env, z) })
	if err != nil {
		return fmt.Errorf("sampled latents are not states of the environment: %w", err)
	}
	for i, v := range ends {
		if v == 0 {
			return fmt.Errorf("sampled latent %d is not a terminal state", i)
		}
	}
	return nil
}

func (c *checker) finite() error {
	logP, err := c.logJoint(c.pairs)
	if err != nil {
		return fmt.Errorf("LogJoint: %w", err)
	}
	if len(logP) != few {
		return fmt.Errorf("LogJoint of %d pairs returns %d numbers", few, len(logP))
	}
	for i, v := range logP {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("LogJoint of sampled pair %d is %g", i, v)
		}
	}
	return nil
}

// rows: the log-joint of a pair does not depend on the rest of the batch.
func (c *checker) rows() error {
	together, err := c.logJoint(c.pairs)
	if err != nil {
		return nil // reported by finite
	}
	for i := range few {
		alone, err := c.logJoint(lvm.Pairs{X: row(c.pairs.X, i), Z: row(c.pairs.Z, i)})
		if err != nil {
			return fmt.Errorf("LogJoint of one pair: %w", err)
		}
		if !near(alone[0], together[i]) {
			return fmt.Errorf("LogJoint of pair %d is %g alone and %g in a batch", i, alone[0], together[i])
		}
	}
	return nil
}

// table: all pairs of x and z score as they do one by one.
func (c *checker) table() error {
	if _, ok := c.m.(lvm.Tabler); !ok {
		return nil
	}
	got, err := c.eval(c.pairs, func(x gfn.Batch, z gfn.State) *Node { return lvm.Table(c.m, c.theta(), x, z) })
	if err != nil {
		return fmt.Errorf("LogJointTable: %w", err)
	}
	want, err := c.eval(c.pairs, func(x gfn.Batch, z gfn.State) *Node { return c.m.LogJoint(c.theta(), x.Repeat(few), z.Tile(few)) })
	if err != nil {
		return fmt.Errorf("LogJoint: %w", err)
	}
	for i := range want {
		if len(got) != len(want) || !near(got[i], want[i]) {
			return fmt.Errorf("LogJointTable of x %d and z %d is %g, LogJoint %g", i/few, i%few, got[i], want[i])
		}
	}
	return nil
}

// near allows for the rounding of float32 sums.
func near(a, b float64) bool { return math.Abs(a-b) <= 1e-4*(1+math.Abs(b)) }

// row returns one row of every tensor.
func row(ts []*tensors.Tensor, i int) []*tensors.Tensor {
	out := make([]*tensors.Tensor, len(ts))
	for k, t := range ts {
		shape := t.Shape().Clone()
		width := int(t.ByteSize()) / shape.Dimensions[0]
		shape.Dimensions[0] = 1
		out[k] = tensors.FromShape(shape)
		must(t.ConstBytes(func(from []byte) {
			must(out[k].MutableBytes(func(to []byte) { copy(to, from[i*width:(i+1)*width]) }))
		}))
	}
	return out
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// score: the expected gradient of log p(x,z) is zero. Means over independent batches are nearly normal, so each
// parameter has a t-test, and all of them together the stated rate of false alarms.
func (c *checker) score() error {
	const batches, size = 60, 256
	var names []string
	var means [][]float64 // by parameter, then batch
	exec, err := model.NewExec(c.b, c.store, func(_ *model.Scope, key *Node) *Node {
		x, z := c.m.Sample(c.theta(), rng.In(key), size)
		for i := range x {
			x[i] = StopGradient(x[i])
		}
		logP := ReduceAllMean(c.m.LogJoint(c.theta(), x, z))
		var vars []*Node
		names = nil
		for v := range c.theta().IterVariables() {
			if v.Trainable && v.InUseByGraph(logP.Graph()) {
				vars = append(vars, v.NodeValue(logP.Graph()))
				for i := range v.Shape().Size() {
					names = append(names, fmt.Sprintf("%s[%d]", v.Path(), i))
				}
			}
		}
		grads := Gradient(logP, vars...)
		for i, g := range grads {
			grads[i] = ConvertDType(Reshape(g, g.Shape().Size()), dtypes.Float64)
		}
		return Concatenate(grads, 0)
	})
	if err != nil {
		return fmt.Errorf("gradient of LogJoint: %w", err)
	}
	defer exec.Finalize()
	for k := range batches {
		out, err := exec.Call(rng.Key(Seed, "lvmtest score", uint64(k)))
		if err != nil {
			return fmt.Errorf("gradient of LogJoint: %w", err)
		}
		for i, g := range tensors.MustCopyFlatData[float64](out[0]) {
			if k == 0 {
				means = append(means, nil)
			}
			means[i] = append(means[i], g)
		}
	}
	student := distuv.StudentsT{Sigma: 1, Nu: batches - 1}
	for i, g := range means {
		mean, std := stat.MeanStdDev(g, nil)
		if math.Abs(mean) < 1e-6 {
			continue // rounding, also of parameters that have no influence
		}
		if p := 2 * student.Survival(math.Abs(mean)/(std/math.Sqrt(batches))); !(p >= FalseAlarm/float64(len(means))) {
			return fmt.Errorf("Sample does not draw from LogJoint: the expected gradient by %s is %.3g ± %.2g instead of 0",
				names[i], mean, std/math.Sqrt(batches))
		}
	}
	return nil
}

// maximum: Maximize does not lower the log-joint of its batch, and nothing near it is better.
func (c *checker) maximum() error {
	m, ok := c.m.(lvm.Maximizer)
	if !ok {
		return nil
	}
	pairs, err := lvm.Draw(c.b, c.theta(), c.m, rng.Key(Seed, "lvmtest maximum"), 500)
	if err != nil {
		return err
	}
	total := func(move float64) (float64, error) { // at the maximum, moved away from it by random steps of a size
		sum, err := c.eval(pairs, func(x gfn.Batch, z gfn.State) *Node {
			vars, values := m.Maximize(c.theta(), x, z)
			r := rng.In(Const(x[0].Graph(), rng.Key(Seed, "lvmtest move", math.Float64bits(math.Abs(move)))))
			for i, v := range vars {
				shape := values[i].Shape()
				v.SetNodeValue(Add(values[i], MulScalar(r.Normal(shape.DType, shape.Dimensions...), move)))
			}
			return ReduceAllMean(c.m.LogJoint(c.theta(), x, z))
		})
		if err != nil {
			return 0, fmt.Errorf("Maximize: %w", err)
		}
		return sum[0], nil
	}
	before, err := c.eval(pairs, func(x gfn.Batch, z gfn.State) *Node { return ReduceAllMean(c.m.LogJoint(c.theta(), x, z)) })
	if err != nil {
		return err
	}
	best, err := total(0)
	if err != nil {
		return err
	}
	if best < before[0] && !near(best, before[0]) {
		return fmt.Errorf("Maximize lowers the mean log-joint from %g to %g", before[0], best)
	}
	for _, move := range []float64{0.01, -0.01, 0.03, -0.03, 0.1, -0.1, 0.3, -0.3} { // to and fro: uphill is one of the two
		moved, err := total(move)
		if err != nil {
			return err
		}
		if moved > best+1e-5*(1+math.Abs(best)) {
			return fmt.Errorf("Maximize is not at a maximum: the mean log-joint is %g there and %g nearby", best, moved)
		}
	}
	return nil
}
