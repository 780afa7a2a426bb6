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

	"github.com/gfnem/gfnem/engine"
)

// twin is a value of the same random graph on the backends that are compared.
type twin struct {
	v     []compute.Value
	shape shapes.Shape
	size  float64 // bound of the magnitude; what wraps around has none
	err   float64 // bound of the error, in units of the rounding error of the type; 0 if all backends have the same bits
}

func (x twin) exact() bool { return x.err == 0 }

// most is the largest bound of a magnitude: whole numbers up to it, and a few sums of them, are exact in float32.
const most = 1 << 20

// wild is the bound of numbers that may have wrapped around.
const wild = 1 << 62

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
	intTypes = []dtypes.DType{dtypes.Int32, dtypes.Int64, dtypes.Uint32, dtypes.Uint64, dtypes.Int8, dtypes.Uint8, dtypes.Int16, dtypes.Uint16}
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

// add records an operation; its result joins the pool if the first backend accepts it. Its size and error are bounds;
// an error of 0 says that the bits are the same.
func (g *grower) add(name string, size, err float64, build func(f compute.Function, i int) (compute.Value, error)) {
	if err > 0 && (size > most || err > 4000*max(size, 1)) {
		return
	}
	n := twin{size: size, err: err}
	for i, f := range g.fns {
		v, err := build(f, i)
		if i == 0 {
			if err != nil {
				return
			}
			if n.shape, err = f.Shape(v); err != nil || n.shape.Size() > 4000 && !g.long || n.shape.Size() > 80000 {
				return
			}
			if n.shape.DType.IsFloat() && size > most {
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
		g.add("Constant", 8, 0, func(f compute.Function, _ int) (compute.Value, error) { return f.Constant(data, s.Dimensions...) })
		return
	}
	k := len(g.inputs)
	g.inputs, g.shapes = append(g.inputs, data), append(g.shapes, s)
	g.add("Parameter", 8, 0, func(f compute.Function, _ int) (compute.Value, error) {
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

type (
	unaryOp  = func(f compute.Function, x compute.Value) (compute.Value, error)
	binaryOp = func(f compute.Function, x, y compute.Value) (compute.Value, error)
	reduceOp = func(f compute.Function, x compute.Value, axes ...int) (compute.Value, error)
)

// Operations that are exact on whole numbers, and those that are not, of arguments that keep them smooth.
var (
	exactUnary = []unaryOp{
		compute.Function.Neg, compute.Function.Abs, compute.Function.Sign, compute.Function.Floor, compute.Function.Ceil,
		compute.Function.Round, compute.Function.BitwiseNot, compute.Function.BitCount, compute.Function.Clz,
		compute.Function.LogicalNot, compute.Function.IsFinite, compute.Function.IsNaN, compute.Function.Identity,
	}
	smoothUnary = []unaryOp{
		compute.Function.Exp, compute.Function.Tanh, compute.Function.Logistic, compute.Function.Sin, compute.Function.Cos,
		compute.Function.Erf, compute.Function.Expm1,
	}
	positiveUnary = []unaryOp{compute.Function.Log, compute.Function.Log1p, compute.Function.Sqrt, compute.Function.Rsqrt}
	bitBinary     = []binaryOp{
		compute.Function.BitwiseAnd, compute.Function.BitwiseOr, compute.Function.BitwiseXor, compute.Function.LogicalAnd,
		compute.Function.LogicalOr, compute.Function.LogicalXor,
	}
	intBinary = []binaryOp{
		compute.Function.ShiftLeft, compute.Function.ShiftRightArithmetic, compute.Function.ShiftRightLogical, compute.Function.Pow,
	}
	compares = []binaryOp{
		compute.Function.Equal, compute.Function.NotEqual, compute.Function.LessThan, compute.Function.LessOrEqual,
		compute.Function.GreaterThan, compute.Function.GreaterOrEqual,
	}
	bitReductions = []reduceOp{
		compute.Function.ReduceBitwiseAnd, compute.Function.ReduceBitwiseOr, compute.Function.ReduceBitwiseXor,
		compute.Function.ReduceLogicalAnd, compute.Function.ReduceLogicalOr, compute.Function.ReduceLogicalXor,
	}
)

// TestRandomGraphs compares thousands of random graphs with the go backend: integers, booleans and whole floats exactly,
// other floats within the bounds of their rounding errors. RANDOM_GRAPHS is how many, GRAPH_SEED the first of them.
func TestRandomGraphs(t *testing.T) {
	n, seed := 2500, uint64(1)
	if testing.Short() {
		n = 300
	}
	if s, err := strconv.ParseUint(os.Getenv("GRAPH_SEED"), 10, 64); err == nil {
		seed = s
	}
	if k, err := strconv.Atoi(os.Getenv("RANDOM_GRAPHS")); err == nil {
		n = k
	}
	t.Logf("%d graphs from seed %d (RANDOM_GRAPHS, GRAPH_SEED)", n, seed)
	backends := []compute.Backend{open(t, oracle), open(t, "simd"), open(t, "simd:nofusion")}
	used := map[compute.OpType]int{}
	compared := 0
	for k := range n {
		if randomGraph(t, backends, seed+uint64(k), used) {
			compared++
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed+uint64(k))
		}
	}
	t.Logf("%d of %d graphs compared; the others crash the go backend or change from run to run on it", compared, n)
	if compared < n*19/20 {
		t.Errorf("only %d of %d graphs could be compared", compared, n)
	}
	if n < 2500 {
		return
	}
	for op := range backends[1].Capabilities().Operations {
		if used[op] < 3 && elsewhere[op] == "" {
			t.Errorf("%s is in %d graphs that were compared", op, used[op])
		}
	}
}

// elsewhere says where operations are tested that do not appear here: most are made of others when a graph is built.
var elsewhere = map[compute.OpType]string{
	compute.OpTypeIdentity: "returns its operand", compute.OpTypeOptimizationBarrier: "returns its operands",
	compute.OpTypeSchedulingBarrier: "returns its operand",
	compute.OpTypeIsNaN:             "is NotEqual", compute.OpTypeClamp: "is Max and Min", compute.OpTypeDot: "is DotGeneral",
	compute.OpTypeConvGeneral: "TestConvolutions", compute.OpTypeRNGBitGenerator: "TestRandomBits", compute.OpTypeCall: "TestBackend",
	compute.OpTypeDynamicSlice: "TestDynamicSlices", compute.OpTypeDynamicUpdateSlice: "TestDynamicSlices",
	compute.OpTypeSelectAndScatterMax: "TestSelections", compute.OpTypeSelectAndScatterMin: "TestSelections",
	compute.OpTypeFusedSoftmax: "TestFused", compute.OpTypeFusedGelu: "TestFused", compute.OpTypeFusedLayerNorm: "TestFused",
	compute.OpTypeBatchNormForInference: "TestBatchNorm", compute.OpTypeBatchNormForTraining: "TestBatchNorm",
	compute.OpTypeBatchNormGradient: "TestBatchNorm", compute.OpTypeEqualTotalOrder: "TestTotalOrder",
	compute.OpTypeNotEqualTotalOrder: "TestTotalOrder", compute.OpTypeLessThanTotalOrder: "TestTotalOrder",
	compute.OpTypeLessOrEqualTotalOrder: "TestTotalOrder", compute.OpTypeGreaterThanTotalOrder: "TestTotalOrder",
	compute.OpTypeGreaterOrEqualTotalOrder: "TestTotalOrder",
	compute.OpTypeFusedDense:               "TestFused", compute.OpTypeFusedAttentionQKVProjection: "TestFused",
}

// randomGraph reports whether the graph of a seed could be compared.
func randomGraph(t *testing.T, backends []compute.Backend, seed uint64, used map[compute.OpType]int) bool {
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
					return false // some graphs crash the go backend
				}
				t.Fatalf("seed %d: %s: %+v\n%v", seed, b.Name(), err, g.trace)
			}
			for k, y := range results[i] {
				flat, _ := y.Data()
				now := fmt.Sprint(flat)
				if len(before) > k && before[k] != now {
					if i == 0 {
						return false // closures can make the go backend forget what it owns
					}
					t.Errorf("seed %d: output %d of backend %d changed from run to run:\n%s\n%s", seed, k, i, before[k], now)
				}
				before = append(before, now)
			}
		}
	}
	for _, op := range engine.Ops(g.fns[1]) {
		used[op]++
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
				return true
			}
		}
	}
	return true
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
	if o.exact() {
		if i := firstUnequal(want, got); i >= 0 {
			return fmt.Sprintf("element %d: want %v, got %v", i, reflect.ValueOf(want).Index(i), reflect.ValueOf(got).Index(i))
		}
		return ""
	}
	a, b := reflect.ValueOf(want), reflect.ValueOf(got)
	u := 0x1p-24
	if o.shape.DType == dtypes.Float64 {
		u = 0x1p-53
	}
	for i := range a.Len() {
		x, y := a.Index(i).Float(), b.Index(i).Float()
		if math.IsNaN(x) && math.IsNaN(y) || x == y {
			continue
		}
		if !(math.Abs(x-y) <= 2*o.err*u) {
			return fmt.Sprintf("element %d: want %v, got %v, allowed %g u", i, x, y, 2*o.err)
		}
	}
	return ""
}

// firstUnequal returns where two results differ, but for the sign of zero, or -1.
func firstUnequal(a, b any) int {
	x, y := reflect.ValueOf(a), reflect.ValueOf(b)
	for i := range x.Len() {
		p, q := x.Index(i), y.Index(i)
		if p.CanFloat() && math.IsNaN(p.Float()) && math.IsNaN(q.Float()) {
			continue
		}
		if !p.Equal(q) {
			return i
		}
	}
	return -1
}
