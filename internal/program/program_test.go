package program_test

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/model/initializer"

	"github.com/gfnem/gfnem/backend"
	"github.com/gfnem/gfnem/internal/program"
)

// pair is a part of what programs take and return, on either side.
type pair[T any] struct{ A, B T }

type in struct {
	Times int
	X     pair[*tensors.Tensor]
	Rest  []*tensors.Tensor
	Maybe *pair[float32]
	Bias  *tensors.Tensor
	Row   []float32
}

type nodesIn struct {
	Graph *Graph
	Times int
	X     pair[*Node]
	Rest  []*Node
	Maybe *pair[*Node]
	Bias  *Node
	Row   *Node
}

type out struct {
	Never float64
	Sum   float64
	Whole *tensors.Tensor
	Big   bool
	Back  pair[*tensors.Tensor]
	Count int
}

type nodesOut struct {
	Never           *Node
	Sum, Whole, Big *Node
	Back            pair[*Node]
	Count           *Node
}

func build(in nodesIn) nodesOut {
	x := Add(in.X.A, in.X.B)
	for range in.Times - 1 {
		x = Add(x, x)
	}
	for _, r := range in.Rest {
		x = Add(x, r)
	}
	if in.Maybe != nil {
		x = Mul(x, Sub(in.Maybe.A, in.Maybe.B))
	}
	if in.Bias != nil {
		x = Add(x, in.Bias)
	}
	if in.Row != nil {
		x = Add(x, ReduceAllSum(in.Row))
	}
	sum := ReduceAllSum(x)
	return nodesOut{
		Sum: sum, Whole: x, Big: GreaterThan(sum, Const(in.Graph, float32(100))), Back: pair[*Node]{in.X.B, in.X.A},
		Count: Const(in.Graph, int32(x.Shape().Size())),
	}
}

func newSet(t *testing.T) *program.Set {
	b, err := backend.Open("simd")
	if err != nil {
		t.Fatal(err)
	}
	s := program.NewSet(b, nil)
	t.Cleanup(func() { s.Close(); b.Finalize() })
	return s
}

func vector(x ...float32) *tensors.Tensor { return tensors.FromValue(x) }

func TestFieldsKeepTheirNames(t *testing.T) {
	p := program.New[in, out](newSet(t), "test", build)
	x := pair[*tensors.Tensor]{vector(1, 2), vector(10, 20)}
	for _, c := range []struct {
		name string
		in   in
		want float64
	}{
		{"plain", in{Times: 1, X: x}, 33},
		{"another constant", in{Times: 2, X: x}, 66},
		{"a list", in{Times: 1, X: x, Rest: []*tensors.Tensor{vector(1, 1), vector(5, 5)}}, 45},
		{"a part", in{Times: 1, X: x, Maybe: &pair[float32]{5, 2}}, 99},
		{"a leaf that may be left out", in{Times: 1, X: x, Bias: vector(100, 0)}, 133},
		{"a row", in{Times: 1, X: x, Row: []float32{1, 2}, Maybe: &pair[float32]{5, 4}}, 39},
		{"other shapes", in{Times: 1, X: pair[*tensors.Tensor]{vector(1, 2, 3), vector(10, 20, 30)}}, 66},
		{"as before", in{Times: 1, X: x}, 33},
	} {
		got, err := p.Call(c.in)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		n := c.in.X.A.Shape().Size()
		if got.Sum != c.want || got.Big != (c.want > 100) || got.Count != n || !math.IsNaN(got.Never) {
			t.Errorf("%s: got %+v, want a sum of %g of %d", c.name, got, c.want, n)
		}
		if v := tensors.MustCopyFlatData[float32](got.Back.A); v[0] != 10 {
			t.Errorf("%s: the first part to come back is %v", c.name, v)
		}
		if v := tensors.MustCopyFlatData[float32](got.Whole); len(v) != n {
			t.Errorf("%s: the whole is %v", c.name, v)
		}
	}
}

// keyed are parts that come in twos, so that what one has could be taken for what the other has.
type keyed[T, R, N any] struct {
	Words      pair[string]
	Lists      pair[[]T]
	Rows       pair[R]
	Left       pair[T]
	Maybe      pair[*pair[N]]
	Given, End []T
}

type (
	keyedIn    = keyed[*tensors.Tensor, []float32, float32]
	keyedNodes = keyed[*Node, *Node, *Node]
)

