package engine_test

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"

	"github.com/gfnem/gfnem/engine"
)

// must ends the test if an operation could not be built.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

const side = 5 // of matrices, and the length of vectors

// looper builds a random program of nested loops, with While or unrolled. The same seed makes the same decisions.
type looper struct {
	unroll bool
	f      compute.Function // where operations go
	r      *rand.Rand
}

// pool holds values that operations can use: matrices and vectors.
type pool [2][]compute.Value

var kinds = [2]shapes.Shape{shapes.Make(dtypes.Float32, side, side), shapes.Make(dtypes.Float32, side)}

func (p pool) clone() pool { return pool{slices.Clone(p[0]), slices.Clone(p[1])} }

func (p pool) all() []compute.Value { return slices.Concat(p[0], p[1]) }

// grow adds a matrix or vector that is computed from others.
func (l *looper) grow(p *pool) {
	f := l.f
	m, v := func() compute.Value { return pickOne(l.r, p[0]) }, func() compute.Value { return pickOne(l.r, p[1]) }
	tame := func(x compute.Value) compute.Value { return must(f.Tanh(x)) }
	put := func(kind int, x compute.Value) { p[kind] = append(p[kind], x) }
	switch l.r.IntN(16) {
	case 0:
		put(0, tame(must(f.Add(m(), m()))))
	case 1:
		put(0, must(f.Mul(m(), m())))
	case 2:
		put(0, tame(must(f.DotGeneral(m(), []int{1}, nil, m(), []int{l.r.IntN(2)}, nil, compute.DotGeneralConfig{}))))
	case 3:
		put(0, must(f.Transpose(m(), 1, 0)))
	case 4:
		rows := must(f.BroadcastInDim(v(), kinds[0], []int{l.r.IntN(2)}))
		put(0, tame(must(f.Sub(m(), rows))))
	case 5: // both are vectors, so that the sum is larger than what it is made of
		a, b := must(f.BroadcastInDim(v(), kinds[0], []int{0})), must(f.BroadcastInDim(v(), kinds[0], []int{1}))
		put(0, tame(must(f.Add(a, b))))
	case 6:
		ten := must(f.Constant([]float32{10}))
		whole := must(f.ConvertDType(must(f.Mul(m(), ten)), dtypes.Int32))
		put(0, must(f.Div(must(f.ConvertDType(whole, dtypes.Float32)), ten)))
	case 7:
		top := must(f.Slice(m(), []int{0, 0}, []int{2, side}, []int{1, 1}))
		rest := must(f.Slice(m(), []int{2, 0}, []int{side, side}, []int{1, 1}))
		put(0, must(f.Concatenate(0, top, rest)))
	case 8:
		put(0, must(f.Where(must(f.LessThan(m(), m())), m(), must(f.Transpose(m(), 1, 0)))))
	case 9:
		put(1, tame(must(f.ReduceSum(m(), l.r.IntN(2)))))
	case 10:
		put(1, must(f.Reverse(must(f.Max(v(), v())), 0)))
	case 11:
		row := must(f.Slice(m(), []int{1, 0}, []int{2, side}, []int{1, 1}))
		put(1, must(f.Add(must(f.Reshape(row, side)), must(f.Constant([]float32{0.25})))))
	case 12:
		put(1, must(f.Identity(v())))
	case 13:
		branch := func(x compute.Value, negate bool) compute.Function {
			c := must(f.Closure())
			if negate {
				x = must(c.Neg(x))
			}
			if err := c.Return([]compute.Value{x}, nil); err != nil {
				panic(err)
			}
			return c
		}
		positive := must(f.LessThan(must(f.Constant([]float32{0})), must(f.ReduceSum(v()))))
		put(0, must(f.If(positive, branch(m(), false), branch(m(), true)))[0])
	case 14:
		state := must(f.Bitcast(must(f.ConvertDType(must(f.Slice(v(), []int{0}, []int{3}, []int{1})), dtypes.Float64)), dtypes.Uint64))
		_, bits, err := f.RNGBitGenerator(state, shapes.Make(dtypes.Uint8, side))
		put(1, must(f.Mul(must(f.ConvertDType(must(bits, err), dtypes.Float32)), must(f.Constant([]float32{0.01})))))
	default:
		put(0, must(f.DynamicUpdateSlice(m(), must(f.Reshape(v(), 1, side)),
			[]compute.Value{must(f.Constant([]int32{int32(l.r.IntN(side))})), must(f.Constant([]int32{0}))})))
	}
}

