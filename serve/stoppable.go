package serve

import (
	"slices"
	"sync/atomic"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/shapes"

	"github.com/gfnem/gfnem/backend"
)

// stoppable is a backend whose programs do not start any more when nobody waits for what they compute: so work ends
// with the program that runs, whatever model does it.
type stoppable struct {
	compute.Backend
	asking atomic.Pointer[[]*job] // what is being computed for; nil, as while a model is opened: for whoever comes
}

// asksFor says for which requests it computes, until done is called.
func (b *stoppable) asksFor(jobs []*job) (done func()) {
	b.asking.Store(&jobs)
	return func() { b.asking.Store(nil) }
}

// check is an error if nobody waits.
func (b *stoppable) check() error {
	if jobs := b.asking.Load(); jobs != nil && !slices.ContainsFunc(*jobs, (*job).isAwaited) {
		return errTooSlow
	}
	return nil
}

// QuickToCompile is as with the backend itself, see backend.QuickToCompile.
func (b *stoppable) QuickToCompile() bool { return backend.QuickToCompile(b.Backend) }

// BufferFromFlatData implements compute.Backend.
func (b *stoppable) BufferFromFlatData(device compute.DeviceNum, flat any, shape shapes.Shape) (compute.Buffer, error) {
	return b.own(b.Backend.BufferFromFlatData(device, flat, shape))
}

// NewSharedBuffer implements compute.Backend.
func (b *stoppable) NewSharedBuffer(device compute.DeviceNum, shape shapes.Shape) (compute.Buffer, any, error) {
	x, flat, err := b.Backend.NewSharedBuffer(device, shape)
	own, err := b.own(x, err)
	return own, flat, err
}

// own makes a buffer one of this backend.
func (b *stoppable) own(x compute.Buffer, err error) (compute.Buffer, error) {
	if err != nil {
		return nil, err
	}
	return stoppableBuffer{x, b}, nil
}

type stoppableBuffer struct {
	compute.Buffer
	backend *stoppable
}

// Backend implements compute.Buffer.
func (x stoppableBuffer) Backend() compute.Backend { return x.backend }

// CopyToDevice implements compute.Buffer.
func (x stoppableBuffer) CopyToDevice(device compute.DeviceNum) (compute.Buffer, error) {
	return x.backend.own(x.Buffer.CopyToDevice(device))
}

// Builder implements compute.Backend.
func (b *stoppable) Builder(name string) compute.Builder {
	return stoppableBuilder{b.Backend.Builder(name), b}
}

type stoppableBuilder struct {
	compute.Builder
	backend *stoppable
}

// Compile implements compute.Builder.
func (b stoppableBuilder) Compile() (compute.Executable, error) {
	if err := b.backend.check(); err != nil {
		return nil, err
	}
	e, err := b.Builder.Compile()
	if err != nil {
		return nil, err
	}
	return stoppableProgram{e, b.backend}, nil
}

type stoppableProgram struct {
	compute.Executable
	backend *stoppable
}

// Execute implements compute.Executable.
func (p stoppableProgram) Execute(in []compute.Buffer, donate []bool, device compute.DeviceNum) ([]compute.Buffer, error) {
	if err := p.backend.check(); err != nil {
		return nil, err
	}
	inner := make([]compute.Buffer, len(in))
	for i, x := range in {
		inner[i] = x.(stoppableBuffer).Buffer
	}
	out, err := p.Executable.Execute(inner, donate, device)
	for i := range out {
		out[i] = stoppableBuffer{out[i], p.backend}
	}
	return out, err
}
