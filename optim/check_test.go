package optim

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
)

func TestCheck(t *testing.T) {
	good := Rate{Base: 0.1}
	group := func(scope string, rate Rate) Optimizer { return Optimizer{Groups: []Group{{Scope: scope, Rate: rate}}} }
	rule := func(a Adam) Optimizer { return Optimizer{Groups: []Group{{Scope: "/a", Rate: good, Rule: a}}} }
	for name, c := range map[string]struct {
		o    Optimizer
		want string
	}{
		"good":              {group("/a", good), ""},
		"root":              {group("/", good), ""},
		"zero is meant":     {group("/a", Rate{MayBeZero: true}), ""},
		"a function":        {group("/a", Rate{Of: good.At}), ""},
		"function and more": {group("/a", Rate{Of: good.At, Warmup: 3}), "Rate.Of is all of its rate"},
		"function, negative": {group("/a", Rate{Of: func(uint64) float64 { return -1 }}),
			"Rate.Of is -1 at update 0"},
		"drop to nothing": {group("/a", Rate{Base: 1, Drops: []Drop{{Factor: 0}}}), ""},
		"SGD":             {Optimizer{Groups: []Group{{Scope: "/a", Rate: good, Rule: SGD{}}}}, ""},
		"no rate":         {group("/a", Rate{}), `group "/a": it has no Rate`},
		"warm-up alone":   {group("/a", Rate{Warmup: 3, Drops: []Drop{{Factor: 1}}}), "no Rate"},
		"negative rate":   {group("/a", Rate{Base: -0.1}), "Rate.Base is -0.1"},
		"NaN rate":        {group("/a", Rate{Base: math.NaN()}), "NaN"},
		"infinite rate":   {group("/a", Rate{Base: math.Inf(1)}), "Inf"},
		"negative drop":   {group("/a", Rate{Base: 1, Drops: []Drop{{Factor: 1}, {Factor: -1}}}), "a factor of -1"},
		"negative fall":   {group("/a", Rate{Base: 1, Fall: Fall{To: 3, End: -1}}), "falls to -1"},
		"no slash":        {group("a", good), `"a" of a group does not begin with /`},
		"same twice":      {Optimizer{Groups: []Group{{Scope: "/a", Rate: good}, {Scope: "/a/", Rate: good}}}, `"/a/"`},
		"negative clip":   {Optimizer{ClipNorm: -1}, "ClipNorm is -1"},
		"NaN clip":        {Optimizer{ClipNorm: math.NaN()}, "ClipNorm"},
		"beta of 1":       {rule(Adam{Beta2: 1}), "a beta of 1"},
		"negative beta":   {rule(Adam{Beta1: -0.5}), "a beta of -0.5"},
		"negative eps":    {rule(Adam{Eps: -1}), "Eps of -1"},
	} {
		if err := c.o.Check(); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one about %q", name, err, c.want)
		}
	}
}

// What cannot be meant is an error of the program that would do it, and names the line.
func TestUpdateErrors(t *testing.T) {
	type made struct {
		store      *model.Store
		w, v       *Node
		rates      *Node
		theW, theV *model.Variable
	}
	opt := Optimizer{Groups: []Group{{Scope: "/a", Rate: Rate{Base: 1}}}}
	for name, c := range map[string]struct {
		f    func(made) *Node
		want string
	}{
		"no rate": {func(m made) *Node {
			return Optimizer{Groups: []Group{{Scope: "/a"}}}.Minimize(m.store, ReduceAllSum(m.w), m.rates).OK
		}, "it has no Rate"},
		"a loss for each row": {func(m made) *Node {
			return opt.Minimize(m.store, m.w, m.rates).OK
		}, "the loss is (Float64)[2]"},
		"rates": {func(m made) *Node {
			return opt.Minimize(m.store, ReduceAllSum(m.w), m.w).OK
		}, "the rates of 1 groups are (Float64)[2]"},
		"one value for all": {func(m made) *Node {
			return Assign([]*model.Variable{m.theW}, []*Node{ReduceAllSum(m.w)})
		}, "variable /a/w is (Float64)[2], and its new value (Float64)"},
		"a value too many": {func(m made) *Node { return Assign([]*model.Variable{m.theW}, []*Node{m.w, m.v}) },
			"1 variables are to have 2 new values"},
		"a value too few": {func(m made) *Node { return Assign([]*model.Variable{m.theW, m.theV}, []*Node{m.w}) },
			"2 variables are to have 1 new values"},
		"nothing": {func(m made) *Node { return Assign(nil, nil) }, "0 variables"},
		"a moment of another shape": {func(m made) *Node {
			m.store.Scope(Root+"/a/w").VariableWithValue("m1", []float64{0})
			return opt.Minimize(m.store, ReduceAllSum(m.w), m.rates).OK
		}, "/optim/a/w/m1"},
		"an assignment of another dtype": {func(m made) *Node {
			return opt.Minimize(m.store, ReduceAllSum(m.w), m.rates, Assignment{Variable: m.theV, Value: ConvertDType(m.v, dtypes.Float32)}).OK
		}, "variable /a/v is (Float64)[1], and its new value (Float32)[1]"},
		"rows of another number": {func(m made) *Node {
			one := Assignment{Variable: m.theW, Value: m.w, Rows: Const(m.w.Graph(), []int32{1})}
			return opt.Minimize(m.store, ReduceAllSum(m.w), m.rates, one).OK
		}, "variable /a/w is (Float64)[1], and its new value (Float64)[2]"},
		"rows that are no numbers": {func(m made) *Node {
			one := Assignment{Variable: m.theW, Value: m.w, Rows: m.w}
			return opt.Minimize(m.store, ReduceAllSum(m.w), m.rates, one).OK
		}, "the rows of variable /a/w, which is (Float64)[2], are (Float64)[2]"},
	} {
		store := newStore(dtypes.Float64, map[string][]float64{"/a/w": {1, 2}, "/a/v": {3}})
		_, err := model.CallOnce(newBackend(t), store, func(_ *model.Scope, rates *Node) *Node {
			m := made{store: store, rates: rates, theW: store.GetVariable("/a/w"), theV: store.GetVariable("/a/v")}
			m.w, m.v = m.theW.NodeValue(rates), m.theV.NodeValue(rates)
			return c.f(m)
		}, []float32{0.5})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one about %q", name, err, c.want)
		} else if !strings.Contains(err.Error(), "check_test.go:") && name != "a moment of another shape" {
			t.Errorf("%s: no place in %v", name, err)
		}
	}
}

// A rate that is none is an error of its update, and names the function.
func TestCheckRates(t *testing.T) {
	for v, want := range map[float64]string{
		0: "", 0.5: "", -0.5: "is -0.5 at update 3", math.NaN(): "is NaN at", math.Inf(1): "is +Inf at", 1e39: "is +Inf at",
	} {
		o := Optimizer{Groups: []Group{{Scope: "/a", Rate: Rate{Base: 1}}, {Scope: "/b", Rate: Rate{Of: func(step uint64) float64 {
			return map[bool]float64{true: v, false: 1}[step == 3]
		}}}}}
		if err := errors.Join(o.Check(), o.CheckRates(2)); err != nil {
			t.Error(err)
		}
		err := o.CheckRates(3)
		if (err == nil) != (want == "") ||
			err != nil && (!strings.Contains(err.Error(), `group "/b": check_test.go:`) || !strings.Contains(err.Error(), want)) {
			t.Errorf("rate %g: error %v, want one with %q", v, err, want)
		}
	}
}
