package engine_test

import (
	"fmt"
	"math"
	"reflect"
	"runtime/debug"
	"slices"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
)

// fuzzer makes calls of every method of compute.Function out of bytes, most of them with arguments that make no sense.
type fuzzer struct {
	t     *testing.T
	bytes []byte
	f     compute.Function
	pool  []compute.Value
	rank  int // of the last value that was picked
	dims  []int
	depth int // of closures
	trace []string
	huge  bool // there is a value that would fill the memory
}

// fuzzLimit is the most elements of a value.
const fuzzLimit = 3000

func (z *fuzzer) next() int {
	if len(z.bytes) == 0 {
		return 0
	}
	b := z.bytes[0]
	z.bytes = z.bytes[1:]
	return int(b)
}

func (z *fuzzer) below(n int) int { return z.next() % max(n, 1) }

// integer is mostly small, and sometimes absurd.
func (z *fuzzer) integer() int {
	switch b := z.next(); {
	case b < 200:
		return b % 4
	case b < 225:
		return -1
	case b < 245:
		return b % 9
	default:
		return []int{-7, 100, 5000, 1 << 31, 1 << 40, math.MaxInt, math.MinInt, 1 << 62}[b%8]
	}
}

// integers are axes of the last value, a permutation of them, something like its dimensions, or anything.
func (z *fuzzer) integers() []int {
	out := []int{}
	switch z.below(6) {
	case 0, 1:
		for i := range z.rank {
			out = slices.Insert(out, z.below(len(out)+1), i)
		}
		return out[:len(out)-z.below(len(out)+1)]
	case 2:
		for i := range z.rank {
			out = slices.Insert(out, z.below(len(out)+1), i)
		}
	case 3:
		for _, d := range z.dims {
			out = append(out, z.below(d+2))
		}
	case 4:
		for range z.below(4) {
			out = append(out, z.integer())
		}
	default:
		return nil
	}
	return out
}

func (z *fuzzer) shape() shapes.Shape {
	if z.below(20) == 0 {
		return shapes.Shape{}
	}
	s := shapes.Shape{DType: z.dtype()}
	switch z.below(3) {
	case 0:
		s.Dimensions = slices.Clone(z.dims)
	case 1:
		for range z.below(4) {
			s.Dimensions = append(s.Dimensions, z.below(5))
		}
	default:
		for range z.below(4) {
			s.Dimensions = append(s.Dimensions, z.integer())
		}
	}
	return s
}

func (z *fuzzer) dtype() dtypes.DType {
	if z.below(4) > 0 {
		return []dtypes.DType{dtypes.Float32, dtypes.Float64, dtypes.Int32, dtypes.Uint64, dtypes.Bool, dtypes.Int8}[z.below(6)]
	}
	return dtypes.DType(z.below(40))
}

func (z *fuzzer) value() compute.Value {
	switch b := z.next(); {
	case b > 252:
		return nil
	case b > 250:
		return "nonsense"
	default:
		v := z.pool[len(z.pool)-1-b%len(z.pool)]
		s, err := z.f.Shape(v)
		if err != nil {
			z.t.Fatal(err)
		}
		z.rank, z.dims = s.Rank(), s.Dimensions
		return v
	}
}

// flat is what Constant takes, or not.
func (z *fuzzer) flat() any {
	n := z.below(13)
	switch z.below(5) {
	case 0:
		return make([]float32, n)
	case 1:
		v := make([]int32, n)
		for i := range v {
			v[i] = int32(z.integer())
		}
		return v
	case 2:
		return make([]bool, n)
	case 3:
		return make([]float64, n)
	}
	return []any{nil, "x", 3, []string{"a"}, [][]float32{{1}}}[z.below(5)]
}

