// Package modellaws checks the laws of lvm.Model, lvm.Maximizer, lvm.Exponential and lvm.Tabler, for the suite lvmtest
// and for learners.
package modellaws

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/internal/laws"
	"github.com/gfnem/gfnem/internal/program"
	"github.com/gfnem/gfnem/lvm"
)

// FalseAlarm bounds the probability, over seeds, that a model which keeps the laws is found to break one.
const FalseAlarm = 1e-5

// statistical is the number of laws that are tested on samples, among which the false alarms are divided.
const statistical = 5

const (
	// mostBatches of size pairs are sampled for each statistical law by default.
	mostBatches, size = 64, 1024
	// leastBatches is the number that tests of means over batches need.
	leastBatches = 16
	// few is the number of pairs that are looked at one by one.
	few = 12
)

// The laws, as they are reported.
const (
	Run         = "methods do not fail"
	Shape       = "Sample draws n rows, and LogJoint returns one number for each"
	Finite      = "LogJoint is finite on samples"
	Terminal    = "sampled latents are terminal states of the environment"
	Score       = "the expectation of the gradient of LogJoint over samples is zero"
	Independent = "sampled rows are independent of each other"
	Number      = "LogJoint of an observation and any of its latents is a number or -Inf"
	Moves       = "moves that keep the posterior of LogJoint keep the distribution of sampled latents"
	Posterior   = "sampled latents are as probable among all of their observation as LogJoint says"
	Frequency   = "sampled pairs that occur again are as frequent as LogJoint says"
	Rows        = "LogJoint of a row does not depend on the other rows"
	Table       = "LogJointTable is LogJoint of every pair"
	Maximum     = "Maximize returns the values that maximise LogJoint over the batch"
	Means       = "Statistics are means over the rows of a batch"

	MaximumMeans = "MaximizeMeans of the statistics of a batch returns the values that maximise LogJoint over it"
)

// Checker collects what it finds about a model, at the values that the variables below Theta have or else start with.
type Checker struct {
	*program.Set
	laws.Found
	Model lvm.Model
	Env   gfn.Env
	Theta string  // the scope of the model's variables
	Seed  uint64  // of all samples
	Alarm float64 // the rate of false alarms; 0 means FalseAlarm
	Size  int     // of a batch of samples, of which there are up to 64; 0 means 1024
	// Time is about how long Check takes at most, by fewer batches; 0 means no limit.
	Time time.Duration
	// Seen says what was checked, and what could not be.
	Seen []Seen

	begin time.Time
}

// Seen is what was seen of a law.
type Seen struct {
	Law    string
	Tested bool
	// P is how probable what was seen, or less, is at most if the law is kept; NaN of laws that are not statistical.
	P    float64
	Text string
}

// String says it in one line.
func (s Seen) String() string {
	if !s.Tested {
		return s.Law + ": not tested: " + s.Text
	}
	return s.Law + ": " + s.Text
}

// Check checks all laws that need no other observations than those that are sampled, but those of closed forms, and
// returns whether these can be checked. It changes no variable.
func (c *Checker) Check() bool {
	c.begin = time.Now()
	if !c.samples() {
		return false
	}
	c.rowByRow()
	c.table()
	if len(c.Found) == 0 { // what follows presumes it
		c.posterior()
		c.moves()
	}
	return true
}

// The fractions of the time at which parts end.
const (
	samplesEnd, posteriorEnd, movesEnd = 0.4, 0.6, 1
)

// level is the rate of false alarms of one law.
func (c *Checker) level() float64 {
	if c.Alarm > 0 {
		return c.Alarm / statistical
	}
	return FalseAlarm / statistical
}

// note says what was seen of a law that is checked without chance, tested of one with, and open why one is not tested.
func (c *Checker) note(law, format string, args ...any) {
	c.Seen = append(c.Seen, Seen{law, true, math.NaN(), fmt.Sprintf(format, args...)})
}

func (c *Checker) tested(law string, p float64, format string, args ...any) {
	c.Seen = append(c.Seen, Seen{law, true, min(p, 1), fmt.Sprintf(format, args...)})
}

func (c *Checker) open(law, format string, args ...any) {
	c.Seen = append(c.Seen, Seen{law, false, math.NaN(), fmt.Sprintf(format, args...)})
}

// size is that of a batch.
func (c *Checker) size() int {
	if c.Size > 0 {
		return c.Size
	}
	return size
}

// more says whether a law whose share of the time ends at a fraction of it gets another batch.
func (c *Checker) more(batch, most int, fraction float64) bool {
	late := c.Time > 0 && time.Since(c.begin) > time.Duration(fraction*float64(c.Time))
	return batch < most && (batch == 0 || !late)
}

// pairs are lvm.Pairs in a graph.
type pairs struct {
	X gfn.Batch
	Z gfn.State
}

// scope returns the scope of the model's variables, unvisited.
func (c *Checker) scope() *model.Scope { return c.Store.Scope(c.Theta) }

// variables lists the trainable variables that a graph uses, by path.
func (c *Checker) variables(g *Graph) []*model.Variable {
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
func call[In, Out any](c *Checker, p *program.Program[In, Out], in In) (Out, bool) {
	out, err := p.Call(in)
	if err != nil {
		c.Failed(err, Run)
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
