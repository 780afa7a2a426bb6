// Package optim updates variables by gradients, inside a graph.
//
// It differs from GoMLX's optimisers in what training by alternation needs: several groups of variables with their own
// rule and rate in one update, one global norm over all of them, rates that are inputs of the program, so that a
// schedule never recompiles it, and updates that happen whole or, when a gradient is not finite, not at all.
package optim

import (
	"slices"
	"strings"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/internal/blame"
)

// Root is the scope below which optimisers keep their own variables.
const Root = "/optim"

// Group names the variables of one scope and how they are trained.
type Group struct {
	// Scope is a path; the group owns the trainable variables below it that no group with a longer path owns.
	Scope string
	// Rule turns gradients into steps; nil means Adam{}.
	Rule Rule
	// Rate is the learning rate over time.
	Rate Rate
}

// Optimizer updates one or more groups together.
type Optimizer struct {
	Groups []Group
	// ClipNorm scales all gradients down together when their joint Euclidean norm exceeds it; 0 means never.
	ClipNorm float64
}

// Result tells what an update did.
type Result struct {
	GradNorm *Node // the joint norm before clipping, a scalar of the loss's type
	OK       *Node // bool scalar: false if loss, gradient or a new value was not finite and nothing was changed
}

// Rates returns the learning rates of all groups at a step, to be fed to Minimize. CheckRates says what is wrong with them.
func (o Optimizer) Rates(step uint64) []float32 {
	rates := make([]float32, len(o.Groups))
	for i, g := range o.Groups {
		rates[i] = float32(g.Rate.At(step))
	}
	return rates
}

// Assignment is a new value of a variable.
type Assignment struct {
	Variable *model.Variable
	Value    *Node
	// Rows are the numbers of the rows that Value replaces, [n] integers, each of them once; nil means all of the
	// variable.
	Rows *Node
}

// put returns the variable with its value where ok holds, and as it is elsewhere.
func (a Assignment) put(ok *Node) *Node {
	old := a.Variable.NodeValue(ok)
	if a.Rows == nil {
		return Where(ok, a.Value, old)
	}
	// The rows that stay are their own source, and others come from the value: one gather, for any dtype.
	g, n := ok.Graph(), old.Shape().Dim(0)
	rows := ConvertDType(a.Rows, dtypes.Int32)
	number := OnePlus(Iota(g, rows.Shape(), 0))
	number = Where(ok, number, ZerosLike(number))
	source := Scatter(InsertAxes(rows, 1), number, shapes.Make(dtypes.Int32, n), false, true) // [N], 0 for rows that stay
	source = Where(IsZero(source), Iota(g, source.Shape(), 0), AddScalar(source, n-1))
	return Gather(Concatenate([]*Node{old, a.Value}, 0), InsertAxes(source, 1))
}

