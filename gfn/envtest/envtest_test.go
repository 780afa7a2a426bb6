package envtest_test

import (
	"strings"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/gfn/envs"
	"github.com/gfnem/gfnem/gfn/envtest"
)

func TestLaws(t *testing.T) {
	for _, c := range []struct {
		name string
		env  gfn.Env
	}{
		{"grid 4x4", envs.Hypergrid{Side: 4, Dims: 2}},
		{"grid 3^4", envs.Hypergrid{Side: 3, Dims: 4}},
		{"grid 10^4, by walks", envs.Hypergrid{Side: 10, Dims: 4}},
		{"uniform sequence", envs.Uniform(4, 3)},
		{"mixed sequence", envs.Sequence{Sizes: []int{2, 4, 1, 3}}},
		{"long sequence, by walks", envs.Uniform(12, 5)},
		{"subset", envs.Subset{Items: 6, Size: 3}},
		{"whole set", envs.Subset{Items: 4, Size: 4}},
		{"large subset, by walks", envs.Subset{Items: 30, Size: 7}},
		{"longer than needed", longer{envs.Hypergrid{Side: 3, Dims: 2}}},
	} {
		t.Run(c.name, func(t *testing.T) { envtest.Run(t, c.env) })
	}
}

// TestObservations checks an environment whose initial state depends on x, the empty object included.
func TestObservations(t *testing.T) {
	x := tensors.FromFlatDataAndDimensions([]int32{3, 0, 4, 1}, 4, 1)
	envtest.Run(t, ragged{envs.Uniform(4, 2)}, x)
}

// TestBroken checks that every law can be broken, and that nothing else is then reported.
func TestBroken(t *testing.T) {
	b, err := compute.NewWithConfig("go:ops_sequential")
	if err != nil {
		t.Fatal(err)
	}
	small, large := envs.Hypergrid{Side: 3, Dims: 2}, envs.Hypergrid{Side: 6, Dims: 5}
	for _, c := range []struct {
		name string
		env  func(gfn.Env) gfn.Env
		laws []string // the beginnings of the lines
	}{
		{"legal is a number", func(e gfn.Env) gfn.Env { return numericLegal{e} }, []string{"shapes and dtypes"}},
		{"back is int64", func(e gfn.Env) gfn.Env { return longBack{e} }, []string{"shapes and dtypes"}},
		{"step drops a tensor", func(e gfn.Env) gfn.Env { return lossyStep{e} }, []string{"shapes and dtypes"}},
		{"initial state is a scalar", func(e gfn.Env) gfn.Env { return scalarInitial{e} }, []string{"shapes and dtypes"}},
		{"initial state is nothing", func(e gfn.Env) gfn.Env { return noInitial{e} }, []string{"shapes and dtypes"}},
		{"action cannot be built", func(e gfn.Env) gfn.Env { return panics{e} }, []string{"methods do not fail"}},
		{"start cannot be built", func(e gfn.Env) gfn.Env { return noStart{e} }, []string{"methods do not fail"}},
		{"illegal action divides by 0", func(e gfn.Env) gfn.Env { return divides{e} }, []string{"methods do not fail"}},
		{"rows share their legality", func(e gfn.Env) gfn.Env { return sharedLegal{e} }, []string{"rows of a batch", "Redo"}},
		{"way back from the start", func(e gfn.Env) gfn.Env { return backFromStart{e} }, []string{"the initial state", "*"}},
		{"no way back", func(e gfn.Env) gfn.Env { return oneWay{e} }, []string{"every state but", "Back"}},
		{"wrong back", func(e gfn.Env) gfn.Env { return wrongBack{e} }, []string{"Back"}},
		{"wrong redo", func(e gfn.Env) gfn.Env { return wrongRedo{e} }, []string{"Redo"}},
		{"two actions, one child", func(e gfn.Env) gfn.Env { return twoActions{e} }, []string{"two actions"}},
		{"two ways back, one parent", func(e gfn.Env) gfn.Env { return twoBacks{e} }, []string{"two backward actions"}},
		{"too few steps", func(e gfn.Env) gfn.Env { return shorter{e} }, []string{"every path ends"}},
	} {
		for _, size := range []struct {
			name string
			env  gfn.Env
		}{{"all states", small}, {"walks", large}} {
			t.Run(c.name+", "+size.name, func(t *testing.T) {
				expect(t, envtest.Check(b, c.env(size.env)), c.laws)
			})
		}
	}
	t.Run("cycle", func(t *testing.T) {
		expect(t, envtest.Check(b, ring{small}), []string{"every path ends", "*"})
	})
	t.Run("parent out of reach", func(t *testing.T) {
		expect(t, envtest.Check(b, corner{small}), []string{"backward actions lead to states", "the initial state"})
	})
	t.Run("initial state depends on other rows", func(t *testing.T) {
		x := tensors.FromFlatDataAndDimensions([]int32{1, 3}, 2, 1)
		expect(t, envtest.Check(b, largest{ragged{envs.Uniform(4, 2)}}, x), []string{"rows of a batch"})
	})
}

