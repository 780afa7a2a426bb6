package gfn

import (
	"math"

	. "github.com/gomlx/gomlx/core/graph"
)

// SubTB is sub-trajectory balance (Madan, Rector-Brooks, Korablyov, Bengio, Jain, Nica, Bosc, Bengio, Malkin, "Learning
// GFlowNets from Partial Episodes for Improved Convergence and Stability", 2023, eq. 10): the average of
//
//	delta_ij^2,  delta_ij = log F(s_i) + sum_{i<=t<j} log P_F - log F(s_j) - sum_{i<=t<j} log P_B
//
// over all 0 <= i < j <= T with weights proportional to lambda^(j-i).
type SubTB struct {
	// Lambda weighs a span by its length; 0 means 1, the plain average over spans (the grammar experiments of Hu et
	// al., 2023).
	Lambda float64
}

var _ Objective = SubTB{}

// Loss implements Objective.
func (o SubTB) Loss(p Path) *Node {
	lambda := o.Lambda
	if lambda == 0 {
		lambda = 1
	}
	factor("SubTB.Lambda", lambda)
	t := p.LogPF.Shape().Dim(1)
	table := make([][]float64, t)
	for i := range table {
		table[i] = make([]float64, t)
		for j := i; j < t; j++ { // column j stands for the span i..j+1
			table[i][j] = math.Pow(lambda, float64(j-i))
		}
	}
	return spanLoss(p, table)
}

// spanLoss averages delta_{i,j+1}^2 with weights proportional to table[i][j], over the spans that have no padding in
// them.
//
// With c_t the sum of log P_F - log P_B over the first t steps and v_t = log F(s_t) - c_t, delta_ij is v_i - v_j.
func spanLoss(p Path, table [][]float64) *Node {
	b, t := p.LogPF.Shape().Dim(0), p.LogPF.Shape().Dim(1)
	g := p.LogPF.Graph()

	before := make([][]float64, t+1) // before[j][t] = 1 if step t comes before state j
	for j := range before {
		before[j] = make([]float64, t)
		for i := range j {
			before[j][i] = 1
		}
	}
	steps := BroadcastToDims(InsertAxes(Sub(p.LogPF, p.LogPB), 1), b, t+1, t)
	sofar := ReduceSum(Mul(steps, constLike(g, before, p.LogPF, b)), 2) // [B,T+1]
	v := Sub(p.logFlows(), sofar)                                       // [B,T+1]

	from := BroadcastToDims(InsertAxes(SliceAxis(v, 1, AxisRange(0, t)), 2), b, t, t)
	to := BroadcastToDims(InsertAxes(SliceAxis(v, 1, AxisRange(1, t+1)), 1), b, t, t)
	valid := asNumber(p.Valid, v)
	first := BroadcastToDims(InsertAxes(valid, 2), b, t, t)
	last := BroadcastToDims(InsertAxes(valid, 1), b, t, t)
	weight := Mul(Mul(first, last), constLike(g, table, v, b)) // [B,T,T]
	return weighted(Mul(weight, Square(Sub(from, to))), weight, 1, 2)
}

// weighted returns sum x / sum weight over the axes, and 0 where there is no weight: a trajectory without steps, whose
// initial state is terminal.
func weighted(x, weight *Node, axes ...int) *Node {
	total := ReduceSum(weight, axes...)
	return Div(ReduceSum(x, axes...), Where(GreaterThan(total, ZerosLike(total)), total, OnesLike(total)))
}

// constLike makes a table a constant of the dtype of like, repeated for b rows: [B,rows,cols].
func constLike(g *Graph, table [][]float64, like *Node, b int) *Node {
	return BroadcastToDims(InsertAxes(ConstAsDType(g, like.DType(), table), 0), b, len(table), len(table[0]))
}
