package gfn_test

import (
	"fmt"
	"math"

	"github.com/gomlx/compute"
	_ "github.com/gomlx/compute/gobackend"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/gfn/envs"
	"github.com/gfnem/gfnem/rng"
)

// The exact answer on a small environment: the forward policy that draws sets in proportion to a reward.
func ExampleEnumerate() {
	b, err := compute.NewWithConfig("go:ops_sequential")
	if err != nil {
		panic(err)
	}
	x := []*tensors.Tensor{tensors.FromFlatDataAndDimensions([]float32{0}, 1, 1)} // no observation
	d, err := gfn.Enumerate(b, envs.Subset{Items: 3, Size: 2}, x, 100)
	if err != nil {
		panic(err)
	}
	fmt.Println(d.Len(), "states,", len(d.Edges), "actions,", len(d.Objects), "sets of two")

	logR := []float64{math.Log(1), math.Log(2), math.Log(5)}
	logF, logPF := d.Solve(logR, d.UniformBack())
	fmt.Printf("Z = %.0f\n", math.Exp(logF[0]))
	table := gfn.Table{LogPF: logPF, LogPB: d.UniformBack()}
	fmt.Printf("%.3f\n", d.Terminating(table))
	// Output:
	// 7 states, 9 actions, 3 sets of two
	// Z = 8
	// [0.125 0.250 0.625]
}

// One program samples trajectories, scores them and returns a loss for each.
func ExampleNet() {
	b, err := compute.NewWithConfig("go:ops_sequential")
	if err != nil {
		panic(err)
	}
	env := envs.Uniform(3, 2) // three bits
	x := tensors.FromFlatDataAndDimensions(make([]float32, 4), 4, 1)
	d, err := gfn.Enumerate(b, env, []*tensors.Tensor{tensors.FromFlatDataAndDimensions([]float32{0}, 1, 1)}, 100)
	if err != nil {
		panic(err)
	}
	store := model.NewStore()
	exec, err := model.NewExec(b, store, func(root *model.Scope, x, key *Node) (*Node, *Node) {
		net := gfn.Net{Env: env, Policy: gfn.Tabular{DAG: d}, Scope: root.At("policy")}
		tr := net.Rollout(rng.In(key), gfn.Batch{x}, nil, gfn.Behaviour{})
		bits := ReduceSum(tr.Last()[0], 1)
		logR := Log(OnePlus(ConvertDType(bits, net.Score(tr, gfn.Behaviour{}).LogPF.DType()))) // R = 1 + number of ones
		return bits, gfn.TB{}.Loss(net.Path(tr, net.Score(tr, gfn.Behaviour{}), logR, nil))
	})
	if err != nil {
		panic(err)
	}
	defer exec.Finalize()
	bitsOut, lossOut, err := exec.Call2(x, rng.Key(1, "example"))
	if err != nil {
		panic(err)
	}
	// A table of zeros is the uniform policy, and log Z = 0: the loss is (-log 8 - log R)^2.
	bits, loss := bitsOut.Value().([]int32), lossOut.Value().([]float32)
	for i := range bits {
		fmt.Printf("%.3f %.3f\n", loss[i], math.Pow(math.Log(8*float64(1+bits[i])), 2))
	}
	// Output:
	// 7.687 7.687
	// 10.100 10.100
	// 7.687 7.687
	// 4.324 4.324
}