// limit says where a loop knows from how often it runs.
type limit int

const (
	limitConstant limit = iota
	limitCaptured
	limitCarried
	limitOuter // the number of the iteration of the loop around
	limits
)

// loop adds a random loop to the function at hand, and its results to p. The loop around it is in its iteration now, which
// number tells, as a value.
func (l *looper) loop(p *pool, depth, now int, number compute.Value) {
	times, how := l.r.IntN(4), limit(l.r.IntN(int(limits)))
	if how == limitOuter {
		times = now
	}
	var start pool // initial state; a value may be there twice
	for kind := range kinds {
		for range 1 + l.r.IntN(3) {
			start[kind] = append(start[kind], pickOne(l.r, p[kind]))
		}
	}
	seed := l.r.Uint64()
	again := l.r.IntN(4) == 0 // the same closures, on what they returned
	var end pool
	if l.unroll {
		end = l.unrolled(seed, depth, times, *p, start)
		if again {
			end = l.unrolled(seed, depth, times, *p, end)
		}
	} else {
		end = l.while(seed, depth, times, how, number, *p, start, again)
	}
	for kind := range kinds {
		p[kind] = append(p[kind], end[kind]...)
	}
}

// iterate adds one iteration: temporary values, a loop inside, and the next state: unchanged, swapped, from outside or new.
func (l *looper) iterate(seed uint64, depth, now int, number compute.Value, outside, state pool) (next pool) {
	r := l.r
	defer func() { l.r = r }()
	l.r = rand.New(rand.NewPCG(seed, 0))
	p := outside.clone()
	for range 1 + l.r.IntN(4) { // of invariants alone
		l.grow(&p)
	}
	for kind := range kinds {
		p[kind] = append(p[kind], state[kind]...)
	}
	for range 1 + l.r.IntN(5) {
		l.grow(&p)
	}
	if depth > 0 && l.r.IntN(2) == 0 {
		l.loop(&p, depth-1, now, number)
		l.grow(&p)
	}
	for kind := range kinds {
		for i := range state[kind] {
			x := state[kind][i]
			switch l.r.IntN(8) {
			case 0, 1, 2:
			case 3, 4:
				x = pickOne(l.r, state[kind])
			case 5:
				x = pickOne(l.r, outside[kind])
			default:
				x = p[kind][len(p[kind])-1]
			}
			next[kind] = append(next[kind], x)
		}
	}
	return next
}

func (l *looper) unrolled(seed uint64, depth, times int, outside, state pool) pool {
	for i := range times {
		state = l.iterate(seed, depth, i, nil, outside, state)
	}
	return state
}

