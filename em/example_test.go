package em_test

import (
	"context"
	"fmt"
	"math"

	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/backend"
	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/gfn/envs"
	"github.com/gfnem/gfnem/nn"
	"github.com/gfnem/gfnem/optim"
	"github.com/gfnem/gfnem/rng"
)

const (
	float = dtypes.Float32
	sigma = 0.3
)

// parcel is a model of weighed parcels. A parcel holds none, one or both of two things, and x is its weight, with an
// error. What the things weigh is learned.
type parcel struct{}

func (parcel) weigh(theta *model.Scope, z *Node) *Node { // [N,1]
	weights := nn.Param(theta, z.Graph(), float, "weights", 0.5, 2, 1)
	weights = Add(weights, Const(z.Graph(), [][]float32{{0.5}, {2.5}})) // the second thing is the heavier one
	return Dot(z, weights).Product()
}

// LogJoint is log p(z) + log p(x|z), of four contents that are equally probable and of a normal error.
func (p parcel) LogJoint(theta *model.Scope, x gfn.Batch, z gfn.State) *Node {
	off := Sub(x[0], p.weigh(theta, ConvertDType(z[0], float)))
	logP := MulScalar(Square(off), -1/(2*sigma*sigma))
	return AddScalar(Squeeze(logP, 1), -math.Log(4)-math.Log(sigma*math.Sqrt(2*math.Pi)))
}

// Sample draws contents, and what the scales say.
func (p parcel) Sample(theta *model.Scope, r *rng.Stream, n int) (gfn.Batch, gfn.State) {
	u := r.Uniform(float, n, 2)
	z := LessThan(u, MulScalar(OnesLike(u), 0.5))
	x := Add(p.weigh(theta, ConvertDType(z, float)), MulScalar(r.Normal(float, n, 1), sigma))
	return gfn.Batch{x}, gfn.State{ConvertDType(z, dtypes.Int32)}
}

// packer is q(z|x): it decides whether the first thing is in the parcel, then about the second.
type packer struct{}

func (packer) Heads(phi *model.Scope, x gfn.Batch, s gfn.State, k int) gfn.Heads {
	known := ConvertDType(s[0], float) // [N,2]: 1 in, 0 not in, -1 not decided
	logits := nn.MLP{Widths: []int{32, 32, 2}}.Apply(phi, Concatenate([]*Node{x.Repeat(k)[0], known}, 1))
	decided := ReduceSum(ConvertDType(GreaterOrEqual(s[0], ZerosLike(s[0])), dtypes.Int32), 1)
	in := gfn.Pick(logits, decided)
	return gfn.Heads{Forward: Stack([]*Node{ZerosLike(in), in}, 1)} // not in, in
}

// A model of one's own is learned from four observations, beginning with what things weigh.
func ExampleNew() {
	b, err := backend.Open("simd")
	if err != nil {
		panic(err)
	}
	adam := func(scope string, rate float64) optim.Optimizer {
		return optim.Optimizer{Groups: []optim.Group{{Scope: scope, Rate: optim.Rate{Base: rate}}}}
	}
	learner, err := em.New(b, nn.NewStore(1), em.Spec{
		Model:  parcel{},
		Env:    envs.Uniform(2, 2), // two decisions of two kinds
		Policy: packer{},
		Data:   em.Full(tensors.FromValue([][]float32{{0}, {1}, {3}, {4}})),
		Wake:   em.Wake{Objective: gfn.VarGrad{}, Samples: 8, Optimizer: adam(em.Phi, 0.01)},
		Sleep:  em.Sleep{Weight: 1, Batch: 32},
		MStep:  em.MStep{Optimizer: adam(em.Theta, 0.02)},
	})
	if err != nil {
		panic(err)
	}
	defer learner.Close()
	enough := func(s em.State) bool { return s.M == 500 }
	if err := learner.Train(context.Background(), enough, nil); err != nil {
		panic(err)
	}
	weights := tensors.MustCopyFlatData[float32](learner.Store().GetVariable(em.Theta + "/weights").MustValue())
	for i, start := range []float32{0.5, 2.5} {
		fmt.Printf("thing %d weighs %.1f\n", i+1, start+weights[i])
	}
	// Output:
	// thing 1 weighs 1.0
	// thing 2 weighs 3.0
}

func ExampleLinear() {
	explore := em.Linear{From: 0.5, To: 0, Over: 100}
	fmt.Println(explore.At(0), explore.At(50), explore.At(100), explore.At(1000))
	// Output: 0.5 0.25 0 0
}
