// Package lvmtest checks that a model keeps the laws of lvm.Model, and those of lvm.Maximizer and lvm.Tabler if it is
// one:
//
//	func TestModel(t *testing.T) { lvmtest.Run(t, noisyOR{}, envs.Uniform(10, 2)) }
package lvmtest

import (
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/backend"
	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/internal/laws"
	"github.com/gfnem/gfnem/internal/program"
	"github.com/gfnem/gfnem/lvm"
	"github.com/gfnem/gfnem/nn"
)

// Seed is that of the variables and of all samples.
const Seed = 1

// FalseAlarm bounds the probability, over seeds, that a model which keeps the laws is found to break one.
const FalseAlarm = 1e-5

const (
	// batches of rows pairs are sampled for the statistical laws.
	batches, rows = 64, 256
	// few is the number of pairs that are looked at one by one.
	few = 12
)

// The laws, as they are reported.
const (
	lawRun         = "methods do not fail"
	lawShape       = "Sample draws n rows, and LogJoint returns one number for each"
	lawFinite      = "LogJoint is finite on samples"
	lawTerminal    = "sampled latents are terminal states of the environment"
	lawScore       = "the expectation of the gradient of LogJoint over samples is zero"
	lawIndependent = "sampled rows are independent of each other"
	lawRows        = "LogJoint of a row does not depend on the other rows"
	lawTable       = "LogJointTable is LogJoint of every pair"
	lawMaximum     = "Maximize returns the values that maximise LogJoint over the batch"
)

// Run fails t for every law that the model breaks at the values that its variables start with in nn.NewStore(Seed). The
// latents of the model are terminal states of env.
//
// Two laws are statistical, and tested on 16,384 samples: a model that keeps them is reported with probability
// FalseAlarm. This presumes that nothing a variable governs is rarer than about one in a thousand; and an expected
// gradient below 0.002 is overlooked.
func Run(t *testing.T, m lvm.Model, env gfn.Env) {
	t.Helper()
	b, err := backend.Open("")
	if err != nil {
		t.Fatal(err)
	}
	defer b.Finalize()
	t.Logf("lvmtest: seed %d", Seed)
	for _, v := range Check(b, m, env) {
		t.Errorf("lvmtest: broken law: %s", v)
	}
}

// Check returns the laws that the model breaks, one line each, with an example.
func Check(b compute.Backend, m lvm.Model, env gfn.Env) []string {
	c := &checker{Set: program.NewSet(b, nn.NewStore(Seed)), model: m, env: env}
	defer c.Close()
	if c.samples() {
		c.rowByRow()
		c.table()
		c.maximum()
	}
	return c.Lines()
}

// checker collects what it finds.
type checker struct {
	*program.Set
	laws.Found
	model lvm.Model
	env   gfn.Env
}

// pairs are lvm.Pairs in a graph.
type pairs struct {
	X gfn.Batch
	Z gfn.State
}

// scope returns the scope of the model's variables, unvisited.
func (c *checker) scope() *model.Scope { return c.Store.Scope("/theta") }

// variables lists the trainable variables that a graph uses, by path.
func (c *checker) variables(g *Graph) []*model.Variable {
	var vs []*model.Variable
	for v := range c.scope().IterVariables() {
		if v.Trainable && v.InUseByGraph(g) {
			vs = append(vs, v)
		}
	}
	slices.SortFunc(vs, func(a, b *model.Variable) int { return strings.Compare(a.Path(), b.Path()) })
	return vs
}

// call runs a program. Its failure breaks a law.
func call[In, Out any](c *checker, p *program.Program[In, Out], in In) (Out, bool) {
	out, err := p.Call(in)
	if err != nil {
		c.Failed(err, lawRun)
	}
	return out, err == nil
}

// wide converts to float64.
func wide(n *Node) *Node { return ConvertDType(n, dtypes.Float64) }

// numbers copies a float64 tensor.
func numbers(t *tensors.Tensor) []float64 { return tensors.MustCopyFlatData[float64](t) }

// near reports whether two log-probabilities agree up to the rounding of float32 sums.
func near(a, b float64) bool { return closer(a, b, 1e-4) }

// closer reports whether two numbers agree up to a relative, and for small ones absolute, tolerance.
func closer(a, b, tolerance float64) bool {
	return a == b || max(a, b)-min(a, b) <= tolerance*(1+max(a, -a))
}
