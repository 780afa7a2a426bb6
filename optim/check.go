package optim

import (
	"errors"
	"fmt"
	"math"
	"strings"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/internal/blame"
)

// Check returns what is wrong with an optimiser, as far as it shows before there are variables.
func (o Optimizer) Check() error {
	if !(o.ClipNorm >= 0) {
		return fmt.Errorf("ClipNorm is %g, which is below 0", o.ClipNorm)
	}
	seen := map[string]bool{}
	for _, g := range o.Groups {
		name := strings.TrimSuffix(g.Scope, "/")
		if !strings.HasPrefix(g.Scope, "/") {
			return fmt.Errorf("the scope %q of a group does not begin with /", g.Scope)
		}
		if seen[name] {
			return fmt.Errorf("two groups have the scope %q", g.Scope)
		}
		seen[name] = true
		if err := g.check(); err != nil {
			return fmt.Errorf("group %q: %w", g.Scope, err)
		}
	}
	return nil
}

// CheckStore returns an error if there is no variable to train below the scope of a group, in a store that has all.
func (o Optimizer) CheckStore(store *model.Store) error {
	for _, g := range o.Groups {
		alone := Optimizer{Groups: []Group{g}}
		some := false
		for v := range store.IterVariables() {
			some = some || v.Trainable && alone.group(v.Path()) == 0
		}
		if !some {
			return fmt.Errorf("there is no variable to train below the scope %q of a group", g.Scope)
		}
	}
	return nil
}

func (g Group) check() error {
	adam, _ := g.Rule.(Adam)
	for _, beta := range []float64{adam.Beta1, adam.Beta2} {
		if !(beta >= 0 && beta < 1) {
			return fmt.Errorf("Adam with a beta of %g, which is not from 0 to below 1", beta)
		}
	}
	if !isFactor(adam.Eps) {
		return fmt.Errorf("Adam with an Eps of %g", adam.Eps)
	}
	if err := checkRule(g.rule()); err != nil {
		return err
	}
	r := g.Rate
	if r.Of != nil {
		if r.Base != 0 || r.MayBeZero || r.Warmup != 0 || r.Drops != nil || r.Fall != (Fall{}) {
			return errors.New("its Rate.Of is all of its rate: leave the other fields of Rate at zero")
		}
		return r.checkAt(0)
	}
	if r.Base == 0 && !r.MayBeZero {
		return errors.New("it has no Rate; set Rate.Base, or Rate.MayBeZero if it is not to learn")
	}
	if !isFactor(r.Base) {
		return fmt.Errorf("its Rate.Base is %g", r.Base)
	}
	for _, d := range r.Drops {
		if !isFactor(d.Factor) {
			return fmt.Errorf("its rate drops by a factor of %g", d.Factor)
		}
	}
	if !isFactor(r.Fall.End) {
		return fmt.Errorf("its rate falls to %g", r.Fall.End)
	}
	return nil
}

// CheckRates returns what is wrong with the rates at a step, which shows in advance of those without a function.
func (o Optimizer) CheckRates(step uint64) error {
	for _, g := range o.Groups {
		if err := g.Rate.checkAt(step); err != nil {
			return fmt.Errorf("group %q: %w", g.Scope, err)
		}
	}
	return nil
}

func (r Rate) checkAt(step uint64) error {
	rate := float32(r.At(step))
	if isFactor(float64(rate)) {
		return nil
	}
	if r.Of == nil {
		return fmt.Errorf("its Rate is %g at update %d", rate, step)
	}
	return blame.Field(r.Of, "Rate.Of").Errorf("is %g at update %d, not a finite number from 0 on", rate, step)
}

// isFactor says whether v is finite and not negative.
func isFactor(v float64) bool { return v >= 0 && !math.IsInf(v, 0) }

// check stops the building of an update that cannot be meant.
func (o Optimizer) check(loss, rates *Node) {
	if err := o.Check(); err != nil {
		blame.Panicf("optim: %w", err)
	}
	if s := loss.Shape(); s.Rank() != 0 || !s.DType.IsFloat() {
		blame.Panicf("optim: the loss is %s, not one number", s)
	}
	if s := rates.Shape(); s.Rank() != 1 || s.Dim(0) != len(o.Groups) {
		blame.Panicf("optim: the rates of %d groups are %s; feed what Rates returns", len(o.Groups), s)
	}
}

// check stops the building of an update whose values do not fit their variables.
func (u update) check() {
	for _, a := range u {
		if a.Variable == nil || a.Value == nil {
			blame.Panicf("optim: an assignment lacks its variable or its value")
		}
		v, x := a.Variable.Shape(), a.Value.Shape()
		if a.Rows != nil {
			if r := a.Rows.Shape(); r.Rank() != 1 || !r.DType.IsInt() || v.Rank() == 0 {
				blame.Panicf("optim: the rows of variable %s, which is %s, are %s, not numbers of rows", a.Variable.Path(), v, r)
			}
			v = v.Clone()
			v.Dimensions[0] = a.Rows.Shape().Dim(0)
		}
		if !v.Equal(x) {
			blame.Panicf("optim: variable %s is %s, and its new value %s", a.Variable.Path(), v, x)
		}
	}
}