// Minimize builds the update that follows the gradient of loss, a scalar, with respect to the variables of all groups
// that the graph uses. Rates is [len(Groups)] float32, from Rates. A variable that the graph uses but the loss does not
// has gradient 0: it moves as long as its rule remembers others. Other assignments are part of the update.
func (o Optimizer) Minimize(store *model.Store, loss, rates *Node, with ...Assignment) Result {
	o.check(loss, rates)
	g := loss.Graph()
	var owned []owner
	for v := range store.RootScope().IterVariables() {
		if i := o.group(v.Path()); i >= 0 && v.Trainable && v.InUseByGraph(g) {
			owned = append(owned, owner{v, i})
		}
	}
	if len(owned) == 0 {
		blame.Panicf("optim: the loss uses no trainable variable below %v", o.scopes())
	}
	slices.SortFunc(owned, func(a, b owner) int { return strings.Compare(a.Path(), b.Path()) })
	values := make([]*Node, len(owned))
	for i, v := range owned {
		values[i] = v.NodeValue(g)
	}
	grads := Gradient(loss, values...)
	norm := globalNorm(grads, loss.DType())
	if o.ClipNorm > 0 {
		scale := Div(Scalar(g, norm.DType(), o.ClipNorm), MaxScalar(norm, o.ClipNorm)) // 1 below the limit
		for i := range grads {
			grads[i] = Mul(grads[i], ConvertDType(scale, grads[i].DType()))
		}
	}

	up := update(with)
	counts := make(map[int]*Node)
	for i, v := range owned {
		count, ok := counts[v.group]
		if !ok {
			n := o.Groups[v.group].count(store)
			count = OnePlus(n.NodeValue(g))
			counts[v.group] = count
			up.set(n, count)
		}
		dtype := grads[i].DType()
		at := Point{Value: values[i], Grad: grads[i], Count: ConvertDType(count, dtype)}
		delta := o.Groups[v.group].move(store, v.Variable, at, up.set)
		rate := ConvertDType(Squeeze(SliceAxis(rates, 0, AxisElem(v.group)), 0), dtype)
		up.set(v.Variable, Sub(values[i], Mul(rate, delta)))
	}
	return Result{GradNorm: norm, OK: up.commit(LogicalAnd(IsFinite(loss), IsFinite(norm)))}
}

// Declare makes what the optimiser keeps, for all variables of a store that its groups own, before a graph uses them.
func (o Optimizer) Declare(store *model.Store) {
	for v := range store.IterVariables() {
		if i := o.group(v.Path()); i >= 0 && v.Trainable {
			o.Groups[i].count(store)
			o.Groups[i].kept(store, v)
		}
	}
}

// count is the number of updates so far.
func (g Group) count(store *model.Store) *model.Variable {
	return store.Scope(Root+g.Scope).VariableWithValue("step", float32(0)).SetTrainable(false)
}

// owner is a variable with the index of the group that trains it.
type owner struct {
	*model.Variable
	group int
}

// group returns the index of the group that owns a variable, or -1.
func (o Optimizer) group(path string) int {
	best, length := -1, -1
	for i, g := range o.Groups {
		if strings.HasPrefix(path, strings.TrimSuffix(g.Scope, "/")+"/") && len(g.Scope) > length {
			best, length = i, len(g.Scope)
		}
	}
	return best
}

func (o Optimizer) scopes() []string {
	var s []string
	for _, g := range o.Groups {
		s = append(s, g.Scope)
	}
	return s
}

func globalNorm(grads []*Node, dtype dtypes.DType) *Node {
	sum := ScalarZero(grads[0].Graph(), dtype)
	for _, gr := range grads {
		sum = Add(sum, ConvertDType(ReduceAllSum(Square(gr)), dtype))
	}
	return Sqrt(sum)
}

// update collects new values and applies them together or not at all.
type update []Assignment

func (u *update) set(v *model.Variable, value *Node) {
	*u = append(*u, Assignment{Variable: v, Value: value})
}

// commit sets the variables if ok holds and every new value is finite, and returns whether that is so.
func (u update) commit(ok *Node) *Node {
	u.check()
	for _, a := range u {
		if a.Value.DType().IsFloat() {
			ok = LogicalAnd(ok, IsFinite(ReduceAllMax(Abs(a.Value))))
		}
	}
	for _, a := range u {
		a.Variable.SetNodeValue(a.put(ok))
	}
	return ok
}

// Assign sets variables to values computed in a graph under the same rule as Minimize: all of them if all are finite,
// else none. It is the update of closed-form M-steps. Other assignments are part of it.
func Assign(vars []*model.Variable, values []*Node, with ...Assignment) (ok *Node) {
	if len(vars) == 0 || len(vars) != len(values) {
		blame.Panicf("optim: %d variables are to have %d new values", len(vars), len(values))
	}
	up := update(slices.Clone(with))
	for i, v := range vars {
		up.set(v, values[i])
	}
	return up.commit(Const(values[0].Graph(), true))
}
