package gfn_test

import (
	"math"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/gfn"
)

// allPaths lists every complete trajectory as its edges.
func allPaths(d *gfn.DAG) [][]int {
	children := make([][]int, d.Len())
	for i, e := range d.Edges {
		children[e.From] = append(children[e.From], i)
	}
	var out [][]int
	var visit func(state int, path []int)
	visit = func(state int, path []int) {
		if len(children[state]) == 0 {
			out = append(out, append([]int{}, path...))
		}
		for _, e := range children[state] {
			visit(d.Edges[e].To, append(path, e))
		}
	}
	visit(0, nil)
	return out
}

// object returns which object a path leads to, as an index into Objects.
func object(d *gfn.DAG, path []int) int {
	last := 0
	if len(path) > 0 {
		last = d.Edges[path[len(path)-1]].To
	}
	for i, s := range d.Objects {
		if s == last {
			return i
		}
	}
	panic("not an object")
}

// total sums values by edge over a path.
func total(byEdge []float64, path []int) float64 {
	sum := 0.0
	for _, e := range path {
		sum += byEdge[e]
	}
	return sum
}

// forwardWeights returns P_F of every path.
func forwardWeights(paths [][]int, t gfn.Table) []float64 {
	w := make([]float64, len(paths))
	for i, p := range paths {
		w[i] = math.Exp(total(t.LogPF, p))
	}
	return w
}

// backwardWeights returns R/Z P_B of every path.
func backwardWeights(d *gfn.DAG, paths [][]int, t gfn.Table, logR []float64) []float64 {
	target := gfn.Normalise(logR)
	w := make([]float64, len(paths))
	for i, p := range paths {
		w[i] = target[object(d, p)] * math.Exp(total(t.LogPB, p))
	}
	return w
}

// actionTable holds the actions of paths, [N,T] int32; what is beyond the end of a path is 0.
func actionTable(d *gfn.DAG, paths [][]int) *tensors.Tensor {
	steps := d.Env.Steps()
	flat := make([]int32, len(paths)*steps)
	for i, p := range paths {
		for t, e := range p {
			flat[i*steps+t] = int32(d.Edges[e].Action)
		}
	}
	return tensors.FromFlatDataAndDimensions(flat, len(paths), steps)
}

// replay takes given actions, [N,T], from the initial state on.
func replay(n gfn.Net, x gfn.Batch, actions *Node) gfn.Trajectory {
	s := n.Env.Initial(x)
	tr := gfn.Trajectory{X: x, States: []gfn.State{s}}
	for t := range n.Env.Steps() {
		a := Squeeze(SliceAxis(actions, 1, AxisElem(t)), 1)
		valid := LogicalNot(gfn.Terminal(n.Env, s))
		tr.Action = append(tr.Action, a)
		tr.Back = append(tr.Back, n.Env.Back(s, a))
		tr.Valid = append(tr.Valid, valid)
		s = gfn.ChooseState(valid, n.Env.Step(s, a), s)
		tr.States = append(tr.States, s)
	}
	return tr
}

// taken is what follow needs: the actions of trajectories, and which of them are valid.
type taken[T any] struct{ Action, Valid T }

func record(tr gfn.Trajectory) taken[*Node] {
	return taken[*Node]{Stack(tr.Action, 1), Stack(tr.Valid, 1)}
}

// follow turns recorded trajectories that start in the initial state into the edges of each.
func follow(d *gfn.DAG, by taken[[]float64]) [][]int {
	type move struct{ from, action int }
	edge := map[move]int{}
	for i, e := range d.Edges {
		edge[move{e.From, e.Action}] = i
	}
	steps := d.Env.Steps()
	paths := make([][]int, len(by.Action)/steps)
	for r := range paths {
		state := 0
		for t := range steps {
			if by.Valid[r*steps+t] == 0 {
				continue
			}
			e, ok := edge[move{state, int(by.Action[r*steps+t])}]
			if !ok {
				panic("illegal action")
			}
			paths[r] = append(paths[r], e)
			state = d.Edges[e].To
		}
	}
	return paths
}
