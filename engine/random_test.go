package engine_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strconv"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	_ "github.com/gomlx/compute/gobackend"
	"github.com/gomlx/compute/shapes"
)

// twin is a value of the same random graph on the backends that are compared.
type twin struct {
	v     []compute.Value
	shape shapes.Shape
	exact bool    // every backend has the same bits
	size  float64 // bound of the magnitude
	depth int     // inexact operations on the way
}

// grower builds a random graph on several backends at once.
type grower struct {
	t      *testing.T
	r      *rand.Rand
	fns    []compute.Function
	pool   []twin
	inputs []any
	shapes []shapes.Shape
	trace  []string
	long   bool // first axes are long enough for several blocks
}

var (
	intTypes = []dtypes.DType{dtypes.Int32, dtypes.Int64, dtypes.Uint32, dtypes.Uint64, dtypes.Int8, dtypes.Uint8}
)

func pickOne[T any](r *rand.Rand, s []T) T { return s[r.IntN(len(s))] }

func (g *grower) dims() []int {
	d := make([]int, g.r.IntN(4))
	for i := range d {
		d[i] = pickOne(g.r, []int{1, 2, 3, 4, 5, 7})
	}
	if g.long && len(d) > 1 {
		d[0] = 700
	}
	return d
}

// data returns small whole numbers of a type.
func (g *grower) data(s shapes.Shape) any {
	v := reflect.MakeSlice(reflect.SliceOf(s.DType.GoType()), s.Size(), s.Size())
	for i := range s.Size() {
		x := g.r.IntN(9) - 4
		switch e := v.Index(i); {
		case s.DType == dtypes.Bool:
			e.SetBool(x > 0)
		case s.DType.IsFloat():
			e.SetFloat(float64(x))
		case s.DType.IsUnsigned():
			e.SetUint(uint64(x + 4))
		default:
			e.SetInt(int64(x))
		}
	}
	return v.Interface()
}

// add records an operation; its result joins the pool if the first backend accepts it.
func (g *grower) add(name string, exact bool, size float64, depth int, build func(f compute.Function, i int) (compute.Value, error)) {
	if size > 1<<20 || depth > 3 {
		return
	}
	n := twin{exact: exact, size: size, depth: depth}
	for i, f := range g.fns {
		v, err := build(f, i)
		if i == 0 {
			if err != nil {
				return
			}
			if n.shape, err = f.Shape(v); err != nil || n.shape.Size() > 4000 && !g.long || n.shape.Size() > 80000 {
				return
			}
		} else if compute.IsNotImplemented(err) {
			return // the go backend finds out when it runs
		} else if err != nil {
			g.t.Fatalf("%v\n%s of %d values: %+v", g.trace, name, len(g.pool), err)
		} else if s, err := f.Shape(v); err != nil || !s.Equal(n.shape) {
			g.t.Fatalf("%s: shape %s, want %s (%v)", name, s, n.shape, err)
		}
		n.v = append(n.v, v)
	}
	g.trace = append(g.trace, fmt.Sprintf("#%d %s -> %s", len(g.pool), name, n.shape))
	g.pool = append(g.pool, n)
}

func (g *grower) param() {
	t := pickOne(g.r, []dtypes.DType{dtypes.Float32, dtypes.Float32, dtypes.Float64, dtypes.Int32, dtypes.Bool, pickOne(g.r, intTypes)})
	s := shapes.Make(t, g.dims()...)
	data := g.data(s)
	if g.r.IntN(4) == 0 {
		g.add("Constant", true, 8, 0, func(f compute.Function, _ int) (compute.Value, error) { return f.Constant(data, s.Dimensions...) })
		return
	}
	k := len(g.inputs)
	g.inputs, g.shapes = append(g.inputs, data), append(g.shapes, s)
	g.add("Parameter", true, 8, 0, func(f compute.Function, _ int) (compute.Value, error) {
		return f.Parameter(strconv.Itoa(k), s, nil)
	})
}

