package gfn

import (
	"errors"
	"fmt"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/internal/program"
	"github.com/gfnem/gfnem/internal/rows"
)

// DAG lists all states of a small environment and the actions between them, for exact answers on the host. State 0 is
// the initial one, and the others come in topological order: every edge leads to a higher index.
type DAG struct {
	Env   Env
	Edges []Edge // ordered by From, then Action
	// Objects are the indices of the terminal states, in increasing order.
	Objects []int

	states []*tensors.Tensor // [S,...]
}

// Edge is one legal action, and the backward action that undoes it.
type Edge struct{ From, To, Action, Back int }

// Len returns S, the number of states.
func (d *DAG) Len() int { return d.states[0].Shape().Dim(0) }

// States returns all states as tensors of S rows, to be fed to graphs.
func (d *DAG) States() []*tensors.Tensor { return d.states }

// What Enumerate fails with if an environment has more states than it may list, or if a path comes back to a state.
var (
	ErrTooMany = errors.New("more states")
	ErrCycle   = errors.New("actions form a cycle")
)

// ObjectStates returns the terminal states alone, as tensors of len(Objects) rows.
func (d *DAG) ObjectStates() []*tensors.Tensor { return rows.Take(d.states, d.Objects) }

// chunk is the number of states that one call of the expanding program takes.
const chunk = 128

// Enumerate finds all states that can be reached from the initial state of one observation x (tensors of one row), and
// fails with ErrTooMany if there are more than limit, with ErrCycle if the environment breaks its laws.
func Enumerate(b compute.Backend, env Env, x []*tensors.Tensor, limit int) (*DAG, error) {
	all, _, err := EnumerateEach(b, env, x, limit)
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// EnumerateEach is Enumerate for every row of x: it returns one DAG for each initial state that there is, in the order in
// which they come, and says which of them each row has. The limit is that of one DAG.
func EnumerateEach(b compute.Backend, env Env, x []*tensors.Tensor, limit int) (all []*DAG, of []int, err error) {
	s := program.NewSet(b, nil)
	defer s.Close()
	like, err := program.New[[]*tensors.Tensor, []*tensors.Tensor](s, "initial state", check(env).Initial).Call(x)
	if err != nil {
		return nil, nil, fmt.Errorf("enumerate states: %w", err)
	}
	expand := program.New[[]*tensors.Tensor, children[*tensors.Tensor]](s, "children", func(s State) children[*Node] {
		return expand(check(env), s)
	})
	known := map[string]int{}
	for _, initial := range rows.Of(like) {
		i, ok := known[initial]
		if !ok {
			e := explorer{env: check(env), like: like, index: map[string]int{}}
			d, err := e.explore(expand, initial, limit)
			if err != nil {
				return nil, nil, fmt.Errorf("enumerate states: %w", err)
			}
			i, all = len(all), append(all, d)
			known[initial] = i
		}
		of = append(of, i)
	}
	return all, of, nil
}

// explore lists the states from an initial one on.
func (e *explorer) explore(
	expand *program.Program[[]*tensors.Tensor, children[*tensors.Tensor]], initial string, limit int,
) (*DAG, error) {
	e.add(initial)
	for done := 0; done < len(e.rows); {
		to := min(done+chunk, len(e.rows))
		c, err := expand.Call(rows.Join(e.like, e.rows[done:to], chunk))
		if err != nil {
			return nil, err
		}
		e.visit(done, to, c)
		if len(e.rows) > limit {
			return nil, fmt.Errorf("%w than %d", ErrTooMany, limit)
		}
		done = to
	}
	return e.sorted()
}

// explorer is a breadth-first search whose steps are graph calls. A state is known by the bytes of its tensors.
type explorer struct {
	env   checked
	like  []*tensors.Tensor // states
	rows  []string
	index map[string]int
	edges []Edge
}

func (e *explorer) add(row string) int {
	if i, ok := e.index[row]; ok {
		return i
	}
	e.index[row] = len(e.rows)
	e.rows = append(e.rows, row)
	return len(e.rows) - 1
}

// children says which actions are legal in a chunk of states, what undoes them and where they lead.
type children[T any] struct {
	Legal  T   // [N,A]
	Back   T   // [N*A]
	States []T // [N*A,...]
}

func expand(env checked, s State) children[*Node] {
	a := env.Actions()
	legal := ConvertDType(env.Legal(s), dtypes.Int32)
	n := legal.Shape().Dim(0)
	wide, actions := s.Repeat(a), Reshape(Iota(legal.Graph(), shapes.Make(actionType, n, a), 1), n*a)
	return children[*Node]{legal, env.Back(wide, actions), env.Step(wide, actions)}
}

func (e *explorer) visit(from, to int, c children[*tensors.Tensor]) {
	ints := tensors.MustCopyFlatData[int32]
	legal, back, next := ints(c.Legal), ints(c.Back), rows.Of(c.States)
	a := e.env.Actions()
	for i := from; i < to; i++ {
		for act := range a {
			if k := (i-from)*a + act; legal[k] != 0 {
				e.edges = append(e.edges, Edge{From: i, To: e.add(next[k]), Action: act, Back: int(back[k])})
			}
		}
	}
}

// sorted renumbers the states topologically (Kahn's algorithm, in order of discovery).
func (e *explorer) sorted() (*DAG, error) {
	parents := make([]int, len(e.rows))
	children := make([][]Edge, len(e.rows))
	for _, ed := range e.edges {
		parents[ed.To]++
		children[ed.From] = append(children[ed.From], ed)
	}
	if parents[0] > 0 {
		return nil, ErrCycle
	}
	rank := make([]int, len(e.rows))
	order := []int{0}
	for done := 0; done < len(order); done++ {
		for _, ed := range children[order[done]] {
			if parents[ed.To]--; parents[ed.To] == 0 {
				order = append(order, ed.To)
			}
		}
	}
	if len(order) != len(e.rows) {
		return nil, ErrCycle
	}
	sorted := make([]string, len(order))
	d := &DAG{Env: e.env.Env}
	for i, from := range order {
		rank[from], sorted[i] = i, e.rows[from]
	}
	for i, from := range order {
		for _, ed := range children[from] {
			d.Edges = append(d.Edges, Edge{From: i, To: rank[ed.To], Action: ed.Action, Back: ed.Back})
		}
		if len(children[from]) == 0 {
			d.Objects = append(d.Objects, i)
		}
	}
	d.states = rows.Join(e.like, sorted, len(sorted))
	return d, nil
}
