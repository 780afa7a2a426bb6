package optim

import (
	"math"

	. "github.com/gomlx/gomlx/core/graph"
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

// Keeps implements Rule: the moving averages of the gradient and of its square.
func (Adam) Keeps() []string { return []string{meanName, squareName} }

const meanName, squareName = "m1", "m2"

// Step implements Rule.
func (a Adam) Step(at Point) (*Node, map[string]*Node) {
	b1, b2, eps := or(a.Beta1, 0.9), or(a.Beta2, 0.999), or(a.Eps, 1e-8)
	mean := Add(MulScalar(at.Kept[meanName], b1), MulScalar(at.Grad, 1-b1))
	square := Add(MulScalar(at.Kept[squareName], b2), MulScalar(Square(at.Grad), 1-b2))
	// 1 - beta^t, without the cancellation that would cost float32 four digits at small t
	unbias := func(beta float64) *Node { return Neg(Expm1(MulScalar(at.Count, math.Log(beta)))) }
	return Div(Div(mean, unbias(b1)), AddScalar(Sqrt(Div(square, unbias(b2))), eps)), map[string]*Node{meanName: mean, squareName: square}
}

// Keeps implements Rule: nothing.
func (SGD) Keeps() []string { return nil }

// Step implements Rule.
func (SGD) Step(at Point) (*Node, map[string]*Node) { return at.Grad, nil }

func or(v, preset float64) float64 {
	if v == 0 {
		return preset
	}
	return v
}