func (l *looper) while(seed uint64, depth, times int, how limit, number compute.Value, outside, start pool, again bool) pool {
	outer := l.f
	defer func() { l.f = outer }()
	count := func(n int) compute.Value { return must(outer.Constant([]int32{int32(n)})) }
	captured := count(times)
	if how == limitOuter && number != nil {
		captured = number
	}
	// The state is the counter, the limit if it is carried, matrices and vectors.
	wrap := func(s pool) []compute.Value {
		state := []compute.Value{count(0)}
		if how == limitCarried {
			state = append(state, captured)
		}
		return append(state, s.all()...)
	}
	fixed := len(wrap(pool{}))
	unwrap := func(v []compute.Value) pool {
		return pool{v[fixed : fixed+len(start[0])], v[fixed+len(start[0]):]}
	}
	params := func(f compute.Function) (v []compute.Value) {
		for i, x := range wrap(start) {
			v = append(v, must(f.Parameter(fmt.Sprint(i), must(outer.Shape(x)), nil)))
		}
		return v
	}
	closure := func(build func(p []compute.Value) []compute.Value) compute.Function {
		f := must(outer.Closure())
		l.f = f
		if err := f.Return(build(params(f)), nil); err != nil {
			panic(err)
		}
		l.f = outer
		return f
	}
	cond := closure(func(p []compute.Value) []compute.Value {
		most := captured
		switch how {
		case limitCarried:
			most = p[1]
		case limitConstant:
			most = must(l.f.Constant([]int32{int32(times)}))
		}
		return []compute.Value{must(l.f.LessThan(p[0], most))}
	})
	body := closure(func(p []compute.Value) []compute.Value {
		next := l.iterate(seed, depth, -1, p[0], outside, unwrap(p))
		p[0] = must(l.f.Add(p[0], must(l.f.Constant([]int32{1}))))
		return append(slices.Clone(p[:fixed]), next.all()...)
	})
	out := unwrap(must(outer.While(cond, body, wrap(start)...)))
	if again {
		out = unwrap(must(outer.While(cond, body, wrap(out)...)))
	}
	return out
}

// loops compiles a random program of matrices and vectors, with loops or unrolled.
func loops(b compute.Backend, seed uint64, unroll bool) compute.Executable {
	builder := b.Builder("loops")
	l := &looper{unroll: unroll, f: builder.Main(), r: rand.New(rand.NewPCG(seed, 1))}
	var p pool
	for kind, s := range kinds {
		for i := range 3 {
			p[kind] = append(p[kind], must(l.f.Parameter(fmt.Sprint(kind, i), s, nil)))
		}
	}
	l.grow(&p)
	for range 1 + l.r.IntN(2) {
		l.loop(&p, 2, 0, nil)
	}
	var out []compute.Value
	for kind := range kinds {
		out = append(out, p[kind][3:]...)
	}
	// Leave some results unused.
	out = slices.DeleteFunc(out, func(compute.Value) bool { return l.r.IntN(3) == 0 })
	if len(out) == 0 {
		out = p.all()
	}
	if err := l.f.Return(out, nil); err != nil {
		panic(err)
	}
	return must(builder.Compile())
}

// TestWhileUnrolled compares random loops with the same computation without loops, bit by bit. RANDOM_LOOPS is how many,
// LOOP_SEED the first of them.
func TestWhileUnrolled(t *testing.T) {
	first, n := uint64(1), 400
	if testing.Short() {
		n = 60
	}
	if s, err := strconv.ParseUint(os.Getenv("LOOP_SEED"), 10, 64); err == nil {
		first = s
	}
	if k, err := strconv.Atoi(os.Getenv("RANDOM_LOOPS")); err == nil {
		n = k
	}
	t.Logf("%d loops from seed %d (RANDOM_LOOPS, LOOP_SEED)", n, first)
	for _, config := range []string{"simd", "simd:nofusion"} {
		b := open(t, config)
		for seed := first; seed < first+uint64(n); seed++ {
			loop, flat := loops(b, seed, false), loops(b, seed, true)
			for try := range uint64(2) {
				engine.Spoil(b) // programs find memory as others left it
				inputs := func() (in []compute.Buffer) {
					for i := range 6 {
						in = append(in, buffer(t, b, kinds[i/3], seed+try<<32+uint64(i)<<40))
					}
					return in
				}
				donate := make([]bool, 6)
				for i := range donate {
					donate[i] = (seed+try)>>i&1 == 1
				}
				want, got := must(flat.Execute(inputs(), nil, 0)), must(loop.Execute(inputs(), donate, 0))
				for i := range want {
					x, y := must(want[i].Data()).([]float32), must(got[i].Data()).([]float32)
					if !slices.EqualFunc(x, y, func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) }) {
						t.Fatalf("%s, seed %d, run %d: output %d is\n%v, want\n%v", config, seed, try, i, y, x)
					}
				}
			}
		}
	}
}

