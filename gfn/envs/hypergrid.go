package envs

import (
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/internal/blame"
	"github.com/gfnem/gfnem/internal/program"
)

// Hypergrid walks from the corner 0 of a grid of Side^Dims cells, one coordinate up at a time, until it stops (Bengio,
// Jain, Korablyov, Precup, Bengio, "Flow Network based Generative Models for Non-Iterative Diverse Candidate
// Generation", 2021). Trajectories differ in length, and many lead to the same cell.
//
// A state is two tensors: the cell [B,Dims] int32, and whether the walk has stopped [B] int32. Action d < Dims raises
// coordinate d, action Dims stops; backward actions have the same numbers.
type Hypergrid struct{ Side, Dims int }

var _ gfn.Env = Hypergrid{}

// Steps implements gfn.Env.
func (e Hypergrid) Steps() int { return e.Dims*(e.Side-1) + 1 }

// Actions implements gfn.Env.
func (e Hypergrid) Actions() int { return e.Dims + 1 }

// BackActions implements gfn.Env.
func (e Hypergrid) BackActions() int { return e.Dims + 1 }

// grid is a state. Stopped is 0 or 1.
type grid struct{ Cell, Stopped *Node }

func gridOf(s gfn.State) grid { return program.Of[grid](s) }

func (s grid) state() gfn.State { return program.Nodes(s) }

// Initial implements gfn.Env.
func (e Hypergrid) Initial(x gfn.Batch) gfn.State {
	if e.Side < 1 || e.Dims < 1 {
		blame.Panicf("envs: a Hypergrid of side %d in %d dimensions", e.Side, e.Dims)
	}
	g := x[0].Graph()
	return grid{Zeros(g, shapes.Make(index, x.Size(), e.Dims)), Zeros(g, shapes.Make(index, x.Size()))}.state()
}

// Legal implements gfn.Env.
func (e Hypergrid) Legal(state gfn.State) *Node {
	s := gridOf(state)
	room := LessThan(s.Cell, AddScalar(ZerosLike(s.Cell), e.Side-1))
	walking := InsertAxes(IsZero(s.Stopped), 1)
	legal := Concatenate([]*Node{room, OnesLike(walking)}, 1)
	return LogicalAnd(legal, BroadcastToShape(walking, legal.Shape()))
}

// Step implements gfn.Env.
func (e Hypergrid) Step(s gfn.State, a *Node) gfn.State { return e.move(gridOf(s), a, 1) }

// LegalBack implements gfn.Env.
func (e Hypergrid) LegalBack(state gfn.State) *Node {
	s := gridOf(state)
	stopped := InsertAxes(LogicalNot(IsZero(s.Stopped)), 1)
	down := GreaterThan(s.Cell, ZerosLike(s.Cell))
	walking := BroadcastToShape(LogicalNot(stopped), down.Shape())
	return Concatenate([]*Node{LogicalAnd(down, walking), stopped}, 1)
}

// Undo implements gfn.Env.
func (e Hypergrid) Undo(s gfn.State, b *Node) gfn.State { return e.move(gridOf(s), b, -1) }

func (e Hypergrid) move(s grid, a *Node, by int) gfn.State {
	cell := ConvertDType(at(s.Cell, a), index)
	stop := ConvertDType(Equal(a, AddScalar(ZerosLike(a), e.Dims)), index)
	return grid{Add(s.Cell, MulScalar(cell, by)), Add(s.Stopped, MulScalar(stop, by))}.state()
}

// Back implements gfn.Env.
func (e Hypergrid) Back(s gfn.State, a *Node) *Node { return a }

// Redo implements gfn.Env.
func (e Hypergrid) Redo(s gfn.State, b *Node) *Node { return b }

// LogReward is the usual test reward of a cell, high near the corners and low in between:
//
//	R = R0 + 1/2 prod_d [ 0.25 < |u_d| ] + 2 prod_d [ 0.3 < |u_d| < 0.4 ],  u_d = cell_d / (Side-1) - 1/2
//
// with R0 = 0.1.
func (e Hypergrid) LogReward(_ gfn.Batch, s gfn.State) *Node {
	// In whole numbers, so that cells on a threshold do not depend on rounding: |u_d| is v / 20(Side-1).
	last := e.Side - 1
	v := MulScalar(Abs(AddScalar(MulScalar(gridOf(s).Cell, 2), -last)), 10)
	inside := func(lo, hi int) *Node { // 1 if lo < 20 |u_d| < hi for all d
		in := LogicalAnd(
			GreaterThan(v, Scalar(v.Graph(), v.DType(), lo*last)), LessThan(v, Scalar(v.Graph(), v.DType(), hi*last)))
		return ConvertDType(ReduceMin(ConvertDType(in, index), 1), dtypes.Float64)
	}
	r := AddScalar(Add(MulScalar(inside(5, 11), 0.5), MulScalar(inside(6, 8), 2)), 0.1)
	return Log(r)
}
