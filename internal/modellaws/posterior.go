package modellaws

import (
	"fmt"
	"math"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/support/xslices"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/internal/program"
	take "github.com/gfnem/gfnem/internal/rows"
	"github.com/gfnem/gfnem/lvm"
	"github.com/gfnem/gfnem/rng"
)

const (
	// mostLatents and mostStates are how many are listed at most.
	mostLatents, mostStates = 1024, 4096
	// cells is about how many pairs of an observation and a latent are scored by LogJoint, and tabled by LogJointTable; at
	// once is how many of them at a time.
	cells, tabled, atOnce = 1 << 19, 1 << 22, 1 << 18
	// impossible is log p(x,z) of what is, beside any other.
	impossible = -1e300
	// pilots is the number of observations whose latents are listed.
	pilots = 8
)

// tilts are the exponents of Chernoff's bounds: of any of them the bound is true.
var tilts = []float64{0.02, 0.04, 0.1, 0.3, -0.02, -0.04, -0.1, -0.3}

// listed is the list of all latents that are built from the state Start, and how many pairs are drawn to look for those
// whose latents they are.
type listed[T any] struct {
	Draw     int
	Key      T
	Start, Z []T
}

// excess is by how much log p(x,z) exceeds its expectation under p(z|x), summed over sampled pairs, and for each tilt the
// logarithm of the expectation of exp(tilt * excess), given the observations.
type excess[T, N, C any] struct {
	Sum             N
	LogMoments      T
	Rows, Undefined C
}

// posterior compares log p(x,z) of sampled pairs with its expectation over z under p(z|x), by enumeration. A LogJoint that
// is c times the true one, with c above 1, thinks itself surer of z than samples are.
//
// Given the observations, the sum of all excesses has a known moment generating function, so that Chernoff's bound of its
// tails is true for any number of samples: P(sum >= t) <= E exp(tilt * sum) / exp(tilt * t).
func (c *Checker) posterior() {
	lists, err := c.lists()
	if err != nil {
		c.open(Posterior, "%v", err)
		return
	}
	p := program.New[listed[*tensors.Tensor], excess[*tensors.Tensor, float64, int]](c.Set, "posterior", c.excess)
	most := cells
	if _, ok := c.Model.(lvm.Tabler); ok {
		most = tabled
	}
	sum, pairs, step := 0.0, 0, uint64(0)
	var logMoments []float64
	for _, in := range lists {
		k := in.Z[0].Shape().Dim(0)
		in.Draw = min(c.size(), atOnce/k)
		n := min(mostBatches, max(1, most/len(lists)/(k*in.Draw)))
		for batch := 0; c.more(batch, n, posteriorEnd); batch++ {
			in.Key = rng.Key(c.Seed, "lvmtest posterior", step)
			out, ok := call(c, p, in)
			if !ok {
				return
			}
			if out.Undefined > 0 {
				c.Broke(Number, "it is NaN or +Inf for %d of the listed latents of %d observations", out.Undefined, out.Rows)
				return
			}
			sum, pairs, step = sum+out.Sum, pairs+out.Rows, step+1
			logMoments = plus(logMoments, out.LogMoments)
		}
	}
	value := 1.0
	for i, tilt := range tilts {
		value = min(value, 2*math.Exp(logMoments[i]-tilt*sum)) // of both tails
	}
	mean := sum / float64(pairs)
	c.tested(Posterior, value, "log p(z|x) of %d pairs is %+.4f off its expectation, p <= %.2g", pairs, mean, value)
	if !(value >= c.level()) {
		c.Broke(Posterior, "the mean of log p(z|x) over %d pairs is %+.4g off its expectation under p(z|x) (p = %.2g)",
			pairs, mean, value)
	}
}

// lists returns the latents of some observations, by initial state.
func (c *Checker) lists() (all []listed[*tensors.Tensor], err error) {
	pilot, err := lvm.Draw(c.Backend, c.scope(), c.Model, rng.Key(c.Seed, "lvmtest pilots"), pilots)
	if err != nil {
		return nil, err
	}
	dags, _, err := gfn.EnumerateEach(c.Backend, c.Env, pilot.X, mostStates)
	for _, d := range dags {
		if n := len(d.Objects); n > mostLatents {
			return nil, fmt.Errorf("there are %d latents, more than %d", n, mostLatents)
		}
		all = append(all, listed[*tensors.Tensor]{Start: take.Take(d.States(), []int{0}), Z: d.ObjectStates()})
	}
	return all, err
}

func (c *Checker) excess(in listed[*Node]) (out excess[*Node, *Node, *Node]) {
	x, z := c.Model.Sample(c.scope(), rng.In(in.Key), in.Draw)
	own := gfn.Same(gfn.Initial(c.Env, x), gfn.State(in.Start).Repeat(in.Draw)) // [B]
	drawn := wide(c.Model.LogJoint(c.scope(), x, z))
	all := wide(lvm.Table(c.Model, c.scope(), x, in.Z)) // [B,K]
	dims := all.Shape().Dimensions
	rows := BroadcastToDims(InsertAxes(own, 1), dims...)

	possible := LogicalAnd(IsFinite(all), rows)
	zero := ZerosLike(all)
	logP := LogSoftmax(Where(possible, all, AddScalar(zero, impossible)))
	p := Where(possible, Exp(logP), zero)
	mean := ReduceAndKeep(Mul(p, Where(possible, all, zero)), ReduceSum, 1)         // [B,1]
	over := Where(possible, Sub(all, BroadcastToDims(mean, dims...)), zero)         // [B,K]
	sum := func(v *Node) *Node { return ReduceAllSum(Where(own, v, ZerosLike(v))) } // of [B]
	moment := func(tilt float64) *Node {                                            // []
		tilted := Where(possible, Add(logP, MulScalar(over, tilt)), MulScalar(OnesLike(all), impossible))
		return sum(Log(ReduceSum(Exp(tilted), 1)))
	}
	out.Sum = sum(Sub(drawn, Squeeze(mean, 1)))
	out.LogMoments = Stack(xslices.Map(tilts, moment), 0)
	out.Rows, out.Undefined = count(own), count(LogicalAnd(undefined(all), rows))
	return out
}
