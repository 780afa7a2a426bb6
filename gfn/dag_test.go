package gfn_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/gfn/envs"
)

// hostGrid enumerates a hypergrid by hand: its states, and every "from action to" between them.
func hostGrid(side, dims int) (states map[string]bool, edges map[string]bool) {
	states, edges = map[string]bool{}, map[string]bool{}
	cells := [][]int32{make([]int32, dims)}
	for d := range dims {
		for _, c := range slices.Clone(cells) {
			for v := 1; v < side; v++ {
				next := slices.Clone(c)
				next[d] = int32(v)
				cells = append(cells, next)
			}
		}
	}
	for _, c := range cells {
		walking, stopped := fmt.Sprint(c, 0), fmt.Sprint(c, 1)
		states[walking], states[stopped] = true, true
		edges[fmt.Sprint(walking, dims, stopped)] = true
		for d := range dims {
			if int(c[d]) < side-1 {
				next := slices.Clone(c)
				next[d]++
				edges[fmt.Sprint(walking, d, fmt.Sprint(next, 0))] = true
			}
		}
	}
	return states, edges
}

// TestEnumerate compares with an enumeration by hand, on more states than one call of the expanding program takes.
func TestEnumerate(t *testing.T) {
	for _, c := range []struct{ side, dims int }{{4, 2}, {3, 4}, {30, 2}} {
		d := enumerate(t, envs.Hypergrid{Side: c.side, Dims: c.dims})
		states, edges := hostGrid(c.side, c.dims)
		cells, stopped := d.States()[0].Value().([][]int32), d.States()[1].Value().([]int32)
		if len(cells) != len(states) || len(stopped) != d.Len() || len(d.Edges) != len(edges) {
			t.Fatalf("%v: %d states and %d edges, want %d and %d", c, len(cells), len(d.Edges), len(states), len(edges))
		}
		name := func(i int) string { return fmt.Sprint(cells[i], stopped[i]) }
		for i := range cells {
			if !states[name(i)] {
				t.Errorf("%v: no such state: %s", c, name(i))
			}
			delete(states, name(i)) // so that it is not listed twice
		}
		if slices.Max(cells[0]) != 0 || stopped[0] != 0 {
			t.Errorf("%v: state 0 is %s", c, name(0))
		}
		for i, e := range d.Edges {
			if !edges[fmt.Sprint(name(e.From), e.Action, name(e.To))] {
				t.Errorf("%v: no such edge: %s to %s by %d", c, name(e.From), name(e.To), e.Action)
			}
			if e.To <= e.From {
				t.Errorf("%v: edge from %d to %d: not in topological order", c, e.From, e.To)
			}
			if e.Back != e.Action {
				t.Errorf("%v: edge by %d is undone by %d", c, e.Action, e.Back)
			}
			if i > 0 && (e.From < d.Edges[i-1].From || e.From == d.Edges[i-1].From && e.Action <= d.Edges[i-1].Action) {
				t.Errorf("%v: edges %d and %d are not in order", c, i-1, i)
			}
		}
		var objects []int
		for i := range stopped {
			if stopped[i] == 1 {
				objects = append(objects, i)
			}
		}
		if !slices.Equal(objects, d.Objects) {
			t.Errorf("%v: objects %v, want %v", c, d.Objects, objects)
		}
	}
}

