// Package model is a model of somebody who uses the library: sentences without spaces, which are cut into words.
package model

import (
	"math"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/gfn/envs"
	"github.com/gfnem/gfnem/nn"
	"github.com/gfnem/gfnem/optim"
	"github.com/gfnem/gfnem/rng"
	"github.com/gfnem/gfnem/task"
)

const (
	most, longest = 10, 3 // letters of a sentence, and of a word
	letters       = 6     // a to f
	float         = dtypes.Float32
)

// Env decides from left to right behind which letters a word ends.
var Env = envs.Segmentation{Max: most, Longest: longest, Length: func(x gfn.Batch) *Node {
	return ReduceSum(ConvertDType(GreaterThan(x[0], ZerosLike(x[0])), dtypes.Int32), 1) // [B]
}}

// speller is p(x,z). All lengths are equally probable, a letter depends on the one before it in the same word, and whether
// the word ends behind it on the letter itself. A word of three letters ends in any case, and so does the last one.
type speller struct{}

// tables are log p(letter | the one before), [7,6], and log odds that a word ends behind a letter, [7].
func (speller) tables(theta *model.Scope, g *Graph) (spell, end *Node) {
	spell = nn.Param(theta, g, float, "spell", 0.1, letters+1, letters)
	return LogSoftmax(spell), nn.Param(theta, g, float, "end", 0.1, letters+1)
}

func look(table, at *Node) *Node { return Gather(table, InsertAxes(at, -1)) }

func (m speller) LogJoint(theta *model.Scope, x gfn.Batch, z gfn.State) *Node {
	spell, end := m.tables(theta, x[0].Graph())
	letter, ends := x[0], Env.Ends(z) // [B,most]; letters are 1 to 6, and 0 is behind the end
	begins, zero := ShiftRight(ends, 1, 1), ZerosLike(letter)
	before := Where(begins, zero, ShiftRight(letter, 1, 0)) // in the same word
	chosen := OneHot(AddScalar(letter, -1), letters, float) // zeros behind the end of the sentence
	logP := ReduceSum(Mul(chosen, look(spell, before)), 2)
	free := begins // whether the word may go on behind a letter
	for l := 2; l < longest; l++ {
		free = LogicalOr(free, ShiftRight(ends, l, 1))
	}
	free = LogicalAnd(free, GreaterThan(ShiftLeft(letter, 1, 0), zero))
	odds := look(end, letter)
	logEnd := Neg(Softplus(Where(ends, Neg(odds), odds)))
	return AddScalar(ReduceSum(Add(logP, Where(free, logEnd, ZerosLike(logEnd))), 1), -math.Log(most))
}

func (m speller) Sample(theta *model.Scope, r *rng.Stream, n int) (gfn.Batch, gfn.State) {
	u := r.Uniform(float, n, most, letters+1)
	spell, end := m.tables(theta, u.Graph())
	length := OnePlus(r.Categorical(Ones(u.Graph(), shapes.Make(float, n, most))))
	zero := ZerosLike(length)
	before, size := zero, zero // of the word so far
	var x, z []*Node
	for t := range most {
		now := Squeeze(SliceAxis(u, 1, AxisElem(t)), 1) // [n,7]
		letter := OnePlus(rng.Choose(SliceAxis(now, 1, AxisRange(0, letters)), Exp(look(spell, before))))
		size = OnePlus(size)
		ends := LessThan(Squeeze(SliceAxis(now, 1, AxisElem(letters)), 1), Sigmoid(look(end, letter)))
		ends = LogicalOr(ends, Equal(size, ConstAs(size, longest)))
		x = append(x, Where(GreaterThan(length, ConstAs(length, t)), letter, zero))
		z = append(z, ConvertDType(ends, dtypes.Int32))
		before, size = Where(ends, zero, letter), Where(ends, zero, size)
	}
	return gfn.Batch{Stack(x, 1)}, Env.Of(Stack(z[:most-1], 1), length)
}

// policy is q(z|x). Encode returns log odds that a word ends behind each letter, if it then has 1, 2, ... letters.
type policy struct{}

func (policy) Encode(phi *model.Scope, x gfn.Batch) gfn.Batch {
	letter := OneHot(x[0], letters+1, float) // [B,most,7]
	left, right := ShiftWithScalar(letter, 1, ShiftDirRight, 1, 0), ShiftWithScalar(letter, 1, ShiftDirLeft, 1, 0)
	window := Concatenate([]*Node{left, letter, right, ShiftWithScalar(right, 1, ShiftDirLeft, 1, 0)}, 2)
	return gfn.Batch{nn.MLP{Widths: []int{32, longest}}.Apply(phi, window)}
}

func (policy) Heads(_ *model.Scope, x gfn.Batch, s gfn.State, k int) gfn.Heads {
	odds, cut := Reshape(x.Repeat(k)[0], -1, most*longest), s[0] // cut is -1 where nothing is decided
	gap := ReduceSum(ConvertDType(GreaterOrEqual(cut, ZerosLike(cut)), dtypes.Int32), 1)
	place := OnePlus(Iota(cut.Graph(), cut.Shape(), 1))
	begun := ReduceMax(Where(Equal(cut, OnesLike(cut)), place, ZerosLike(place)), 1)
	ends := gfn.Pick(odds, Add(MulScalar(gap, longest), Sub(gap, begun)))
	return gfn.Heads{Forward: Stack([]*Node{ZerosLike(ends), ends}, 1)}
}

// Config is what a user can change.
type Config struct {
	Seed    uint64 `toml:"seed" help:"seed of all random numbers"`
	Updates int    `toml:"updates" range:"1,1e6" help:"M-steps"`
	Rows    int    `toml:"rows" range:"20,1e6" help:"sentences"`
}

// Task learns the words.
var Task = task.Of(task.Definition[Config]{
	Name:    "words",
	About:   "Sentences without spaces: where do words end?",
	Presets: []task.Preset[Config]{{Name: "quick", Config: Config{Updates: 600, Rows: 200}}},
	Start:   start,
})

func start(_ compute.Backend, c Config) (task.Learning, error) {
	data, err := em.Shuffled(c.Seed, 20, Observe(made(c.Seed, c.Rows)...))
	adam := func(scope string) optim.Optimizer {
		return optim.Optimizer{Groups: []optim.Group{{Scope: scope, Rate: optim.Rate{Base: 0.02}}}}
	}
	return task.Learning{
		Spec: em.Spec{
			Model: speller{}, Env: Env, Policy: policy{}, Data: data,
			Wake:  em.Wake{Objective: gfn.VarGrad{}, Samples: 4, Optimizer: adam(em.Phi)},
			Sleep: em.Sleep{Weight: 1, Batch: 20},
			Gate:  em.Blocks{First: 100},
			MStep: em.MStep{Latents: em.Weighted{}, Optimizer: adam(em.Theta)},
		},
		MSteps:  uint64(c.Updates),
		HeldOut: []*tensors.Tensor{Observe(made(c.Seed+1, 100)...)},
		Metrics: func(m *task.Learned) (map[string]float64, error) {
			end := tensors.MustCopyFlatData[float32](m.Theta().GetVariable("end").MustValue())
			return map[string]float64{"odds that c ends a word": float64(end[3])}, nil
		},
	}, err
}