// Programs whose arguments differ neither in number nor in shapes are told apart by where these stand.
func TestProgramsAreToldApart(t *testing.T) {
	set := newSet(t)
	p := program.New[keyedIn, pair[float64]](set, "keyed", func(in keyedNodes) pair[*Node] {
		total := ReduceAllSum(in.End[0])
		add := func(weight float64, x *Node) {
			if x != nil {
				total = Add(total, MulScalar(ReduceAllSum(x), weight))
			}
		}
		for _, x := range in.Lists.A {
			add(10, x)
		}
		add(100, in.Rows.A)
		add(1000, in.Left.A)
		if in.Maybe.A != nil {
			add(1e4, in.Maybe.A.A)
		}
		if in.Given != nil {
			total = AddScalar(total, 1e5)
		}
		total = AddScalar(total, float64(1e6*len(in.Words.A)))
		return pair[*Node]{total, total}
	})
	one := vector(1)
	ones, some := []*tensors.Tensor{one}, &pair[float32]{1, 1}
	type (
		lists = pair[[]*tensors.Tensor]
		rows  = pair[[]float32]
	)
	for range 2 { // programs that were closed are compiled again
		for _, c := range []struct {
			in   keyedIn
			want float64
		}{
			{keyedIn{Lists: lists{[]*tensors.Tensor{one, one}, ones}}, 21},
			{keyedIn{Lists: lists{ones, []*tensors.Tensor{one, one}}}, 11},
			{keyedIn{Rows: rows{[]float32{1, 1}, []float32{1}}}, 201},
			{keyedIn{Rows: rows{[]float32{1}, []float32{1, 1}}}, 101},
			{keyedIn{Left: pair[*tensors.Tensor]{A: one}}, 1001},
			{keyedIn{Left: pair[*tensors.Tensor]{B: one}}, 1},
			{keyedIn{Maybe: pair[*pair[float32]]{A: some}}, 10_001},
			{keyedIn{Maybe: pair[*pair[float32]]{B: some}}, 1},
			{keyedIn{Given: []*tensors.Tensor{}}, 100_001},
			{keyedIn{}, 1},
			{keyedIn{Words: pair[string]{"ab", "c"}}, 2_000_001},
			{keyedIn{Words: pair[string]{"a", "bc"}}, 1_000_001},
		} {
			c.in.End = ones
			if got, err := p.Call(c.in); err != nil || got.A != c.want {
				t.Errorf("%+v: got %g, %v, want %g", c.in, got.A, err, c.want)
			}
		}
		set.Close()
	}
}

func TestPanicsBecomeErrors(t *testing.T) {
	type no struct{}
	for _, value := range []any{"a word", error(nil)} {
		_, err := program.Once[no, pair[float64]](newSet(t).Backend, nil, "broken", func(no) pair[*Node] { panic(value) }, no{})
		if err == nil || !strings.Contains(err.Error(), "broken") {
			t.Errorf("panic(%v) became error %v", value, err)
		}
	}
	nothing := func(no) (out pair[*Node]) { return out }
	_, err := program.Once[no, pair[float64]](newSet(t).Backend, nil, "empty", nothing, no{})
	if err == nil || !strings.Contains(err.Error(), "it returns no node") {
		t.Errorf("a program without results: error %v", err)
	}
}

// The error of a graph function says where the user's source is wrong, whoever noticed it.
func TestPanicsNameTheirPlace(t *testing.T) {
	type no struct{ Graph *Graph }
	for name, f := range map[string]func(*Graph) *Node{
		"the user":  func(*Graph) *Node { panic(errors.New("a mistake")) },
		"Go":        func(g *Graph) *Node { return Const(g, []float32{1, slices.Max([]float32{})}) },
		"index":     func(g *Graph) *Node { return Const(g, []float32{1}[:len(t.Name())]) },
		"GoMLX":     func(g *Graph) *Node { return Add(Const(g, []float32{1, 2}), Const(g, []float32{1, 2, 3})) },
		"a product": func(g *Graph) *Node { return Dot(Const(g, []float32{1, 2}), Const(g, []float32{1, 2, 3})).Product() },
	} {
		pc := runtime.FuncForPC(reflect.ValueOf(f).Pointer())
		_, line := pc.FileLine(pc.Entry())
		_, err := program.Once[struct{}, pair[float64]](newSet(t).Backend, nil, "broken", func(in no) pair[*Node] {
			return pair[*Node]{A: f(in.Graph)}
		}, struct{}{})
		if want := fmt.Sprintf("broken: program_test.go:%d: ", line); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: error %v, want one that begins with %q", name, err, want)
		}
	}
}

func TestVariablesAndTimes(t *testing.T) {
	b := newSet(t).Backend
	s := program.NewSet(b, model.NewStore())
	defer s.Close()
	type nodes struct{ Graph *Graph }
	p := program.New[struct{}, pair[float64]](s, "count", func(in nodes) pair[*Node] {
		v := s.Store.RootScope().VariableWithValue("n", float32(0))
		next := OnePlus(v.NodeValue(in.Graph))
		v.SetNodeValue(next)
		return pair[*Node]{next, next}
	})
	s.Measure(true)
	for want := 1.0; want < 4; want++ {
		if got, err := p.Call(struct{}{}); err != nil || got.A != want || got.B != want {
			t.Fatalf("got %v, %v, want %g", got, err, want)
		}
	}
	if s.Times()["count"] <= 0 {
		t.Error("no time was taken")
	}
}