// TestWhileInvariants checks what a loop does with values that it carries and does not change: they are not copied, and what
// depends on them alone is computed once, whether the results are used or not.
func TestWhileInvariants(t *testing.T) {
	const n, times = 40, 7
	square := shapes.Make(dtypes.Float32, n, n)
	b := open(t, "simd")
	builder := b.Builder("invariants")
	f := builder.Main()
	x, w := must(f.Parameter("x", shapes.Make(dtypes.Float32, 2, n), nil)), must(f.Parameter("w", square, nil))
	state := []compute.Value{must(f.Constant([]int32{0})), x, w, w, w, w}
	params := func(c compute.Function) (v []compute.Value) {
		for i, s := range state {
			v = append(v, must(c.Parameter(fmt.Sprint(i), must(f.Shape(s)), nil)))
		}
		return v
	}
	cond := must(f.Closure())
	most := must(cond.Constant([]int32{times}))
	if err := cond.Return([]compute.Value{must(cond.LessThan(params(cond)[0], most))}, nil); err != nil {
		t.Fatal(err)
	}
	body := must(f.Closure())
	p := params(body)
	dot := func(f compute.Function, a, b compute.Value) compute.Value {
		return must(f.DotGeneral(a, []int{1}, nil, b, []int{0}, nil, compute.DotGeneralConfig{}))
	}
	whole := must(body.ConvertDType(p[2], dtypes.Int32))
	same := must(body.ConvertDType(whole, dtypes.Float32))
	twice := dot(body, same, p[3])
	next := dot(body, p[1], twice)
	one := must(body.Constant([]int32{1}))
	// Some are swapped, one is there twice, one comes from outside.
	out := []compute.Value{must(body.Add(p[0], one)), next, must(body.Identity(p[2])), p[4], must(body.Identity(p[2])), w}
	if err := body.Return(out, nil); err != nil {
		t.Fatal(err)
	}
	end := must(f.While(cond, body, state...))
	if err := f.Return(end[1:3], nil); err != nil {
		t.Fatal(err)
	}
	e := must(builder.Compile())
	profile := must(engine.Profile(b))
	xs, ws := buffer(t, b, shapes.Make(dtypes.Float32, 2, n), 1), buffer(t, b, square, 2)
	results := must(e.Execute([]compute.Buffer{xs, ws}, nil, 0))
	if got, want := must(results[1].Data()).([]float32), must(ws.Data()).([]float32); !slices.Equal(got, want) {
		t.Error("what the loop carried came back changed")
	}
	runs := map[string]int{}
	for _, c := range profile.Costs() {
		for _, name := range []string{"Copy", "ConvertDType", "40x40x40", "2x40x40", "LessThan"} {
			if strings.Contains(c.What, name) {
				runs[name] += c.Runs
			}
		}
	}
	want := map[string]int{"Copy": 1, "ConvertDType": 1, "40x40x40": 1, "2x40x40": times, "LessThan": times + 1}
	if !maps.Equal(runs, want) {
		t.Errorf("steps ran %v times, want %v", runs, want)
	}
}

// TestWhileNothing checks a loop in which nothing changes.
func TestWhileNothing(t *testing.T) {
	b := open(t, "simd")
	builder := b.Builder("nothing")
	f := builder.Main()
	x := must(f.Parameter("x", kinds[1], nil))
	cond, body := must(f.Closure()), must(f.Closure())
	must(cond.Parameter("x", kinds[1], nil))
	if err := cond.Return([]compute.Value{must(cond.Constant([]bool{false}))}, nil); err != nil {
		t.Fatal(err)
	}
	if err := body.Return([]compute.Value{must(body.Parameter("x", kinds[1], nil))}, nil); err != nil {
		t.Fatal(err)
	}
	if err := f.Return(must(f.While(cond, body, x)), nil); err != nil {
		t.Fatal(err)
	}
	in := buffer(t, b, kinds[1], 1)
	out := must(must(builder.Compile()).Execute([]compute.Buffer{in}, nil, 0))
	if got, want := must(out[0].Data()).([]float32), must(in.Data()).([]float32); !slices.Equal(got, want) {
		t.Errorf("%v became %v", want, got)
	}
}