// divides fails on illegal actions.
type divides struct{ gfn.Env }

func (e divides) Step(s gfn.State, a *Node) gfn.State {
	legal := gfn.Pick(ConvertDType(e.Legal(s), dtypes.Int32), a)
	next := e.Env.Step(s, a)
	return gfn.State{next[0], Div(next[1], legal)}
}

// expect wants one line for each law, and no more; "*" stands for any other law that cannot but break with it.
func expect(t *testing.T, lines, laws []string) {
	t.Helper()
	for _, l := range lines {
		t.Log(l)
	}
	for _, law := range laws {
		found := false
		for _, l := range lines {
			found = found || law == "*" || strings.HasPrefix(l, law)
		}
		if !found {
			t.Errorf("not reported: %s...", law)
		}
	}
	if len(lines) > len(laws) {
		t.Errorf("%d laws reported, want %d", len(lines), len(laws))
	}
}

// ragged is a sequence of x tokens, at most as many as the sequence has; the rest is blocked.
type ragged struct{ envs.Sequence }

const blocked = -2

func (e ragged) Initial(x gfn.Batch) gfn.State {
	open := e.Sequence.Initial(x)[0]
	inside := LessThan(Iota(open.Graph(), open.Shape(), 1), BroadcastToShape(x[0], open.Shape()))
	return gfn.State{Where(inside, open, AddScalar(ZerosLike(open), blocked))}
}

func (e ragged) Legal(s gfn.State) *Node {
	unset := ConvertDType(Equal(s[0], AddScalar(ZerosLike(s[0]), envs.Unset)), dtypes.Int32)
	more := GreaterThan(ReduceAndKeep(unset, ReduceSum, 1), Scalar(s[0].Graph(), dtypes.Int32, 0))
	legal := e.Sequence.Legal(s)
	return LogicalAnd(legal, BroadcastToShape(more, legal.Shape()))
}

type longer struct{ gfn.Env }

func (e longer) Steps() int { return e.Env.Steps() + 3 }

// The broken ones, each in one thing.

type numericLegal struct{ gfn.Env }

func (e numericLegal) Legal(s gfn.State) *Node { return ConvertDType(e.Env.Legal(s), dtypes.Float32) }

type longBack struct{ gfn.Env }

func (e longBack) Back(s gfn.State, a *Node) *Node {
	return ConvertDType(e.Env.Back(s, a), dtypes.Int64)
}

type lossyStep struct{ gfn.Env }

func (e lossyStep) Step(s gfn.State, a *Node) gfn.State { return e.Env.Step(s, a)[:1] }

type scalarInitial struct{ gfn.Env }

func (e scalarInitial) Initial(x gfn.Batch) gfn.State {
	return gfn.State{Scalar(x[0].Graph(), dtypes.Int32, 0)}
}

type noInitial struct{ gfn.Env }

func (e noInitial) Initial(x gfn.Batch) gfn.State { return nil }

type panics struct{ gfn.Env }

func (e panics) Undo(s gfn.State, b *Node) gfn.State { panic("cannot undo") }

type noStart struct{ gfn.Env }

func (e noStart) Initial(x gfn.Batch) gfn.State { panic("cannot start") }

// sharedLegal allows what is legal in all rows.
type sharedLegal struct{ gfn.Env }

func (e sharedLegal) Legal(s gfn.State) *Node {
	legal := e.Env.Legal(s)
	all := ReduceAndKeep(ConvertDType(legal, dtypes.Int32), ReduceMin, 0)
	return BroadcastToShape(LogicalNot(IsZero(all)), legal.Shape())
}

type backFromStart struct{ gfn.Env }