// like returns a value of the same type that can be combined with x elementwise.
func (g *grower) like(x twin) twin {
	var fit []twin
	for _, y := range g.pool {
		if y.shape.DType != x.shape.DType {
			continue
		}
		ok := y.shape.IsScalar() || x.shape.IsScalar() || y.shape.Rank() == x.shape.Rank()
		for i := 0; ok && !y.shape.IsScalar() && !x.shape.IsScalar() && i < x.shape.Rank(); i++ {
			a, b := x.shape.Dimensions[i], y.shape.Dimensions[i]
			ok = a == b || a == 1 || b == 1
		}
		if ok {
			fit = append(fit, y)
		}
	}
	return pickOne(g.r, fit)
}

// unary operations by name; the first group is exact on whole numbers.
var (
	exactUnary = []func(f compute.Function, x compute.Value) (compute.Value, error){
		compute.Function.Neg, compute.Function.Abs, compute.Function.Sign, compute.Function.Floor, compute.Function.Ceil,
		compute.Function.Round, compute.Function.BitwiseNot, compute.Function.BitCount, compute.Function.Clz,
		compute.Function.LogicalNot, compute.Function.IsFinite, compute.Function.IsNaN, compute.Function.Identity,
	}
	smoothUnary = []func(f compute.Function, x compute.Value) (compute.Value, error){
		compute.Function.Exp, compute.Function.Tanh, compute.Function.Logistic, compute.Function.Sin, compute.Function.Cos,
		compute.Function.Erf, compute.Function.Expm1,
	}
	positiveUnary = []func(f compute.Function, x compute.Value) (compute.Value, error){
		compute.Function.Log, compute.Function.Log1p, compute.Function.Sqrt, compute.Function.Rsqrt,
	}
	exactBinary = []func(f compute.Function, x, y compute.Value) (compute.Value, error){
		compute.Function.Add, compute.Function.Sub, compute.Function.Mul, compute.Function.Max, compute.Function.Min,
		compute.Function.BitwiseAnd, compute.Function.BitwiseOr, compute.Function.BitwiseXor, compute.Function.LogicalAnd,
		compute.Function.LogicalOr, compute.Function.LogicalXor,
	}
	compares = []func(f compute.Function, x, y compute.Value) (compute.Value, error){
		compute.Function.Equal, compute.Function.NotEqual, compute.Function.LessThan, compute.Function.LessOrEqual,
		compute.Function.GreaterThan, compute.Function.GreaterOrEqual,
	}
	reductions = []func(f compute.Function, x compute.Value, axes ...int) (compute.Value, error){
		compute.Function.ReduceSum, compute.Function.ReduceMax, compute.Function.ReduceMin, compute.Function.ReduceSum,
		compute.Function.ReduceBitwiseAnd, compute.Function.ReduceBitwiseOr, compute.Function.ReduceBitwiseXor,
		compute.Function.ReduceLogicalAnd, compute.Function.ReduceLogicalOr, compute.Function.ReduceLogicalXor,
	}
)

// TestRandomGraphs compares thousands of random graphs with the go backend: integers, booleans and whole floats exactly,
// other floats to the rounding of their type.
func TestRandomGraphs(t *testing.T) {
	n, seed := 2500, uint64(1)
	if testing.Short() {
		n = 300
	}
	if s := os.Getenv("GRAPH_SEED"); s != "" {
		seed, _ = strconv.ParseUint(s, 10, 64)
		n = 1
	}
	backends := []compute.Backend{open(t, oracle), open(t, "simd"), open(t, "simd:nofusion")}
	for k := range n {
		randomGraph(t, backends, seed+uint64(k))
		if t.Failed() {
			t.Fatalf("seed %d", seed+uint64(k))
		}
	}
}

