package optim

import (
	"math"

	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/internal/memory"
)

// Adam is the rule of Kingma and Ba ("Adam: A Method for Stochastic Optimization", 2015, algorithm 1). The zero value has
// their constants.
type Adam struct {
	Beta1 float64 // 0 means 0.9
	Beta2 float64 // 0 means 0.999
	Eps   float64 // 0 means 1e-8
}

// SGD follows the gradient itself.
type SGD struct{}

var (
	_ Rule = Adam{}
	_ Rule = SGD{}
)

func (a Adam) step(scope *model.Scope, grad, count *Node, set func(*model.Variable, *Node)) *Node {
	b1, b2, eps := or(a.Beta1, 0.9), or(a.Beta2, 0.999), or(a.Eps, 1e-8)
	m1, m2 := moments(scope, grad.Shape())
	mean := Add(MulScalar(m1.NodeValue(grad), b1), MulScalar(grad, 1-b1))
	square := Add(MulScalar(m2.NodeValue(grad), b2), MulScalar(Square(grad), 1-b2))
	set(m1, mean)
	set(m2, square)
	// 1 - beta^t, without the cancellation that would cost float32 four digits at small t
	unbias := func(beta float64) *Node { return Neg(Expm1(MulScalar(count, math.Log(beta)))) }
	return Div(Div(mean, unbias(b1)), AddScalar(Sqrt(Div(square, unbias(b2))), eps))
}

func (Adam) declare(scope *model.Scope, shape shapes.Shape) { moments(scope, shape) }

// moments looks up the moving averages of a gradient and of its square, or makes them, at zero.
func moments(scope *model.Scope, shape shapes.Shape) (mean, square *model.Variable) {
	of := func(name string) *model.Variable {
		v := scope.GetVariable(name)
		if v == nil {
			memory.Must("moments of an optimiser", append([]int{2 * shape.DType.Size()}, shape.Dimensions...)...) // one is a copy
			v = scope.VariableWithValue(name, tensors.FromShape(shape))
		}
		return v.SetTrainable(false)
	}
	return of("m1"), of("m2")
}

func (SGD) step(_ *model.Scope, grad, _ *Node, _ func(*model.Variable, *Node)) *Node { return grad }

func (SGD) declare(*model.Scope, shapes.Shape) {}

func or(v, preset float64) float64 {
	if v == 0 {
		return preset
	}
	return v
}
