package optim_test

import (
	"fmt"

	"github.com/gomlx/compute"
	_ "github.com/gomlx/compute/gobackend"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/optim"
)

func ExampleRate() {
	r := optim.Rate{Base: 1e-3, Warmup: 4, Drops: []optim.Drop{{Step: 1000, Factor: 0.1}}}
	for _, step := range []uint64{0, 1, 4, 999, 1000} {
		fmt.Println(step, r.At(step))
	}
	// Output:
	// 0 0
	// 1 0.00025
	// 4 0.001
	// 999 0.001
	// 1000 0.0001
}

// Lion (Chen et al., "Symbolic Discovery of Optimization Algorithms", 2023, algorithm 2) is a rule that the package does
// not have.
type Lion struct{ Beta1, Beta2, Decay float64 }

func (Lion) Keeps() []string { return []string{"m"} }

func (l Lion) Step(at optim.Point) (*Node, map[string]*Node) {
	mix := func(beta float64) *Node { return Add(MulScalar(at.Kept["m"], beta), MulScalar(at.Grad, 1-beta)) }
	return Add(Sign(mix(l.Beta1)), MulScalar(at.Value, l.Decay)), map[string]*Node{"m": mix(l.Beta2)}
}

func ExampleRule() {
	b, err := compute.NewWithConfig("go")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer b.Finalize()
	store := model.NewStore()
	w := store.VariableWithValue("/theta/w", []float64{1, -1})
	opt := optim.Optimizer{Groups: []optim.Group{{
		Scope: "/theta",
		Rule:  Lion{Beta1: 0.9, Beta2: 0.99},
		Rate:  optim.Rate{Of: func(step uint64) float64 { return 0.5 / float64(1+step) }},
	}}}
	for step := range uint64(4) {
		_, err := model.CallOnce(b, store, func(_ *model.Scope, rates *Node) *Node {
			return opt.Minimize(store, ReduceAllSum(Square(w.NodeValue(rates))), rates).GradNorm
		}, opt.Rates(step))
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%.4f\n", w.MustValue().Value())
	}
	// Output:
	// [0.5000 -0.5000]
	// [0.2500 -0.2500]
	// [0.0833 -0.0833]
	// [-0.0417 0.0417]
}