func (e backFromStart) LegalBack(s gfn.State) *Node {
	legal := e.Env.LegalBack(s)
	start := IsZero(ReduceAndKeep(ConvertDType(legal, dtypes.Int32), ReduceSum, 1))
	return LogicalOr(legal, LogicalAnd(firstColumn(legal), BroadcastToShape(start, legal.Shape())))
}

// oneWay forgets that stopping can be undone.
type oneWay struct{ gfn.Env }

func (e oneWay) LegalBack(s gfn.State) *Node {
	legal := e.Env.LegalBack(s)
	return LogicalAnd(legal, BroadcastToShape(InsertAxes(IsZero(s[1]), 1), legal.Shape()))
}

type wrongBack struct{ gfn.Env }

func (e wrongBack) Back(s gfn.State, a *Node) *Node { return swap(e.Env.Back(s, a)) }

type wrongRedo struct{ gfn.Env }

func (e wrongRedo) Redo(s gfn.State, b *Node) *Node { return swap(e.Env.Redo(s, b)) }

// swap exchanges actions 0 and 1.
func swap(a *Node) *Node {
	one := OnesLike(a)
	return Where(LessOrEqual(a, one), Sub(one, a), a)
}

// twoActions has two numbers for every action.
type twoActions struct{ gfn.Env }

func (e twoActions) Actions() int { return 2 * e.Env.Actions() }
func (e twoActions) Legal(s gfn.State) *Node {
	return Concatenate([]*Node{e.Env.Legal(s), e.Env.Legal(s)}, 1)
}
func (e twoActions) one(a *Node) *Node { return ModScalar(a, e.Env.Actions()) }
func (e twoActions) Step(s gfn.State, a *Node) gfn.State {
	return e.Env.Step(s, e.one(a))
}
func (e twoActions) Back(s gfn.State, a *Node) *Node { return e.Env.Back(s, e.one(a)) }

// twoBacks has two numbers for every backward action.
type twoBacks struct{ gfn.Env }

func (e twoBacks) BackActions() int { return 2 * e.Env.BackActions() }
func (e twoBacks) LegalBack(s gfn.State) *Node {
	return Concatenate([]*Node{e.Env.LegalBack(s), e.Env.LegalBack(s)}, 1)
}
func (e twoBacks) one(b *Node) *Node { return ModScalar(b, e.Env.BackActions()) }
func (e twoBacks) Undo(s gfn.State, b *Node) gfn.State {
	return e.Env.Undo(s, e.one(b))
}
func (e twoBacks) Redo(s gfn.State, b *Node) *Node { return e.Env.Redo(s, e.one(b)) }

type shorter struct{ gfn.Env }

func (e shorter) Steps() int { return 1 }

// ring is a grid whose first axis is a ring: the walk can go around.
type ring struct{ envs.Hypergrid }

func (e ring) wrap(s gfn.State) gfn.State {
	return gfn.State{ModScalar(AddScalar(s[0], e.Side), e.Side), s[1]}
}
func (e ring) Step(s gfn.State, a *Node) gfn.State { return e.wrap(e.Hypergrid.Step(s, a)) }
func (e ring) Undo(s gfn.State, b *Node) gfn.State { return e.wrap(e.Hypergrid.Undo(s, b)) }
func (e ring) Legal(s gfn.State) *Node {
	legal := e.Hypergrid.Legal(s)
	walking := BroadcastToShape(InsertAxes(IsZero(s[1]), 1), legal.Shape())
	return LogicalAnd(LogicalOr(legal, firstColumn(legal)), walking)
}

// firstColumn is true in the first column.
func firstColumn(like *Node) *Node {
	return IsZero(Iota(like.Graph(), shapes.Make(dtypes.Int32, like.Shape().Dimensions...), 1))
}

// corner starts beside the corner, which its backward actions reach all the same.
type corner struct{ envs.Hypergrid }

func (e corner) Initial(x gfn.Batch) gfn.State {
	s := e.Hypergrid.Initial(x)
	return e.Step(s, Zeros(x[0].Graph(), s[1].Shape()))
}

// largest starts every row like the longest one.
type largest struct{ ragged }

func (e largest) Initial(x gfn.Batch) gfn.State {
	return e.ragged.Initial(gfn.Batch{BroadcastToShape(ReduceAndKeep(x[0], ReduceMax, 0), x[0].Shape())})
}