// TestEnumerateErrors checks what Enumerate refuses, and that it says so rather than wait forever.
func TestEnumerateErrors(t *testing.T) {
	grid := envs.Hypergrid{Side: 4, Dims: 2} // 32 states
	try := func(env gfn.Env, limit int) error {
		_, err := gfn.Enumerate(backend(), env, []*tensors.Tensor{blank(1)}, limit)
		return err
	}
	for _, limit := range []int{1, 2, 31} {
		if err := try(grid, limit); !errors.Is(err, gfn.ErrTooMany) {
			t.Errorf("limit %d: error %v", limit, err)
		}
	}
	if err := try(grid, 32); err != nil {
		t.Errorf("limit 32: error %v", err)
	}
	for name, next := range map[string][][]int32{
		"back to the start":             {{1}, {0}},
		"later":                         {{1}, {2}, {1}},
		"on the spot":                   {{0}},
		"back to the start and a stop":  {{1, -1}, {0, 2}, {-1, -1}},
		"back to the start and a cycle": {{1, -1}, {0, 2}, {2, -1}},
	} {
		if err := try(network{next: next}, 1000); !errors.Is(err, gfn.ErrCycle) {
			t.Errorf("cycle %s: error %v", name, err)
		}
	}
	// A diamond has none.
	d, err := gfn.Enumerate(backend(), network{next: [][]int32{{1, 2}, {3, -1}, {-1, 3}, {-1, -1}}}, []*tensors.Tensor{blank(1)}, 4)
	if err != nil || d.Len() != 4 || len(d.Edges) != 4 || len(d.Objects) != 1 {
		t.Errorf("diamond: %+v, %v", d, err)
	}
	if err := try(stuck{grid}, 1000); err == nil || errors.Is(err, gfn.ErrTooMany) {
		t.Errorf("panic: error %v", err)
	}
}

// network is a graph of states 0, 1, ... with an action for every column: where it leads, or -1 if it is illegal.
type network struct {
	gfn.Env
	next [][]int32
}

func (e network) Actions() int { return len(e.next[0]) }

func (e network) Initial(x gfn.Batch) gfn.State {
	return gfn.State{Zeros(x[0].Graph(), shapes.Make(dtypes.Int32, x.Size()))}
}

// row reads the row of every state, [B,A].
func (e network) row(s gfn.State) *Node {
	columns := make([]*Node, e.Actions())
	for a := range columns {
		column := make([]int32, len(e.next))
		for i := range column {
			column[i] = e.next[i][a]
		}
		table := BroadcastToDims(Const(s[0].Graph(), [][]int32{column}), s[0].Shape().Dim(0), len(column))
		columns[a] = gfn.Pick(table, s[0])
	}
	return Stack(columns, 1)
}

func (e network) Legal(s gfn.State) *Node {
	next := e.row(s)
	return GreaterOrEqual(next, ZerosLike(next))
}

func (e network) Step(s gfn.State, a *Node) gfn.State { return gfn.State{gfn.Pick(e.row(s), a)} }

func (e network) Back(_ gfn.State, a *Node) *Node { return a }

// stuck panics, with something that is not an error.
type stuck struct{ envs.Hypergrid }

func (e stuck) Step(gfn.State, *Node) gfn.State { panic("stuck") }

// TestRows checks the order of rows, on which everything else rests.
func TestRows(t *testing.T) {
	out, err := CallOnceN(backend(), func(in []*Node) []*Node {
		return append(gfn.Batch(in).Repeat(2), append(gfn.State(in).Repeat(2), gfn.State(in).Tile(2)...)...)
	}, [][]int32{{1, 2}, {3, 4}}, []bool{true, false})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{
		"[[1 2] [1 2] [3 4] [3 4]]", "[true true false false]",
		"[[1 2] [1 2] [3 4] [3 4]]", "[true true false false]",
		"[[1 2] [3 4] [1 2] [3 4]]", "[true false true false]",
	} {
		if got := fmt.Sprint(out[i].Value()); got != want {
			t.Errorf("output %d is %s, want %s", i, got, want)
		}
	}
}

// TestObjectStates checks that the objects are the terminal states, in order.
func TestObjectStates(t *testing.T) {
	d := enumerate(t, envs.Hypergrid{Side: 3, Dims: 2})
	all, some := d.States(), d.ObjectStates()
	cells, objects, stopped := all[0].Value().([][]int32), some[0].Value().([][]int32), some[1].Value().([]int32)
	if len(objects) != 9 {
		t.Fatalf("%d objects", len(objects))
	}
	for i, s := range d.Objects {
		if !slices.Equal(objects[i], cells[s]) || stopped[i] != 1 {
			t.Errorf("object %d is %v, %d, not %v", i, objects[i], stopped[i], cells[s])
		}
	}
}
