package engine

import (
	"fmt"
	"runtime"
	"sync/atomic"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/shapes"

	"github.com/gfnem/gfnem/engine/internal/cpu"
)

// Name is what the backend is registered as.
const Name = "simd"

func init() { compute.Register(Name, New) }

var _ compute.Backend = (*Backend)(nil)

// Backend implements compute.Backend on the processor's vector units.
type Backend struct {
	pool      pool
	scratch   pool
	finalized atomic.Bool
	noFusion  bool
	profiler  atomic.Pointer[Profiler]
}

// New returns a backend. The configuration is empty, or "nofusion", which makes every operation a step of its own (for
// tests).
func New(config string) (compute.Backend, error) {
	b := &Backend{noFusion: config == "nofusion"}
	if config != "" && !b.noFusion {
		return nil, fmt.Errorf("backend %s: unknown configuration %q", Name, config)
	}
	b.pool.drop, b.scratch.drop = b.dropIdle, b.dropIdle
	return b, nil
}

// Name returns "simd".
func (b *Backend) Name() string { return Name }

// QuickToCompile declares that programs are quick to compile and take as long as their arithmetic.
func (b *Backend) QuickToCompile() bool { return true }

// String returns the same as Name.
func (b *Backend) String() string { return Name }

// Description says which instructions are used.
func (b *Backend) Description() string {
	return fmt.Sprintf("simd - compiled CPU backend (%s, instructions: %s)", runtime.GOARCH, cpu.Use)
}

// NumDevices is 1.
func (b *Backend) NumDevices() int { return 1 }

// DeviceDescription describes the device.
func (b *Backend) DeviceDescription(compute.DeviceNum) string { return b.Description() }

// Capabilities lists what the engine has.
func (b *Backend) Capabilities() compute.Capabilities { return capabilities.Clone() }

// Builder starts a new computation.
func (b *Backend) Builder(name string) compute.Builder { return newBuilder(b, name) }

// Finalize drops the memory that is kept for reuse.
func (b *Backend) Finalize() {
	b.finalized.Store(true)
	b.dropIdle()
}

// dropIdle leaves the memory that is kept for reuse to the garbage collector.
func (b *Backend) dropIdle() {
	for _, p := range []*pool{&b.pool, &b.scratch} {
		p.mu.Lock()
		p.free, p.held = [48][]ptr{}, 0
		p.mu.Unlock()
	}
}

// IsFinalized reports whether Finalize was called.
func (b *Backend) IsFinalized() bool { return b.finalized.Load() }

// BufferFromFlatData copies a flat slice into a new buffer.
func (b *Backend) BufferFromFlatData(deviceNum compute.DeviceNum, flat any, shape shapes.Shape) (_ compute.Buffer, err error) {
	defer recovered("BufferFromFlatData", &err)
	if deviceNum != 0 {
		return nil, fmt.Errorf("BufferFromFlatData: there is no device %d", deviceNum)
	}
	p, n, t := unboxed(flat)
	if t != shape.DType || n != shape.Size() {
		return nil, fmt.Errorf("BufferFromFlatData: a %T of %d elements does not fill %s", flat, n, shape)
	}
	if !capabilities.DTypes[t] {
		return nil, fmt.Errorf("BufferFromFlatData: type %s: %w", shape.DType, compute.ErrNotImplemented)
	}
	x := b.newBuffer(shape.Clone())
	copy(bytesAt(x.mem, x.bytes()), bytesAt(p, x.bytes()))
	return x, nil
}

// HasSharedBuffers is true: buffers are memory of the process.
func (b *Backend) HasSharedBuffers() bool { return true }

// NewSharedBuffer returns a zeroed buffer and its elements.
func (b *Backend) NewSharedBuffer(deviceNum compute.DeviceNum, shape shapes.Shape) (_ compute.Buffer, _ any, err error) {
	defer recovered("NewSharedBuffer", &err)
	if deviceNum != 0 {
		return nil, nil, fmt.Errorf("NewSharedBuffer: there is no device %d", deviceNum)
	}
	if !capabilities.DTypes[shape.DType] {
		return nil, nil, fmt.Errorf("NewSharedBuffer: type %s: %w", shape.DType, compute.ErrNotImplemented)
	}
	x := b.newBuffer(shape.Clone())
	clear(bytesAt(x.mem, x.bytes()))
	return x, x.flat, nil
}
