package engine

import (
	"fmt"
	"strings"
	"sync"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/shapes"

	"github.com/gfnem/gfnem/internal/memory"
)

var _ compute.Executable = (*Executable)(nil)

// Executable is a compiled computation. It may run in several goroutines at once: each run takes a frame of its own.
type Executable struct {
	backend *Backend
	name    string
	what    string
	prog    *program
	names   []string
	inputs  []shapes.Shape
	outputs []shapes.Shape

	mu     sync.Mutex
	frames []*frame // idle ones
}

func newExecutable(b *Builder) (*Executable, error) {
	f := b.main
	e := &Executable{
		backend: b.backend, name: b.name, what: "execute " + b.name, prog: compile(f, b.backend), names: f.names,
		inputs: shapesOf(f.params), outputs: shapesOf(f.outputs),
	}
	return e, memory.Fits("program "+plain(b.name), e.bytes())
}

// plain is a name without the number that GoMLX gives to programs of one name.
func plain(name string) string {
	name, _, _ = strings.Cut(name, "#")
	return name
}

// bytes is the memory that a run takes: inputs, what lives between steps, and outputs that no input is donated for.
func (e *Executable) bytes() float64 {
	p := e.prog
	n := taken(p.arena + p.nested)
	for _, s := range e.inputs {
		n += taken(s.Size() * sizeOf(s.DType))
	}
	for i, s := range e.outputs {
		if p.pairs[i] < 0 {
			n += taken(s.Size() * sizeOf(s.DType))
		}
	}
	return n
}

// Finalize drops the memory of the executable.
func (e *Executable) Finalize() {
	e.mu.Lock()
	e.frames, e.prog = nil, nil
	e.mu.Unlock()
}

// Inputs returns the names and shapes of the parameters.
func (e *Executable) Inputs() ([]string, []shapes.Shape) { return e.names, e.inputs }

// Outputs returns the shapes of the results.
func (e *Executable) Outputs() []shapes.Shape { return e.outputs }

// Execute runs the computation. A donated input becomes invalid; its memory serves an output if it can.
func (e *Executable) Execute(inputs []compute.Buffer, donate []bool, device compute.DeviceNum) (out []compute.Buffer, err error) {
	defer recovered(e.what, &err)
	if device != 0 {
		return nil, fmt.Errorf("execute %s: there is no device %d", e.name, device)
	}
	if len(inputs) != len(e.inputs) || donate != nil && len(donate) != len(inputs) {
		return nil, fmt.Errorf("execute %s: %d inputs (%d of them marked as donated or not) for %d parameters",
			e.name, len(inputs), len(donate), len(e.inputs))
	}
	fr, err := e.frame()
	if err != nil {
		return nil, err
	}
	p := fr.prog
	for i, in := range inputs {
		x, ok := in.(*Buffer)
		if !ok || x.backend != e.backend {
			return nil, fmt.Errorf("execute %s: input %d (%T) is not a buffer of this backend", e.name, i, in)
		}
		if x.mem == nil {
			return nil, x.check(fmt.Sprintf("execute %s: input %d", e.name, i))
		}
		if !x.shape.Equal(e.inputs[i]) {
			return nil, fmt.Errorf("execute %s: input %d (%s) has shape %s, not %s", e.name, i, e.names[i], x.shape, e.inputs[i])
		}
		fr.set(p.params, i, x.mem)
	}
	out = make([]compute.Buffer, len(e.outputs))
	for i, s := range e.outputs {
		var y *Buffer
		if k := p.pairs[i]; k >= 0 && donate != nil && donate[k] && !repeated(inputs, k) {
			from := inputs[k].(*Buffer)
			y = &Buffer{backend: e.backend, shape: s, mem: from.mem, flat: from.flat}
			if s.DType != from.shape.DType { // it is a bitcast
				y.flat = boxed(s.DType, y.mem, s.Size())
			}
			from.mem, from.flat = nil, nil
		} else {
			y = e.backend.newBuffer(s)
		}
		fr.set(p.outputs, i, y.mem)
		out[i] = y
	}
	fr.borrowAndRun()
	for i, d := range donate {
		if d {
			_ = inputs[i].Finalize()
		}
	}
	e.mu.Lock()
	e.frames = append(e.frames, fr)
	e.mu.Unlock()
	return out, nil
}

// repeated reports whether input k is also another input.
func repeated(inputs []compute.Buffer, k int) bool {
	for i, x := range inputs {
		if i != k && x == inputs[k] {
			return true
		}
	}
	return false
}

// frame takes an idle frame, or makes one.
func (e *Executable) frame() (*frame, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.prog == nil {
		return nil, fmt.Errorf("execute %s: the executable was finalised", e.name)
	}
	if k := len(e.frames); k > 0 {
		fr := e.frames[k-1]
		e.frames = e.frames[:k-1]
		return fr, nil
	}
	return e.prog.newFrame(), nil
}
