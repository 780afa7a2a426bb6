package em

import (
	"fmt"

	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/internal/blame"
	"github.com/gfnem/gfnem/internal/memory"
	"github.com/gfnem/gfnem/lvm"
)

// statisticsScope is that of running averages.
const statisticsScope = Kept + "/statistics"

// maximizes says whether M-steps set variables to a maximum, and follow no gradient.
func (m MStep) maximizes() bool { return m.ClosedForm || m.Stepwise != nil }

// weight is how much the statistics of an M-step count.
func (m MStep) weight(step uint64) (float32, error) {
	if m.Stepwise == nil {
		return 1, nil
	}
	w := m.Stepwise(step)
	if !(w > 0 && w <= 1) {
		return 0, blame.Field(m.Stepwise, "MStep.Stepwise").Errorf("is %g for M-step %d; it is above 0 and at most 1", w, step)
	}
	return float32(w), nil
}

// statistics are the means of the model's sufficient statistics over a batch.
func (g *graphs) statistics(x gfn.Batch, z gfn.State) []*Node {
	fresh := g.Model.(lvm.Exponential).Statistics(g.theta(), x, z)
	f := blame.Method(g.Model, "Statistics")
	if len(fresh) == 0 {
		f.Panicf("returns no tensor")
	}
	for i, s := range fresh {
		if part := f.Part(fmt.Sprintf("[%d]", i)); s == nil {
			part.Panicf("is nil")
		} else {
			part.Floats(s, s.Shape().Dimensions...)
		}
	}
	return fresh
}

// averages returns the variables that hold running averages of statistics, and their new values, of which the newest
// statistics have a weight; the first ones that are kept have all of it. The last variable says that there are some.
func (g *graphs) averages(x gfn.Batch, z gfn.State, weight *Node) (vars []*model.Variable, means []*Node) {
	fresh := g.statistics(x, z)
	begun := g.store.Scope(statisticsScope).VariableWithValue("begun", int32(0)).SetTrainable(false)
	first := IsZero(begun.NodeValue(weight.Graph()))
	weight = Where(first, OnesLike(weight), weight)
	for i, s := range fresh {
		v := g.average(i, s.Shape())
		w := ConvertDType(weight, s.DType())
		vars = append(vars, v)
		means = append(means, Add(Mul(v.NodeValue(s.Graph()), OneMinus(w)), Mul(s, w)))
	}
	return append(vars, begun), append(means, OnesLike(begun.NodeValue(weight.Graph())))
}

// average is the variable of statistic i; zero at first.
func (g *graphs) average(i int, shape shapes.Shape) *model.Variable {
	scope, name := g.store.Scope(statisticsScope), fmt.Sprintf("s%d", i)
	v := scope.GetVariable(name)
	if v == nil {
		memory.Must("averages of statistics", append([]int{2 * shape.DType.Size()}, shape.Dimensions...)...) // one is a copy
		v = scope.VariableWithValue(name, tensors.FromShape(shape))
	} else if !v.Shape().Equal(shape) {
		blame.Method(g.Model, "Statistics").Part(fmt.Sprintf("[%d]", i)).Panicf("is %s of this batch, and has been %s",
			shape, v.Shape())
	}
	return v.SetTrainable(false)
}
