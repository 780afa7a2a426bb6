// Package program compiles graph functions from structs of nodes to structs of nodes, and calls them with structs of
// tensors.
//
// The two sides of a program correspond field by field, in order and by name:
//
//	nodes                     host
//	*Node                     *tensors.Tensor, a value that becomes one, or a pointer to one; nil stays nil
//	*Node (of an input)       float32, []float32: all of these are sent together, as one tensor
//	*Node (a scalar result)   float64, bool, int: all of these are read together, as one tensor; NaN is what is left out
//	[]*Node, gfn.State        []*tensors.Tensor
//	a struct, or a pointer    a struct or a pointer with the same fields
//	int, bool, string         the same: a constant of the graph
//	*Graph                    no field: the graph itself
//
// A program is compiled when it is first called with other constants, other shapes, or other parts left out.
// What a function leaves out of its results may depend on constants and on parts left out, but not on shapes.
package program

import (
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/support/exceptions"

	"github.com/gfnem/gfnem/internal/blame"
)

// Set is programs that share a backend and the variables of a store.
type Set struct {
	Backend compute.Backend
	Store   *model.Store

	opened []func()
	times  map[string]time.Duration
}

// NewSet prepares a set. Programs without variables need no store.
func NewSet(b compute.Backend, store *model.Store) *Set {
	if store == nil {
		store = model.NewStore()
	}
	return &Set{Backend: b, Store: store}
}

// Close releases what was compiled. Programs that are called again are compiled again.
func (s *Set) Close() {
	for _, release := range s.opened {
		release()
	}
	s.opened = nil
}

// Measure adds up the time that each program takes from now on, waiting for its results, or stops doing so.
func (s *Set) Measure(on bool) {
	s.times = nil
	if on {
		s.times = map[string]time.Duration{}
	}
}

// Times returns what Measure has added up, by the name of the program.
func (s *Set) Times() map[string]time.Duration { return s.times }

// Program computes an Out from an In, both structs of the host.
type Program[In, Out any] struct {
	set      *Set
	name     string
	build    func(reflect.Value) reflect.Value
	nodesIn  reflect.Type
	compiled map[string]*compiled
}

// compiled is a program for some constants and parts, for all shapes.
type compiled struct {
	exec    *model.Exec
	in      reflect.Value // what it is called with, while a graph may be built
	out     reflect.Value // what the function returned last
	numbers int           // in its last result
}

// New prepares a program. It panics if the two sides do not correspond, which is a mistake of the caller's source.
func New[In, Out, NodesIn, NodesOut any](s *Set, name string, f func(NodesIn) NodesOut) *Program[In, Out] {
	if err := match(reflect.TypeFor[NodesIn](), reflect.TypeFor[In](), "in", false); err != nil {
		panic(fmt.Errorf("program %q: %w", name, err))
	}
	if err := match(reflect.TypeFor[NodesOut](), reflect.TypeFor[Out](), "out", true); err != nil {
		panic(fmt.Errorf("program %q: %w", name, err))
	}
	return &Program[In, Out]{
		set: s, name: name, nodesIn: reflect.TypeFor[NodesIn](), compiled: map[string]*compiled{},
		build: func(in reflect.Value) reflect.Value { return reflect.ValueOf(f(in.Interface().(NodesIn))) },
	}
}

// Once compiles a program, calls it and releases it.
func Once[In, Out, NodesIn, NodesOut any](
	b compute.Backend, store *model.Store, name string, f func(NodesIn) NodesOut, in In,
) (Out, error) {
	s := NewSet(b, store)
	defer s.Close()
	return New[In, Out](s, name, f).Call(in)
}

