package engine

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/notimplemented"
	"github.com/gomlx/compute/shapes"

	"github.com/gfnem/gfnem/internal/memory"
)

var (
	_ compute.Builder  = (*Builder)(nil)
	_ compute.Function = (*Function)(nil)
)

// Builder collects the functions of a computation.
type Builder struct {
	notimplemented.Builder
	backend *Backend
	name    string
	main    *Function
	names   map[string]bool
	done    bool
}

func newBuilder(b *Backend, name string) *Builder {
	x := &Builder{backend: b, name: name, names: map[string]bool{compute.MainName: true}}
	x.ErrFn = missing
	x.main = x.newFunction(compute.MainName, nil)
	return x
}

func missing(op compute.OpType) error {
	return fmt.Errorf("operation %s in backend %s: %w", op, Name, compute.ErrNotImplemented)
}

func (b *Builder) newFunction(name string, parent *Function) *Function {
	return &Function{
		Function: notimplemented.Function{ErrFn: missing},
		builder:  b, name: name, parent: parent, known: map[string]*node{},
	}
}

// Name of the computation.
func (b *Builder) Name() string { return b.name }

// Main returns the function that is compiled.
func (b *Builder) Main() compute.Function { return b.main }

// NewFunction returns a function that others can call.
func (b *Builder) NewFunction(name string) (compute.Function, error) {
	if name == "" || b.names[name] {
		return nil, fmt.Errorf("NewFunction: the name %q is empty or taken", name)
	}
	b.names[name] = true
	return b.newFunction(name, nil), nil
}

// OpShape returns the shape of a value.
func (b *Builder) OpShape(v compute.Value) (shapes.Shape, error) {
	n, ok := v.(*node)
	if !ok {
		return shapes.Invalid(), fmt.Errorf("OpShape: %T is not a value of backend %s", v, Name)
	}
	return n.shape, nil
}

// Compile turns the main function into an executable.
func (b *Builder) Compile() (exec compute.Executable, err error) {
	defer recovered("compile "+b.name, &err)
	if b.done {
		return nil, fmt.Errorf("Compile: %q was compiled already", b.name)
	}
	if !b.main.returned {
		return nil, fmt.Errorf("Compile: Return was not called on the main function of %q", b.name)
	}
	b.done = true
	return newExecutable(b)
}

// recovered turns a panic into an error: the edge of the package lets none through.
func recovered(what string, err *error) {
	switch p := recover().(type) {
	case nil:
	case error:
		var m *memory.Error
		if _, program, ok := strings.Cut(what, " "); ok && errors.As(p, &m) && m.What == "" {
			m.What = "program " + plain(program)
		}
		*err = fmt.Errorf("backend %s: %s: %w", Name, what, p)
	default:
		*err = fmt.Errorf("backend %s: %s: %v", Name, what, p)
	}
}

// Function is a function being built: main, a named one, or a closure.
type Function struct {
	notimplemented.Function
	builder  *Builder
	name     string
	parent   *Function // of a closure
	nodes    []*node
	known    map[string]*node
	params   []*node
	names    []string
	captured []*node // values of parent
	captures []*node // what they are called here
	outputs  []*node
	returned bool
}

// Name of the function; empty for a closure.
func (f *Function) Name() string { return f.name }

// Builder returns the builder of the function.
func (f *Function) Builder() compute.Builder { return f.builder }

// Parent returns the function around a closure.
func (f *Function) Parent() compute.Function {
	if f.parent == nil {
		return nil
	}
	return f.parent
}

// Closure returns a function that can use the values of this one.
func (f *Function) Closure() (compute.Function, error) {
	if err := f.open("Closure"); err != nil {
		return nil, err
	}
	return f.builder.newFunction("", f), nil
}

// open reports why nothing can be added to f.
func (f *Function) open(what string) error {
	if f.builder.done {
		return fmt.Errorf("%s: computation %q was compiled already", what, f.builder.name)
	}
	if f.returned {
		return fmt.Errorf("%s: function %q has returned already", what, f.name)
	}
	return nil
}

// Shape returns the shape of a value.
func (f *Function) Shape(v compute.Value) (shapes.Shape, error) { return f.builder.OpShape(v) }

// Parameter adds an input.
func (f *Function) Parameter(name string, shape shapes.Shape, _ *compute.ShardingSpec) (compute.Value, error) {
	if err := f.open("Parameter"); err != nil {
		return nil, err
	}
	if !shape.Ok() || shape.IsDynamic() || !capabilities.DTypes[shape.DType] {
		return nil, fmt.Errorf("Parameter %q of shape %s: %w", name, shape, compute.ErrNotImplemented)
	}
	if err := checkSize(compute.OpTypeParameter, shape); err != nil {
		return nil, err
	}
	n := f.newNode(compute.OpTypeParameter, shape, len(f.params))
	f.params, f.names = append(f.params, n), append(f.names, name)
	return n, nil
}

// Constant adds a constant; the elements are copied.
func (f *Function) Constant(flat any, dims ...int) (compute.Value, error) {
	if err := f.open("Constant"); err != nil {
		return nil, err
	}
	p, n, t := unboxed(flat)
	if !capabilities.DTypes[t] {
		return nil, fmt.Errorf("Constant of %T: %w", flat, compute.ErrNotImplemented)
	}
	shape := shapes.Shape{DType: t, Dimensions: slices.Clone(dims)}
	if err := checkSize(compute.OpTypeConstant, shape); err != nil {
		return nil, err
	}
	if n != product(dims) {
		return nil, fmt.Errorf("Constant: %d elements do not fill dimensions %v", n, dims)
	}
	return f.constant(shape, p), nil
}

// constant adds a copy of the elements at p; equal small constants are one.
func (f *Function) constant(shape shapes.Shape, p ptr) *node {
	size := shape.Size() * sizeOf(shape.DType)
	key := ""
	if size <= 4096 {
		key = fmt.Sprintf("constant %s %x", shape, bytesAt(p, size))
		if n, ok := f.known[key]; ok {
			return n
		}
	}
	n := f.newNode(compute.OpTypeConstant, shape, nil)
	n.constant = alloc(size)
	copy(bytesAt(n.constant, size), bytesAt(p, size))
	if key != "" {
		f.known[key] = n
	}
	return n
}

// Return ends the function.
func (f *Function) Return(outputs []compute.Value, _ []*compute.ShardingSpec) error {
	if err := f.open("Return"); err != nil {
		return err
	}
	for i, v := range outputs {
		n, err := f.local(fmt.Sprintf("Return: output %d", i), v)
		if err != nil {
			return err
		}
		f.outputs = append(f.outputs, n)
	}
	f.returned = true
	return nil
}
