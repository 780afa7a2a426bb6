package modellaws

import (
	"fmt"
	"math"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/support/xslices"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/internal/laws"
	"github.com/gfnem/gfnem/internal/program"
	"github.com/gfnem/gfnem/lvm"
)

const (
	// ensemble is the number of pairs that Maximize gets.
	ensemble = 64
	// others is the number of batches whose maxima are tried against that of the first.
	others = 8
)

// Maximum checks the closed forms that the model has.
func (c *Checker) Maximum() {
	if m, ok := c.Model.(lvm.Maximizer); ok {
		c.maximum(Maximum, m.Maximize)
	}
	if m, ok := c.Model.(lvm.Exponential); ok && c.means(m) {
		c.maximum(MaximumMeans, func(scope *model.Scope, x gfn.Batch, z gfn.State) ([]*model.Variable, []*Node) {
			return m.MaximizeMeans(scope, m.Statistics(scope, x, z))
		})
	}
}

// means checks that statistics are means over rows: those of a batch are halfway between those of its halves.
func (c *Checker) means(m lvm.Exponential) bool {
	all, ok := c.draw(2*few, 9)
	if !ok {
		return false
	}
	out, ok := call(c, program.New[lvm.Pairs, two[*tensors.Tensor]](c.Set, "Statistics", func(in pairs) two[*Node] {
		var of [3][]*Node
		for i, rows := range []SliceAxisSpec{AxisRange(0, few), AxisRangeToEnd(few), AxisRangeToEnd(0)} {
			half := program.Map(in, func(t *Node) *Node { return SliceAxis(t, 0, rows) })
			of[i] = m.Statistics(c.scope(), half.X, half.Z)
		}
		var together, halves []*Node
		for k, s := range of[2] {
			if a := of[0][k].Shape(); !s.DType().IsFloat() || !a.Equal(s.Shape()) {
				panic(laws.Break(Means, "statistic %d of %d pairs is %s, and of %d pairs %s", k, few, a, 2*few, s.Shape()))
			}
			together = append(together, wide(Reshape(s, -1)))
			halves = append(halves, wide(Reshape(MulScalar(Add(of[0][k], of[1][k]), 0.5), -1)))
		}
		return two[*Node]{Concatenate(together, 0), Concatenate(halves, 0)}
	}), all)
	if !ok {
		return false
	}
	together, halves := numbers(out.A), numbers(out.B)
	c.note(Means, "%d numbers of %d pairs", len(together), 2*few)
	for i := range together {
		if !near(halves[i], together[i]) {
			c.Broke(Means, "number %d is %g of %d pairs, and halfway between those of their halves is %g",
				i, together[i], 2*few, halves[i])
			return false
		}
	}
	return true
}

// maximum checks that no values are better than those that a closed form returns: neither the present ones, nor those
// for other batches, nor any on the lines from these to it and a little beyond. On such lines linear constraints hold,
// like that of probabilities to sum to one; points with no finite log-joint are out of the domain. What it sets stays
// set.
func (c *Checker) maximum(law string, closed closedForm) {
	var vs []*model.Variable
	maximize := program.New[lvm.Pairs, []*tensors.Tensor](c.Set, "Maximize", func(in pairs) (values []*Node) {
		vs, values = closed(c.scope(), in.X, in.Z)
		if why := mismatch(vs, values); why != "" {
			panic(laws.Break(law, "%s", why))
		}
		return values
	})
	best := func(i uint64) (batch lvm.Pairs, values []*tensors.Tensor, ok bool) {
		if batch, ok = c.draw(ensemble, 10+i); ok {
			values, ok = call(c, maximize, batch)
		}
		return batch, values, ok
	}
	batch, values, ok := best(0)
	if !ok {
		return
	}
	rivals := []rival{{"the present ones", xslices.Map(vs, present)}}
	for i := range uint64(others) {
		_, values, ok := best(1 + i)
		if !ok {
			return
		}
		rivals = append(rivals, rival{"those for another batch", values})
	}
	mean := program.New[line[*tensors.Tensor, float64], float64](c.Set, "LogJoint", func(in line[*Node, *Node]) *Node {
		for i, v := range vs {
			way := ConvertDType(in.Way, v.DType())
			rest := ConvertDType(OneMinus(in.Way), v.DType())
			v.SetNodeValue(Add(Mul(in.From[i], rest), Mul(in.To[i], way)))
		}
		return ReduceAllMean(c.Model.LogJoint(c.scope(), in.X, in.Z))
	})
	top, ok := call(c, mean, line[*tensors.Tensor, float64]{batch.X, batch.Z, values, values, 0})
	if !ok {
		return
	}
	if math.IsNaN(top) || math.IsInf(top, 0) {
		c.Broke(law, "there the mean is %g", top)
		return
	}
	for _, r := range rivals {
		for _, way := range []float64{1, 0.3, 0.1, -0.1, -0.3} {
			l, ok := call(c, mean, line[*tensors.Tensor, float64]{batch.X, batch.Z, values, r.values, way})
			if !ok {
				return
			}
			if l > top && !math.IsInf(l, 1) && !closer(l, top, 1e-5) {
				c.Broke(law, "there the mean is %g, but %g at %g of the way to %s", top, l, way, r.name)
			}
		}
	}
	c.note(law, "%d pairs, and %d other values with the lines to them", ensemble, len(rivals))
}

// closedForm returns variables and where they maximise LogJoint over a batch.
type closedForm func(scope *model.Scope, x gfn.Batch, z gfn.State) ([]*model.Variable, []*Node)

// rival is other values of the variables.
type rival struct {
	name   string
	values []*tensors.Tensor
}

// line is where LogJoint of a batch is asked for: at a fraction of the way from some values of the variables to others.
type line[T, K any] struct {
	X, Z, From, To []T
	Way            K
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

// present copies the value of a variable.
func present(v *model.Variable) *tensors.Tensor {
	out, err := v.MustValue().LocalClone()
	if err != nil {
		panic(err)
	}
	return out
}
