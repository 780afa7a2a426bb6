package modellaws

import (
	"fmt"
	"math"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/support/xslices"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/internal/laws"
	"github.com/gfnem/gfnem/internal/program"
	"github.com/gfnem/gfnem/rng"
)

// overlooked is the largest expected gradient that is never reported. A variable whose effect is too rare to be seen
// among the samples, the logit of a probability of 0.001 say, has a gradient of this size and no variance.
const overlooked = 2e-3

// sample is log p(x,z) of sampled pairs, the gradient of its mean with respect to all variables, which may be left out,
// what terminal says of the latents, and the pairs.
type sample[T any] struct {
	LogP, Grad, Ended, Reached T
	X, Z                       []T
}

// samples checks what Sample draws, and returns whether the other laws can be checked.
func (c *Checker) samples() bool {
	var names []string // of the entries of the gradient
	rows := c.size()
	p := program.New[*tensors.Tensor, sample[*tensors.Tensor]](c.Set, "sample", func(key *Node) (out sample[*Node]) {
		x, z := c.Model.Sample(c.scope(), rng.In(key), rows)
		c.shaped(x, z)
		out.X, out.Z = x, z
		x, z = xslices.Map(x, StopGradient), xslices.Map(z, StopGradient) // samples are data
		logP := c.Model.LogJoint(c.scope(), x, z)
		if s := logP.Shape(); s.Rank() != 1 || s.Dim(0) != rows || !s.DType.IsFloat() {
			panic(laws.Break(Shape, "LogJoint of %d pairs is %s", rows, s))
		}
		out.LogP = wide(logP)
		out.Ended, out.Reached = c.terminal(x, z)
		vs := c.variables(logP.Graph())
		for _, v := range vs {
			for k := range v.Shape().Size() {
				names = append(names, fmt.Sprintf("%s[%d]", v.Path(), k))
			}
		}
		if len(vs) > 0 {
			values := xslices.Map(vs, func(v *model.Variable) *Node { return v.NodeValue(logP) })
			grads := Gradient(ReduceAllMean(logP), values...)
			out.Grad = Concatenate(xslices.Map(grads, func(g *Node) *Node { return wide(Reshape(g, -1)) }), 0)
		}
		return out
	})
	var logP, grads [][]float64 // by batch
	var seen frequencies
	for batch := 0; c.more(batch, mostBatches, samplesEnd); batch++ {
		out, ok := call(c, p, rng.Key(c.Seed, "lvmtest", uint64(batch)))
		if !ok {
			return false
		}
		logP = append(logP, numbers(out.LogP))
		if out.Grad != nil {
			grads = append(grads, numbers(out.Grad))
		}
		ended, reached := tensors.MustCopyFlatData[bool](out.Ended), tensors.MustCopyFlatData[bool](out.Reached)
		for row, l := range logP[batch] {
			if math.IsNaN(l) || math.IsInf(l, 0) {
				c.Broke(Finite, "it is %g for row %d of batch %d", l, row, batch)
			}
			if !ended[row] {
				c.Broke(Terminal, "row %d of batch %d can be built further", row, batch)
			} else if !reached[row] {
				c.Broke(Terminal, "row %d of batch %d cannot be built from the initial state", row, batch)
			}
		}
		if len(c.Found) > 0 {
			return false
		}
		seen.add(uint64(batch), out.X, out.Z, logP[batch])
	}
	n := len(logP) * rows
	c.note(Shape, "%d pairs", n)
	c.note(Finite, "%d pairs", n)
	c.note(Terminal, "%d pairs", n)
	c.score(names, grads)
	c.independent(logP)
	c.frequency(seen)
	return true
}

// shaped checks that there are as many rows as asked for, and that latents look like states.
func (c *Checker) shaped(x gfn.Batch, z gfn.State) {
	rows := c.size()
	for _, t := range program.Nodes(pairs{x, z}) {
		if t.Rank() == 0 || t.Shape().Dim(0) != rows {
			panic(laws.Break(Shape, "%d rows were asked for, and a tensor is %s", rows, t.Shape()))
		}
	}
	state := c.Env.Initial(x)
	if len(z) != len(state) {
		panic(laws.Break(Terminal, "a latent has %d tensors, and a state %d", len(z), len(state)))
	}
	for i := range z {
		if a, b := z[i].Shape(), state[i].Shape(); !a.Equal(b) {
			panic(laws.Break(Terminal, "tensor %d of the latents is %s, and of states %s", i, a, b))
		}
	}
}

// score tests that every entry of the gradient has expectation zero, from its means over batches: Student's t with
// Bonferroni's correction.
func (c *Checker) score(names []string, grads [][]float64) {
	batches := len(grads)
	if len(names) == 0 {
		c.open(Score, "LogJoint has no variables")
		return
	}
	if batches < leastBatches {
		c.open(Score, "%d batches of %d pairs in this time are too few", batches, c.size())
		return
	}
	student := distuv.StudentsT{Sigma: 1, Nu: float64(batches - 1)}
	least, at, mean, deviation := math.Inf(1), 0, 0.0, 0.0
	for k := range names {
		m, sd := stat.MeanStdDev(xslices.Map(grads, func(batch []float64) float64 { return batch[k] }), nil)
		stderr := sd / math.Sqrt(float64(batches))
		value := 2 * student.Survival(max(0, math.Abs(m)-overlooked)/stderr)
		if math.Abs(m) <= overlooked { // whatever the standard error is
			value = 1
		}
		if !(value >= least) { // a NaN is worst
			least, at, mean, deviation = value, k, m, stderr
		}
	}
	value := least * float64(len(names))
	c.tested(Score, value, "of %d variables, that with respect to %s is farthest off, %.2g with standard error %.2g, p = %.2g",
		len(names), names[at], mean, deviation, min(value, 1))
	if !(value >= c.level()) {
		c.Broke(Score, "with respect to %s it is %.4g, with standard error %.2g (p = %.2g of %d variables)",
			names[at], mean, deviation, least, len(names))
	}
}

// independent tests that batches differ by as much as their rows make them: one-way analysis of variance of
// log p(x,z).
func (c *Checker) independent(logP [][]float64) {
	batches, rows := len(logP), c.size()
	if batches < leastBatches {
		c.open(Independent, "%d batches of %d pairs in this time are too few", batches, rows)
		return
	}
	means := make([]float64, batches)
	within := 0.0
	for i, l := range logP {
		m, v := stat.MeanVariance(l, nil)
		means[i] = m
		within += v / float64(batches)
	}
	between := float64(rows) * stat.Variance(means, nil)
	if between <= 1e-9*(1+math.Abs(means[0])) {
		c.open(Independent, "log p(x,z) is a constant, up to rounding")
		return
	}
	f := distuv.F{D1: float64(batches - 1), D2: float64(batches * (rows - 1))}
	ratio := between / within
	value := 2 * min(f.CDF(ratio), f.Survival(ratio))
	c.tested(Independent, value, "the mean of log p(x,z) over %d rows varies %.3g times as much as it should, p = %.2g",
		rows, ratio, min(value, 1))
	if !(value >= c.level()) {
		c.Broke(Independent, "the mean of log p(x,z) over %d rows varies %.3g times as much as it should (p = %.2g)",
			rows, ratio, value)
	}
}
