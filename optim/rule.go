package optim

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/internal/blame"
	"github.com/gfnem/gfnem/internal/memory"
)

// Rule says how a variable moves along its gradient. Adam and SGD are rules; so is any type with these methods.
type Rule interface {
	// Keeps names the tensors that the rule remembers of a variable. They have its shape and type, and are zero at first.
	Keeps() []string
	// Step returns what is subtracted from the variable at a learning rate of 1, and the new values of what is kept, by
	// the names of Keeps.
	Step(at Point) (delta *Node, kept map[string]*Node)
}

// Point is what a rule sees of a variable. All but Count have its shape.
type Point struct {
	Value, Grad *Node            // Grad is that after clipping
	Kept        map[string]*Node // by the names of Keeps
	Count       *Node            // the number of updates of the group with this one, a scalar
}

func (g Group) rule() Rule {
	if g.Rule == nil {
		return Adam{}
	}
	return g.Rule
}

// checkRule returns what is wrong with the names of what a rule keeps.
func checkRule(r Rule) error {
	names := r.Keeps()
	for i, name := range names {
		if name == "" || strings.Contains(name, "/") || slices.Contains(names[:i], name) {
			return blame.Method(r, "Keeps").Errorf("is %q: names are not empty, have no /, and differ", names)
		}
	}
	return nil
}

// kept looks up what the rule keeps of a variable, or makes it, at zero; in the order of its names.
func (g Group) kept(store *model.Store, of *model.Variable) (vars []*model.Variable) {
	scope, shape := store.Scope(Root+of.Path()), of.Shape()
	for _, name := range g.rule().Keeps() {
		v := scope.GetVariable(name)
		if v == nil {
			memory.Must("moments of an optimiser", append([]int{2 * shape.DType.Size()}, shape.Dimensions...)...) // one is a copy
			v = scope.VariableWithValue(name, tensors.FromShape(shape))
		} else if !v.Shape().Equal(shape) {
			blame.Panicf("optim: variable %s is %s, and what its optimiser keeps as %s is %s", of.Path(), shape, v.Path(), v.Shape())
		}
		vars = append(vars, v.SetTrainable(false))
	}
	return vars
}

// move asks the rule how a variable moves, and sets what the rule keeps.
func (g Group) move(store *model.Store, v *model.Variable, at Point, set func(*model.Variable, *Node)) *Node {
	rule, vars := g.rule(), g.kept(store, v)
	at.Kept = make(map[string]*Node, len(vars))
	for _, k := range vars {
		at.Kept[k.Name()] = k.NodeValue(at.Grad)
	}
	delta, kept := rule.Step(at)
	f, shape := blame.Method(rule, "Step"), at.Grad.Shape()
	if names := slices.Sorted(maps.Keys(kept)); !slices.Equal(names, slices.Sorted(slices.Values(rule.Keeps()))) {
		f.Panicf("returns values of %q, and Keeps names %q", names, rule.Keeps())
	}
	for _, k := range vars {
		set(k, f.Part(fmt.Sprintf("kept[%q]", k.Name())).Typed(kept[k.Name()], shape.DType, shape.Dimensions...))
	}
	return f.Part("delta").Typed(delta, shape.DType, shape.Dimensions...)
}
