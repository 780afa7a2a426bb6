package optim

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
)

// busy is a rule that uses all of a Point.
type busy struct{ names []string }

func (r busy) Keeps() []string { return r.names }

func (busy) Step(at Point) (*Node, map[string]*Node) {
	sum, last := Add(at.Kept["sum"], at.Grad), at.Grad
	delta := Add(Div(sum, at.Count), Add(MulScalar(at.Value, 0.1), MulScalar(at.Kept["last"], 0.5)))
	return delta, map[string]*Node{"sum": sum, "last": last}
}

// A rule from outside sees value, clipped gradient, count and what it kept, by its names.
func TestRuleOfOnesOwn(t *testing.T) {
	const seed, steps, rate, clip = 4, 6, 0.25, 1.5
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	start := map[string][]float64{"/a/w": {1, -2, 3}, "/a/v": {0.5}}
	opt := Optimizer{ClipNorm: clip, Groups: []Group{{Scope: "/a", Rule: busy{[]string{"sum", "last"}}, Rate: Rate{Base: rate}}}}
	store := newStore(dtypes.Float64, start)
	opt.Declare(store)
	declared := sortedKeys(read(t, store))
	p := newPuller(t, newBackend(t), store, opt, "/a/w", "/a/v")
	sum, last := map[string][]float64{}, map[string][]float64{}
	for path, w := range start {
		sum[path], last[path] = make([]float64, len(w)), make([]float64, len(w))
	}
	for step := range steps {
		grads := map[string][]float64{}
		for path, w := range start {
			for range w {
				grads[path] = append(grads[path], r.NormFloat64())
			}
		}
		norm, ok := p.pull(t, grads)
		if !ok {
			t.Fatal("a good update was refused")
		}
		for path, w := range start {
			for i := range w {
				g := grads[path][i] * min(1, clip/norm)
				sum[path][i] += g
				w[i] -= rate * (sum[path][i]/float64(step+1) + 0.1*w[i] + 0.5*last[path][i])
				last[path][i] = g
			}
		}
	}
	got := read(t, store)
	for path, w := range start {
		near(t, path, got[path], w, 1e-12)
		near(t, "sum of "+path, got[Root+path+"/sum"], sum[path], 1e-12)
		near(t, "last of "+path, got[Root+path+"/last"], last[path], 1e-12)
	}
	if now := sortedKeys(got); strings.Join(now, " ") != strings.Join(declared, " ") {
		t.Errorf("variables %v were declared, and became %v", declared, now)
	}
	// What is not finite spoils the update, also where it is only kept.
	before := read(t, store)
	if _, ok := p.pull(t, map[string][]float64{"/a/w": {math.Inf(1), 0, 0}, "/a/v": {0}}); ok {
		t.Error("an infinite gradient was taken")
	}
	for path, v := range read(t, store) {
		near(t, path, v, before[path], 0)
	}
}

// wrong is a rule whose answers a test spoils.
type wrong struct {
	SGD
	names []string
	step  func(Point) (*Node, map[string]*Node)
}

func (r wrong) Keeps() []string { return r.names }

func (r wrong) Step(at Point) (*Node, map[string]*Node) { return r.step(at) }

func TestRuleErrors(t *testing.T) {
	m := []string{"m"}
	fine := func(at Point) (*Node, map[string]*Node) { return at.Grad, at.Kept }
	for want, rule := range map[string]Rule{
		"": wrong{names: m, step: fine},
		"Step.delta is (Float64), not (Float64)[2]": wrong{step: func(at Point) (*Node, map[string]*Node) { return ReduceAllSum(at.Grad), nil }},
		"Step.delta is (Float32)[2], not (Float64)[2]": wrong{step: func(at Point) (*Node, map[string]*Node) {
			return ConvertDType(at.Grad, dtypes.Float32), nil
		}},
		"Step.delta is nil, not (Float64)[2]": wrong{step: func(Point) (*Node, map[string]*Node) { return nil, nil }},
		`Step.kept["m"] is (Float64), not (Float64)[2]`: wrong{names: m, step: func(at Point) (*Node, map[string]*Node) {
			return at.Grad, map[string]*Node{"m": at.Count}
		}},
		`Step returns values of [], and Keeps names ["m"]`: wrong{names: m, step: func(at Point) (*Node, map[string]*Node) {
			return at.Grad, nil
		}},
		`Step returns values of ["m" "n"], and Keeps names ["m"]`: wrong{names: m, step: func(at Point) (*Node, map[string]*Node) {
			return at.Grad, map[string]*Node{"m": at.Grad, "n": at.Grad}
		}},
		`Keeps is ["m" "m"]`: wrong{names: []string{"m", "m"}, step: fine},
		`Keeps is ["a/b"]`:   wrong{names: []string{"a/b"}, step: fine},
		`Keeps is [""]`:      wrong{names: []string{""}, step: fine},
	} {
		opt := Optimizer{Groups: []Group{{Scope: "/a", Rule: rule, Rate: Rate{Base: 1}}}}
		store := newStore(dtypes.Float64, map[string][]float64{"/a/w": {1, 2}})
		_, err := model.CallOnce(newBackend(t), store, func(_ *model.Scope, rates *Node) *Node {
			return opt.Minimize(store, ReduceAllSum(store.GetVariable("/a/w").NodeValue(rates)), rates).OK
		}, []float32{1})
		if (err == nil) != (want == "") || err != nil &&
			(!strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "rule_test.go:")) {
			t.Errorf("error %v, want one at a line of rule_test.go with %q", err, want)
		}
	}
}
