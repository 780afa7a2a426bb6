package lvmtest

import (
	"fmt"
	"math"
	"slices"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/support/xslices"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/lvm"
)

const (
	// ensemble is the number of pairs that Maximize gets.
	ensemble = 64
	// rivals is the number of batches whose maxima are tried against that of the first.
	rivals = 8
)

// maximum checks that no values are better than those of Maximize: neither the present ones, nor those for other batches,
// nor any on the lines from these to it and a little beyond. On such lines linear constraints hold, like that of
// probabilities to sum to one; points with no finite log-joint are out of the domain.
func (c *checker) maximum() {
	m, ok := c.model.(lvm.Maximizer)
	if !ok {
		return
	}
	batch := make([]lvm.Pairs, 1+rivals)
	for i := range batch {
		if batch[i], ok = c.draw(ensemble, uint64(10+i)); !ok {
			return
		}
	}
	width := len(batch[0].X)
	var vs []*model.Variable
	best := c.program(func(in []*Node) []*Node {
		var values []*Node
		vs, values = m.Maximize(c.scope(), in[:width], in[width:])
		if why := mismatch(vs, values); why != "" {
			c.broke(lawMaximum, "%s", why)
			return []*Node{in[0]}
		}
		return values
	})
	defer best.close()
	mean := c.program(func(in []*Node) []*Node {
		return []*Node{wide(ReduceAllMean(m.LogJoint(c.scope(), gfn.Batch(in[:width]), gfn.State(in[width:]))))}
	})
	defer mean.close()

	var points [][]*tensors.Tensor // values of the variables: the first one's maximum, the present ones, the rivals
	for i := range batch {
		out, ok := best.call(both(batch[i])...)
		if _, bad := c.example[lawMaximum]; !ok || bad {
			return
		}
		points = append(points, out)
		if i == 0 {
			points = append(points, present(vs))
		}
	}
	defer c.set(vs, points[1])
	at := func(values []*tensors.Tensor) (float64, bool) {
		c.set(vs, values)
		out, ok := mean.call(both(batch[0])...)
		if !ok {
			return 0, false
		}
		return numbers(out[0])[0], true
	}
	top, ok := at(points[0])
	if !ok {
		return
	}
	if math.IsNaN(top) || math.IsInf(top, 0) {
		c.broke(lawMaximum, "there the mean is %g", top)
		return
	}
	for i, rival := range points[1:] {
		for _, way := range []float64{1, 0.3, 0.1, -0.1, -0.3} {
			l, ok := at(c.between(points[0], rival, way))
			if !ok {
				return
			}
			if l > top && !math.IsInf(l, 1) && !closer(l, top, 1e-5) {
				where := "those for another batch"
				if i == 0 {
					where = "the present ones"
				}
				c.broke(lawMaximum, "there the mean is %g, but %g at %g of the way to %s", top, l, way, where)
			}
		}
	}
}

// mismatch says what is wrong with the results of Maximize; "" if nothing is.
func mismatch(vs []*model.Variable, values []*Node) string {
	if len(vs) == 0 || len(vs) != len(values) {
		return fmt.Sprintf("it returned %d variables and %d values", len(vs), len(values))
	}
	for i, v := range vs {
		if !v.Shape().Equal(values[i].Shape()) {
			return fmt.Sprintf("the value of %s is %s, not %s", v.Path(), values[i].Shape(), v.Shape())
		}
	}
	return ""
}

// present copies the values of variables.
func present(vs []*model.Variable) []*tensors.Tensor {
	return xslices.Map(vs, func(v *model.Variable) *tensors.Tensor { return clone(v.MustValue()) })
}

// set gives variables copies of values.
func (c *checker) set(vs []*model.Variable, values []*tensors.Tensor) {
	for i, v := range vs {
		if err := v.SetValue(clone(values[i])); err != nil {
			c.broke(lawRun, "set variable %s: %v", v.Path(), err)
		}
	}
}

// between returns the point a fraction of the way from a to b.
func (c *checker) between(a, b []*tensors.Tensor, way float64) []*tensors.Tensor {
	out, err := CallOnceN(c.backend, func(in []*Node) []*Node {
		mix := make([]*Node, len(a))
		for i := range mix {
			mix[i] = Add(MulScalar(in[i], 1-way), MulScalar(in[len(a)+i], way))
		}
		return mix
	}, slices.Concat(a, b))
	if err != nil {
		c.broke(lawRun, "%v", err)
		return a
	}
	return out
}

func clone(t *tensors.Tensor) *tensors.Tensor {
	out, err := t.LocalClone()
	if err != nil {
		panic(err)
	}
	return out
}