func randomGraph(t *testing.T, backends []compute.Backend, seed uint64) {
	g := &grower{t: t, r: rand.New(rand.NewPCG(seed, 7))}
	g.long = seed%10 == 0
	builders := make([]compute.Builder, len(backends))
	for i, b := range backends {
		builders[i] = b.Builder("random")
		g.fns = append(g.fns, builders[i].Main())
	}
	for range 2 + g.r.IntN(4) {
		g.param()
	}
	for range 4 + g.r.IntN(30) {
		g.grow()
	}
	var out []twin
	for range 1 + g.r.IntN(5) {
		out = append(out, g.pool[len(g.pool)-1-g.r.IntN(min(len(g.pool), 8))])
	}
	results := make([][]compute.Buffer, len(backends))
	for i, b := range backends {
		var list []compute.Value
		for _, o := range out {
			list = append(list, o.v[i])
		}
		if err := g.fns[i].Return(list, nil); err != nil {
			t.Fatal(err)
		}
		exec, err := builders[i].Compile()
		if err != nil {
			t.Fatalf("seed %d: compile: %+v\n%v", seed, err, g.trace)
		}
		var before []string
		for range 2 { // the second run finds memory as the first one left it
			in := make([]compute.Buffer, len(g.inputs))
			donate := make([]bool, len(in))
			for k := range in {
				if in[k], err = b.BufferFromFlatData(0, g.inputs[k], g.shapes[k]); err != nil {
					t.Fatal(err)
				}
				donate[k] = g.r.IntN(2) == 0 && i > 0
			}
			if results[i], err = run(exec, in, donate); err != nil {
				if i == 0 {
					return // some graphs crash the go backend
				}
				t.Fatalf("seed %d: %s: %+v\n%v", seed, b.Name(), err, g.trace)
			}
			for k, y := range results[i] {
				flat, _ := y.Data()
				now := fmt.Sprint(flat)
				if len(before) > k && before[k] != now {
					if i == 0 {
						return // closures can make the go backend forget what it owns
					}
					t.Errorf("seed %d: output %d of backend %d changed from run to run:\n%s\n%s", seed, k, i, before[k], now)
				}
				before = append(before, now)
			}
		}
	}
	for k, o := range out {
		want, _ := results[0][k].Data()
		for i := 1; i < len(backends); i++ {
			got, _ := results[i][k].Data()
			if msg := differ(want, got, o); msg != "" {
				for _, line := range g.trace {
					t.Log(line)
				}
				t.Errorf("seed %d: output %d, value #%d %s, backend %d: %s", seed, k,
					slices.IndexFunc(g.pool, func(x twin) bool { return x.v[0] == o.v[0] }), o.shape, i, msg)
				return
			}
		}
	}
}

// run executes, and turns a panic into an error.
func run(e compute.Executable, in []compute.Buffer, donate []bool) (out []compute.Buffer, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return e.Execute(in, donate, 0)
}

// differ says how two results differ by more than rounding.
func differ(want, got any, o twin) string {
	if o.exact {
		if !equalBits(want, got) {
			return fmt.Sprintf("want %v\ngot  %v", want, got)
		}
		return ""
	}
	a, b := reflect.ValueOf(want), reflect.ValueOf(got)
	tol := 2e-6
	if o.shape.DType == dtypes.Float64 {
		tol = 1e-13
	}
	for i := range a.Len() {
		x, y := a.Index(i).Float(), b.Index(i).Float()
		if math.IsNaN(x) && math.IsNaN(y) || x == y {
			continue
		}
		if !(math.Abs(x-y) <= tol*(1+math.Abs(x)+o.size)) {
			return fmt.Sprintf("element %d: want %v, got %v", i, x, y)
		}
	}
	return ""
}

// equalBits compares exactly, but for the sign of zero.
func equalBits(a, b any) bool {
	x, y := reflect.ValueOf(a), reflect.ValueOf(b)
	if x.Len() != y.Len() {
		return false
	}
	for i := range x.Len() {
		p, q := x.Index(i), y.Index(i)
		if p.CanFloat() && math.IsNaN(p.Float()) && math.IsNaN(q.Float()) {
			continue
		}
		if !p.Equal(q) {
			return false
		}
	}
	return true
}