// Call runs the program.
func (p *Program[In, Out]) Call(in In) (out Out, err error) {
	var a arguments
	host := reflect.ValueOf(&in).Elem()
	walk(host, reflect.New(p.nodesIn).Elem(), a.add)
	args := a.list()
	c, err := p.of(a.key.String(), len(args))
	if err != nil {
		return out, fmt.Errorf("build program %q: %w", p.name, err)
	}
	c.in = host
	begin := time.Now()
	results, err := c.exec.Call(args...)
	c.in = reflect.Value{}
	if err != nil {
		return out, fmt.Errorf("%s: %w", p.name, mistake(err))
	}
	var numbers []float64
	if last := len(results) - 1; c.numbers > 0 {
		numbers, err = tensors.CopyFlatData[float64](results[last])
	} else if p.set.times != nil {
		err = results[last].ConstBytes(func([]byte) {})
	}
	if err != nil {
		return out, fmt.Errorf("%s: %w", p.name, err)
	}
	if p.set.times != nil {
		p.set.times[p.name] += time.Since(begin)
	}
	unpack(c.out, reflect.ValueOf(&out).Elem(), results, numbers)
	return out, nil
}

// Declare makes the variables that a call would make, at their initial values, without compiling or running anything.
// Of the arguments only shapes, constants and what is left out count.
func (p *Program[In, Out]) Declare(in In) (err error) {
	var a arguments
	host := reflect.ValueOf(&in).Elem()
	walk(host, reflect.New(p.nodesIn).Elem(), a.add)
	g := NewGraph(p.set.Backend, p.name)
	defer g.Finalize()
	err = exceptions.TryCatch[error](func() {
		defer panicWithError()
		model.SetStore(g, p.set.Store)
		var nodes []*Node
		for i, arg := range a.list() {
			nodes = append(nodes, Parameter(g, fmt.Sprintf("argument %d", i), shapeOf(arg)))
		}
		p.trace(&compiled{in: host}, g, nodes)
	})
	if err == nil {
		err = p.set.Store.InitializeVariables(p.set.Backend, nil) // those that were not made with a value
	}
	if err != nil {
		return fmt.Errorf("build program %q: %w", p.name, err)
	}
	return nil
}

// shapeOf returns the shape of an argument, a tensor or a value that becomes one.
func shapeOf(arg any) shapes.Shape {
	if t, ok := arg.(*tensors.Tensor); ok {
		return t.Shape()
	}
	return tensors.MustFromAnyValue(arg).Shape()
}

// trace builds the graph of a program, whose inputs are given.
func (p *Program[In, Out]) trace(c *compiled, g *Graph, nodes []*Node) (all []*Node) {
	in := reflect.New(p.nodesIn).Elem()
	from := parameters{Graph: g, tensors: nodes}
	if len(nodes) > 0 {
		from.numbers = nodes[len(nodes)-1]
	}
	walk(c.in, in, from.fill)
	c.out = p.build(in)
	all, c.numbers = outputs(c.out, reflect.TypeFor[Out]())
	return all
}

// of returns what is compiled for a key, or prepares it for so many inputs.
func (p *Program[In, Out]) of(key string, inputs int) (*compiled, error) {
	if c, ok := p.compiled[key]; ok {
		return c, nil
	}
	c := &compiled{}
	most := -min(inputs, 1) // as many as there are, or none
	exec, err := model.NewExecCanonical(p.set.Backend, p.set.Store, func(_ *model.Scope, g *Graph, nodes []*Node) []*Node {
		defer panicWithError()
		all := p.trace(c, g, nodes)
		if len(all) == 0 {
			panic(errors.New("it returns no node"))
		}
		if err := fits(p.name, g, all); err != nil {
			panic(err)
		}
		return all
	}, most, -1, inputs == 0, inputs > 0, true)
	if err != nil {
		return nil, err
	}
	exec.SetMaxCache(-1)
	c.exec = exec.WithName(p.name)
	p.compiled[key] = c
	p.set.opened = append(p.set.opened, func() {
		c.exec.Finalize()
		delete(p.compiled, key)
	})
	return c, nil
}

// panicWithError turns any panic of a graph function into one with an error, which GoMLX returns as an error of the
// call; after any other it would wait for the graph for ever. The error says where in a user's source the panic was.
func panicWithError() {
	if r := recover(); r != nil {
		err, ok := r.(error)
		if !ok {
			err = fmt.Errorf("%v", r)
		}
		panic(blame.Caller(err))
	}
}

// mistake is the error of a user's graph function, without what GoMLX says around it: the stages of a compilation.
func mistake(err error) error {
	if m := (*blame.Error)(nil); errors.As(err, &m) {
		return m
	}
	return err
}