// closure is a function with some parameters, operations and results.
func (z *fuzzer) closure() compute.Function {
	if z.depth > 1 {
		return nil
	}
	c, err := z.f.Closure()
	if err != nil {
		return nil
	}
	in := &fuzzer{t: z.t, bytes: z.bytes, f: c, pool: slices.Clone(z.pool), depth: z.depth + 1}
	for range z.below(5) {
		s := shapes.Make([]dtypes.DType{dtypes.Float32, dtypes.Int32, dtypes.Float64, dtypes.Bool}[in.below(4)])
		if v, err := c.Parameter("p", s, nil); err == nil {
			in.pool = append(in.pool, v)
		}
	}
	for range in.below(4) {
		in.call()
	}
	var out []compute.Value
	for range in.below(3) {
		out = append(out, in.value())
	}
	_ = c.Return(out, nil)
	z.bytes, z.huge = in.bytes, z.huge || in.huge
	return c
}

var (
	valueType    = reflect.TypeFor[compute.Value]()
	functionType = reflect.TypeFor[compute.Function]()
	shapeType    = reflect.TypeFor[shapes.Shape]()
	dtypeType    = reflect.TypeFor[dtypes.DType]()
	anyType      = reflect.TypeFor[any]()
	intsType     = reflect.TypeFor[[]int]()
)

// argument makes up an argument of a type.
func (z *fuzzer) argument(t reflect.Type) reflect.Value {
	as := func(v any) reflect.Value {
		if v == nil {
			return reflect.Zero(t)
		}
		return reflect.ValueOf(v).Convert(t)
	}
	switch t {
	case shapeType:
		return as(z.shape())
	case dtypeType:
		return as(z.dtype())
	case intsType:
		return as(z.integers())
	case functionType:
		if c := z.closure(); c != nil {
			return as(c)
		}
		return reflect.Zero(t)
	case valueType:
		return as(z.value())
	case anyType:
		return as(z.flat())
	}
	switch t.Kind() {
	case reflect.Int, reflect.Int32, reflect.Int64:
		return as(z.integer())
	case reflect.Bool:
		return as(z.below(2) == 0)
	case reflect.Float32, reflect.Float64:
		return as([]float64{1e-3, 0, -1, math.NaN()}[z.below(4)])
	case reflect.String:
		return as("name")
	case reflect.Pointer:
		if z.below(2) == 0 {
			return reflect.Zero(t)
		}
		p := reflect.New(t.Elem())
		p.Elem().Set(z.argument(t.Elem()))
		return p
	case reflect.Struct:
		v := reflect.New(t).Elem()
		for i := range t.NumField() {
			if t.Field(i).IsExported() {
				v.Field(i).Set(z.argument(t.Field(i).Type))
			}
		}
		return v
	case reflect.Slice, reflect.Array:
		n := z.rank
		if z.below(3) == 0 {
			n = z.below(4)
		}
		v := reflect.New(t).Elem()
		if t.Kind() == reflect.Slice {
			v.Set(reflect.MakeSlice(t, n, n))
		}
		for i := range v.Len() {
			v.Index(i).Set(z.argument(t.Elem()))
		}
		return v
	}
	return reflect.Zero(t)
}

// note keeps what a call was.
func (z *fuzzer) note(name string, args []reflect.Value) {
	s := name
	for _, a := range args {
		if v := a.Interface(); a.Type() == valueType && v != nil {
			shape, _ := z.f.Shape(v)
			s += fmt.Sprintf(" #%d%s", slices.Index(z.pool, v), shape)
		} else if a.Type() != functionType {
			s += fmt.Sprintf(" %+v", v)
		}
	}
	z.trace = append(z.trace, s)
}

// skipped are the methods that are not operations, and While, which may rightly never end.
var skipped = []string{"Return", "Closure", "Parent", "Builder", "Name", "Shape", "Parameter", "While"}

