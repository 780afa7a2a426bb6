package lvmtest

import (
	"fmt"
	"math"

	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/support/xslices"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/rng"
)

// overlooked is the largest expected gradient that is never reported. A variable whose effect is too rare to be seen
// among the samples, the logit of a probability of 0.001 say, has a gradient of this size and no variance.
const overlooked = 2e-3

// samples checks what Sample draws, and returns whether the other laws can be checked.
func (c *checker) samples() bool {
	var names []string // of the entries of the gradient
	p := c.program(func(in []*Node) []*Node {
		x, z := c.model.Sample(c.scope(), rng.In(in[0]), rows)
		if !c.shaped(x, z) {
			return []*Node{in[0]}
		}
		x, z = xslices.Map(x, StopGradient), xslices.Map(z, StopGradient) // samples are data
		logP := c.model.LogJoint(c.scope(), x, z)
		if s := logP.Shape(); s.Rank() != 1 || s.Dim(0) != rows || !s.DType.IsFloat() {
			c.broke(lawShape, "LogJoint of %d pairs is %s", rows, s)
			return []*Node{in[0]}
		}
		out := []*Node{wide(logP), ConvertDType(c.terminal(x, z), dtypes.Int32)}
		vs := c.variables(logP.Graph())
		values := make([]*Node, len(vs))
		for i, v := range vs {
			values[i] = v.NodeValue(logP)
			for k := range v.Shape().Size() {
				names = append(names, fmt.Sprintf("%s[%d]", v.Path(), k))
			}
		}
		if len(vs) > 0 {
			for _, grad := range Gradient(ReduceAllMean(logP), values...) {
				out = append(out, wide(Reshape(grad, -1)))
			}
		}
		return out
	})
	defer p.close()

	var logP [][]float64  // by batch
	var grads [][]float64 // by entry, then batch
	for batch := range uint64(batches) {
		out, ok := p.call(rng.Key(Seed, "lvmtest", batch))
		if !ok || len(c.order) > 0 {
			return false
		}
		logP = append(logP, numbers(out[0]))
		for row, l := range logP[batch] {
			if math.IsNaN(l) || math.IsInf(l, 0) {
				c.broke(lawFinite, "it is %g for row %d of batch %d", l, row, batch)
			}
		}
		for row, code := range ints(out[1]) {
			if code != reached {
				c.broke(lawTerminal, "row %d of batch %d %s", row, batch, reasons[code])
			}
		}
		if grads == nil {
			grads = make([][]float64, len(names))
		}
		k := 0
		for _, t := range out[2:] {
			for _, g := range numbers(t) {
				grads[k] = append(grads[k], g)
				k++
			}
		}
	}
	if _, bad := c.example[lawFinite]; !bad {
		c.score(names, grads)
		c.independent(logP)
	}
	_, bad := c.example[lawTerminal]
	return !bad
}

// shaped checks that there are as many rows as asked for, and that latents look like states.
func (c *checker) shaped(x gfn.Batch, z gfn.State) bool {
	for _, t := range append(append([]*Node{}, x...), z...) {
		if t.Rank() == 0 || t.Shape().Dim(0) != rows {
			c.broke(lawShape, "%d rows were asked for, and a tensor is %s", rows, t.Shape())
			return false
		}
	}
	state := c.env.Initial(x)
	if len(z) != len(state) {
		c.broke(lawTerminal, "a latent has %d tensors, and a state %d", len(z), len(state))
		return false
	}
	for i := range z {
		if !z[i].Shape().Equal(state[i].Shape()) {
			c.broke(lawTerminal, "tensor %d of the latents is %s, and of states %s", i, z[i].Shape(), state[i].Shape())
			return false
		}
	}
	return true
}

// score tests that every entry of the gradient has expectation zero, from its means over batches: Student's t with
// Bonferroni's correction, at half the false-alarm rate.
func (c *checker) score(names []string, grads [][]float64) {
	if len(names) == 0 {
		return
	}
	level := FalseAlarm / 2 / float64(2*len(names)) // two-sided
	limit := distuv.StudentsT{Sigma: 1, Nu: batches - 1}.Quantile(1 - level)
	worst, at, mean, deviation := 0.0, 0, 0.0, 0.0
	for k, g := range grads {
		m, sd := stat.MeanStdDev(g, nil)
		stderr := sd / math.Sqrt(batches)
		if excess := math.Abs(m) / (limit*stderr + overlooked); !(excess <= worst) { // a NaN is worst
			worst, at, mean, deviation = excess, k, m, stderr
		}
	}
	if !(worst <= 1) {
		c.broke(lawScore, "with respect to %s it is %.4g, with standard error %.2g (limit %.1f of these)",
			names[at], mean, deviation, limit)
	}
}

// independent tests that batches differ by as much as their rows make them: one-way analysis of variance of log p(x,z), at
// half the false-alarm rate.
func (c *checker) independent(logP [][]float64) {
	means := make([]float64, batches)
	within := 0.0
	for i, l := range logP {
		m, v := stat.MeanVariance(l, nil)
		means[i] = m
		within += v / batches
	}
	between := rows * stat.Variance(means, nil)
	if between <= 1e-9*(1+math.Abs(means[0])) {
		return // log p(x,z) is a constant, up to rounding
	}
	f := distuv.F{D1: batches - 1, D2: batches * (rows - 1)}
	ratio := between / within
	if low, high := f.Quantile(FalseAlarm/4), f.Quantile(1-FalseAlarm/4); !(low <= ratio && ratio <= high) {
		c.broke(lawIndependent, "the mean of log p(x,z) over %d rows varies %.3g times as much as it should (limits %.2f and %.2f)",
			rows, ratio, low, high)
	}
}