// Declare makes the variables that a call would make, with the same values, and moves none.
func TestDeclare(t *testing.T) {
	type args[T, N any] struct {
		Wide    bool
		X       T
		Numbers N
		Row     N
		Maybe   T
	}
	type hostArgs = args[*tensors.Tensor, []float32]
	called := 0
	build := func(b compute.Backend, store *model.Store) *program.Program[hostArgs, pair[float64]] {
		f := func(in args[*Node, *Node]) pair[*Node] {
			called++
			g, scope := in.X.Graph(), store.Scope("/p")
			width := in.X.Shape().Dim(0) + in.Row.Shape().Dim(0)
			if in.Wide {
				width *= 2
			}
			if in.Maybe != nil {
				scope.VariableWithValue("maybe", []float64{1}).NodeValue(g)
			}
			of := func(name string, from model.VariableInitializer) *model.Variable {
				return scope.WithInitializer(from).VariableWithShape(name, shapes.Make(dtypes.Float32, width))
			}
			ones, count := of("ones", initializer.One), of("count", initializer.Zero)
			count.SetNodeValue(OnePlus(count.NodeValue(g)))
			sum := ReduceAllSum(Mul(ones.NodeValue(g), count.NodeValue(g)))
			return pair[*Node]{sum, sum}
		}
		return program.New[hostArgs, pair[float64]](program.NewSet(b, store), "p", f)
	}
	b, declared, plain := newSet(t).Backend, model.NewStore(), model.NewStore()
	if err := declared.SetRNGStateFromSeed(3); err != nil {
		t.Fatal(err)
	}
	random := func() string { return declared.GetVariable("/" + model.RNGStateVariableName).MustValue().GoStr() }
	before := random()
	in := hostArgs{Wide: true, X: tensors.FromValue([]int32{1, 2}), Numbers: []float32{1}, Row: []float32{1, 2, 3}}
	p, q := build(b, declared), build(b, plain)
	for range 2 {
		if err := p.Declare(in); err != nil {
			t.Fatal(err)
		}
	}
	if called != 2 || random() != before || declared.NumVariables() != 3 {
		t.Errorf("%d calls, %d variables", called, declared.NumVariables())
	}
	for name, want := range map[string]float32{"/p/ones": 1, "/p/count": 0} {
		got := tensors.MustCopyFlatData[float32](declared.GetVariable(name).MustValue())
		if !slices.Equal(got, slices.Repeat([]float32{want}, 10)) {
			t.Errorf("%s starts at %v", name, got)
		}
	}
	for range 3 {
		one, err := p.Call(in)
		if err != nil {
			t.Fatal(err)
		}
		if two, err := q.Call(in); err != nil || one != two {
			t.Errorf("got %v, want %v (%v)", one, two, err)
		}
	}
	in.Maybe = in.X
	if err := p.Declare(in); err != nil || declared.NumVariables() != 4 {
		t.Errorf("%d variables (%v)", declared.NumVariables(), err)
	}
	broken := func(pair[*Node]) pair[*Node] { panic("broken") }
	bad := program.New[pair[float32], pair[float64]](program.NewSet(b, nil), "bad", broken)
	err := bad.Declare(pair[float32]{})
	if err == nil || !strings.Contains(err.Error(), `"bad": program_test.go:`) || !strings.HasSuffix(err.Error(), ": broken") {
		t.Errorf("error %v", err)
	}
}

func TestMismatches(t *testing.T) {
	s := newSet(t)
	type other struct{ A, C *tensors.Tensor }
	type secret struct{ A, b *tensors.Tensor }
	type secretNodes struct{ A, b *Node }
	_, _ = secret{}.b, secretNodes{}.b
	for name, f := range map[string]func(){
		"names":  func() { program.New[other, pair[float64]](s, "p", func(p pair[*Node]) pair[*Node] { return p }) },
		"more":   func() { program.New[in, pair[float64]](s, "p", func(p pair[*Node]) pair[*Node] { return p }) },
		"kinds":  func() { program.New[pair[int], pair[float64]](s, "p", func(p pair[int64]) pair[*Node] { panic("") }) },
		"result": func() { program.New[pair[int], pair[string]](s, "p", func(p pair[*Node]) pair[*Node] { return p }) },
		"hidden": func() { program.New[secret, secret](s, "p", func(p secretNodes) secretNodes { return p }) },
	} {
		func() {
			defer func() {
				if r := recover(); r == nil || !strings.Contains(r.(error).Error(), `program "p"`) {
					t.Errorf("%s: recovered %v", name, r)
				}
			}()
			f()
		}()
	}
}