// call makes one call, and keeps its results.
func (z *fuzzer) call() {
	m := functionType.Method(z.next() % functionType.NumMethod())
	if slices.Contains(skipped, m.Name) {
		return
	}
	method := reflect.ValueOf(z.f).MethodByName(m.Name)
	args := make([]reflect.Value, m.Type.NumIn())
	for i := range args {
		args[i] = z.argument(m.Type.In(i))
	}
	z.note(m.Name, args)
	defer func() {
		if p := recover(); p != nil {
			z.t.Fatalf("%s panics: %v\n%s", z.trace[len(z.trace)-1], p, debug.Stack())
		}
	}()
	call := method.Call
	if m.Type.IsVariadic() {
		call = method.CallSlice
	}
	out := call(args)
	if err, _ := out[len(out)-1].Interface().(error); err != nil {
		if err.Error() == "" {
			z.t.Fatalf("%v: an error that says nothing", z.trace)
		}
		return
	}
	for _, o := range out[:len(out)-1] {
		list := []compute.Value{o.Interface()}
		if o.Kind() == reflect.Slice {
			list, _ = o.Interface().([]compute.Value)
		}
		for _, v := range list {
			z.keep(v)
		}
	}
}

func (z *fuzzer) keep(v compute.Value) {
	s, err := z.f.Shape(v)
	if err != nil {
		z.t.Fatalf("%v: the result has no shape: %v", z.trace, err)
	}
	n := 1
	for _, d := range s.Dimensions {
		n *= min(d, fuzzLimit+1)
		if n > fuzzLimit {
			z.huge = true
			return
		}
	}
	z.pool = append(z.pool, v)
}

// FuzzCalls builds a function of arbitrary calls and runs it twice: whatever it is, there are errors or the same results,
// no panics and no memory faults.
func FuzzCalls(f *testing.F) {
	for seed := range uint64(300) {
		b := make([]byte, 700)
		for i, x := range numbers(len(b), seed) {
			b[i] = byte(math.Float64bits(x) >> 20)
		}
		f.Add(b)
	}
	backends := []compute.Backend{open(f, "simd"), open(f, "simd:nofusion")}
	f.Fuzz(func(t *testing.T, data []byte) {
		fuzzOne(t, backends[len(data)%2], data)
	})
}

func fuzzOne(t *testing.T, b compute.Backend, data []byte) {
	builder := b.Builder("fuzz")
	z := &fuzzer{t: t, bytes: data, f: builder.Main()}
	inputs := []any{
		[]float32{1, -2, 3.5, 4, 0, -6}, []float64{1, 2, 3, 4}, []int32{0, 5, -3, 1 << 30}, []bool{true, false, true},
		[]uint64{1, 2, 3}, []int64{7}, []float32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24},
	}
	dims := [][]int{{2, 3}, {4}, {2, 2}, {3}, {3}, {}, {1, 4, 3, 2}}
	var buffers []compute.Buffer
	for i, flat := range inputs {
		s := shapes.Make(dtypes.FromGoType(reflect.TypeOf(flat).Elem()), dims[i]...)
		v, err := z.f.Parameter(fmt.Sprint(i), s, nil)
		if err != nil {
			t.Fatal(err)
		}
		x, err := b.BufferFromFlatData(0, flat, s)
		if err != nil {
			t.Fatal(err)
		}
		z.pool, buffers = append(z.pool, v), append(buffers, x)
	}
	for len(z.bytes) > 0 && len(z.trace) < 60 {
		z.call()
	}
	out := z.pool[max(0, len(z.pool)-8):]
	if err := z.f.Return(out, nil); err != nil {
		t.Fatal(err)
	}
	if z.huge {
		return
	}
	e, err := builder.Compile()
	if err != nil {
		return
	}
	first := fuzzRun(e, buffers)
	for range 2 {
		if again := fuzzRun(e, buffers); again != first {
			t.Fatalf("%v: results change from run to run:\n%s\n%s", z.trace, first, again)
		}
	}
}

// fuzzRun lists the results, or says what the error is.
func fuzzRun(e compute.Executable, in []compute.Buffer) (s string) {
	out, err := e.Execute(in, nil, 0)
	if err != nil {
		return err.Error()
	}
	for _, y := range out {
		flat, _ := y.Data()
		s += fmt.Sprint(flat)
		_ = y.Finalize()
	}
	return s
}
