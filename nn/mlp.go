// Package nn holds network blocks that more than one task uses.
package nn

import (
	"math"
	"math/rand/v2"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/support/xslices"

	"github.com/gfnem/gfnem/internal/blame"
	"github.com/gfnem/gfnem/internal/memory"
	"github.com/gfnem/gfnem/rng"
)

// SeedParam is the store parameter that holds the seed of all initial values, a uint64; absent means 0.
const SeedParam = "seed"

// NewStore returns a store whose variables will start at values drawn from a seed.
func NewStore(seed uint64) *model.Store {
	s := model.NewStore()
	s.RootScope().SetParam(SeedParam, seed)
	return s
}

// Param returns a variable whose initial values are drawn on the host, uniform between -bound and bound, from a stream
// named after the variable: they depend on the seed and the variable's path alone, not on the backend, nor on which
// other variables exist. The dtype is Float32, which rounds them, or Float64.
func Param(scope *model.Scope, g *Graph, dtype dtypes.DType, name string, bound float64, dims ...int) *Node {
	return ParamLike(scope, g, dtype, name, model.JoinPath(scope.Scope(), name), bound, dims...)
}

// ParamLike is Param with the initial values of the variable at another path, which need not exist: layers that start as copies
// of one.
func ParamLike(scope *model.Scope, g *Graph, dtype dtypes.DType, name, path string, bound float64, dims ...int) *Node {
	return drawn(scope, g, dtype, name, path, dims, func(r *rand.Rand) float64 { return bound * (2*r.Float64() - 1) })
}

// Normal is like Param, with values from a normal distribution of mean 0 and the given deviation.
func Normal(scope *model.Scope, g *Graph, dtype dtypes.DType, name string, deviation float64, dims ...int) *Node {
	return drawn(scope, g, dtype, name, model.JoinPath(scope.Scope(), name), dims,
		func(r *rand.Rand) float64 { return deviation * r.NormFloat64() })
}

func drawn(scope *model.Scope, g *Graph, dtype dtypes.DType, name, path string, dims []int, draw func(*rand.Rand) float64) *Node {
	shape := shapes.Make(dtype, dims...)
	if v := scope.GetVariable(name); v != nil {
		if !v.Shape().Equal(shape) {
			blame.Panicf("nn: parameter %s is %s and cannot be %s, too: "+
				"layers in one scope share their parameters; scope.At gives each its own", v.Path(), v.Shape(), shape)
		}
		return v.NodeValue(g)
	}
	seed := model.GetParamOr(scope, SeedParam, uint64(0))
	r := rng.New(seed, "init "+path)
	memory.Must("variable "+path, append([]int{8 + 2*dtype.Size()}, dims...)...) // float64s, and two tensors of its own type
	values := make([]float64, shape.Size())
	for i := range values {
		values[i] = draw(r)
	}
	t := tensors.FromFlatDataAndDimensions(values, dims...)
	switch dtype {
	case dtypes.Float64:
	case dtypes.Float32:
		t = tensors.FromFlatDataAndDimensions(xslices.Map(values, func(v float64) float32 { return float32(v) }), dims...)
	default:
		blame.Panicf("nn: parameter %s cannot have dtype %s", path, dtype)
	}
	return scope.VariableWithValue(name, t).NodeValue(g)
}

// Linear is x W + b on the last axis, with weights and biases uniform in ±1/sqrt(fan-in).
func Linear(scope *model.Scope, x *Node, width int) *Node {
	in := x.Shape().Dim(-1)
	bound := 1 / math.Sqrt(float64(in))
	w := Param(scope, x.Graph(), x.DType(), "weights", bound, in, width)
	b := Param(scope, x.Graph(), x.DType(), "bias", bound, width)
	y := DotGeneral(x, []int{-1}, nil, w, []int{0}, nil)
	return Add(y, ExpandLeftToRank(b, y.Rank()))
}

// LeakyReLU is max(x, slope*x), for a slope from 0 to 1, with derivative slope at 0. The gradient looks at the sign of the
// result, so that x need not be kept.
func LeakyReLU(x *Node, slope float64) *Node {
	scaled := func(x *Node) *Node {
		if slope == 0 {
			return ScalarZero(x.Graph(), x.DType())
		}
		return MulScalar(x, slope)
	}
	y := Max(x, scaled(x))
	return WithGradients(y, []*Node{x}, func(dy *Node) *Node {
		return Where(GreaterThan(y, ScalarZero(y.Graph(), y.DType())), dy, scaled(dy))
	})
}

// ReLU is max(x, 0).
func ReLU(x *Node) *Node { return LeakyReLU(x, 0) }

// ELU is x above zero and exp(x)-1 below. The gradient is made from the result.
func ELU(x *Node) *Node {
	zero := ScalarZero(x.Graph(), x.DType())
	y := ELUAbove(zero, x)
	return WithGradients(y, []*Node{x}, func(dy *Node) *Node {
		return Mul(dy, ELUSlope(y))
	})
}

// ELUSlope is the derivative of ELU, from its result.
func ELUSlope(y *Node) *Node {
	return Where(GreaterThan(y, ScalarZero(y.Graph(), y.DType())), OnesLike(y), OnePlus(y))
}

// ELUAbove is the value of ELU given the scalar zero, for loops, which cannot take it from the store of scalars (see Loop).
func ELUAbove(zero, x *Node) *Node { return Where(GreaterThan(x, zero), x, Expm1(Min(x, zero))) }

// MLP is a stack of linear layers of the given widths, with an activation between them.
type MLP struct {
	Widths []int
	// Slope of the leaky rectifier between layers for negative inputs; 0 is the plain rectifier.
	Slope float64
}

// Apply maps the last axis of x through the layers "0", "1", ... below scope.
func (m MLP) Apply(scope *model.Scope, x *Node) *Node {
	for i, w := range m.Widths {
		if i > 0 {
			x = LeakyReLU(x, m.Slope)
		}
		x = Linear(scope.At("%d", i), x, w)
	}
	return x
}
