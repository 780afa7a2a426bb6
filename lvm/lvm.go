// Package lvm says what a latent variable model p(x,z) answers.
package lvm

import (
	"fmt"

	"github.com/gomlx/compute"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/internal/blame"
	"github.com/gfnem/gfnem/internal/program"
	"github.com/gfnem/gfnem/rng"
)

// Model is a latent variable model p(z) p(x|z) whose latents are the terminal states of an environment.
//
// Laws, checked by lvmtest.Run, and by a learner's Check on its own data:
//   - Sample draws from the distribution whose logarithm LogJoint is, constants included: a probability where x is
//     counted, a density where it is measured. So the expectation of the gradient of LogJoint over samples is zero; moves
//     of z that keep p(z|x) keep the distribution of samples; and samples are as probable among all latents of their
//     observation, and pairs as frequent, as LogJoint says;
//   - LogJoint of an observation and any latent of it is a number, or -Inf if the latent is impossible;
//   - rows are independent of each other;
//   - sampled latents are terminal states.
//
// Variables live below scope and are looked up with scope.At, since one graph may ask several times. Answers of other
// shapes than those stated are errors of the program that is built; nothing is broadcast.
type Model interface {
	// LogJoint returns log p(x,z), [B], which can be differentiated with respect to the model's variables.
	LogJoint(scope *model.Scope, x gfn.Batch, z gfn.State) *Node
	// Sample draws n pairs (x,z) by ancestral sampling.
	Sample(scope *model.Scope, r *rng.Stream, n int) (gfn.Batch, gfn.State)
}

// Maximizer is implemented by models whose M-step has a closed form.
type Maximizer interface {
	Model
	// Maximize returns the model's variables and the values [same order] that maximise the sum of log p(x,z) over the
	// batch.
	Maximize(scope *model.Scope, x gfn.Batch, z gfn.State) ([]*model.Variable, []*Node)
}

// Exponential is implemented by models for which M-steps need no more of pairs than the means of some numbers, their
// sufficient statistics, as in exponential families: how often each word occurs, say. Means of several batches can be
// averaged, which Maximizer cannot.
//
// Laws, checked by lvmtest.Run:
//   - statistics are means over the rows of a batch: those of two batches of equal size, taken together, are halfway
//     between;
//   - MaximizeMeans of the statistics of a batch is where its LogJoint is greatest.
type Exponential interface {
	Model
	// Statistics returns the means of the sufficient statistics over the batch: floats of any shapes that do not depend
	// on how many rows there are.
	Statistics(scope *model.Scope, x gfn.Batch, z gfn.State) []*Node
	// MaximizeMeans returns the model's variables and the values [same order] that maximise the mean of log p(x,z) over
	// pairs whose statistics have the given means.
	MaximizeMeans(scope *model.Scope, means []*Node) ([]*model.Variable, []*Node)
}

// Tabler is implemented by models that can score every observation with every latent of a list faster than pair by pair.
type Tabler interface {
	Model
	// LogJointTable returns log p(x_b, z_k), [B,K].
	LogJointTable(scope *model.Scope, x gfn.Batch, z gfn.State) *Node
}

// Table returns log p(x_b, z_k), [B,K], for all observations x and all latents of the list z.
func Table(m Model, scope *model.Scope, x gfn.Batch, z gfn.State) *Node {
	b, k := x.Size(), z[0].Shape().Dim(0)
	if t, ok := m.(Tabler); ok {
		return blame.Method(m, "LogJointTable").Floats(t.LogJointTable(scope, x, z), b, k)
	}
	return Reshape(blame.Method(m, "LogJoint").Floats(m.LogJoint(scope, x.Repeat(k), z.Tile(b)), b*k), b, k)
}

// Pairs are observations with their latents, outside of any graph. Row i of X belongs to row i of Z.
type Pairs struct{ X, Z []*tensors.Tensor }

// pairs are the same in a graph.
type pairs struct {
	X gfn.Batch
	Z gfn.State
}

// Draw samples n pairs from a model whose variables are below scope, with the random numbers of a key (see rng.Key).
func Draw(b compute.Backend, scope *model.Scope, m Model, key *tensors.Tensor, n int) (Pairs, error) {
	name := fmt.Sprintf("draw from %T", m)
	return program.Once[*tensors.Tensor, Pairs](b, scope.Store(), name, func(key *Node) (p pairs) {
		p.X, p.Z = m.Sample(scope, rng.In(key), n)
		f := blame.Method(m, "Sample")
		blame.Rows(f.Part("x"), p.X, n)
		blame.Rows(f.Part("z"), p.Z, n)
		return p
	}, key)
}
