package engine

import (
	"fmt"
	"math/bits"
	"sync"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/shapes"

	"github.com/gfnem/gfnem/internal/memory"
)

var _ compute.Buffer = (*Buffer)(nil)

// Buffer is a dense row-major tensor in the process's memory. It belongs to whoever holds it, until it is finalised or
// donated; its memory then serves later buffers.
type Buffer struct {
	backend *Backend
	shape   shapes.Shape
	mem     ptr // nil once finalised
	flat    any
}

// pool keeps the memory of dead buffers, by size class.
type pool struct {
	mu   sync.Mutex
	free [48][]ptr
	held int    // bytes kept
	drop func() // gives back what the pools of the backend keep
}

// maxHeld bounds the memory that a pool keeps, but for one block of each class; beyond it the garbage collector has it.
const maxHeld = 1 << 31

// class is the size class of n bytes: blocks of 1<<class bytes.
func class(n int) int { return bits.Len(uint(max(n, cacheLine) - 1)) }

// taken is the size of the block that n bytes lie in.
func taken(n int) float64 { return float64(int(1) << class(n)) }

func (p *pool) get(n int) ptr {
	c := class(n)
	p.mu.Lock()
	if k := len(p.free[c]); k > 0 {
		m := p.free[c][k-1]
		p.free[c] = p.free[c][:k-1]
		p.held -= 1 << c
		p.mu.Unlock()
		return m
	}
	p.mu.Unlock()
	if memory.Need("", 1<<c) != nil {
		p.drop()
	}
	return alloc(1 << c)
}

func (p *pool) put(m ptr, n int) {
	c := class(n)
	p.mu.Lock()
	if p.held+1<<c <= maxHeld || len(p.free[c]) == 0 {
		p.free[c] = append(p.free[c], m)
		p.held += 1 << c
	}
	p.mu.Unlock()
}

// newBuffer returns a buffer whose elements are whatever its memory held.
func (b *Backend) newBuffer(shape shapes.Shape) *Buffer {
	n := shape.Size()
	m := b.pool.get(n * sizeOf(shape.DType))
	return &Buffer{backend: b, shape: shape, mem: m, flat: boxed(shape.DType, m, n)}
}

func (x *Buffer) bytes() int { return x.shape.Size() * sizeOf(x.shape.DType) }

// Backend returns the backend that made the buffer.
func (x *Buffer) Backend() compute.Backend { return x.backend }

// Finalize gives the memory back. Doing it twice, or after donating the buffer, has no effect.
func (x *Buffer) Finalize() error {
	if x.mem != nil {
		x.backend.pool.put(x.mem, x.bytes())
	}
	x.mem, x.flat = nil, nil
	return nil
}

func (x *Buffer) check(what string) error {
	if x == nil || x.mem == nil {
		return fmt.Errorf("%s: the buffer was finalised or donated", what)
	}
	return nil
}

// Shape returns the shape of the tensor.
func (x *Buffer) Shape() (shapes.Shape, error) {
	if err := x.check("Shape"); err != nil {
		return shapes.Invalid(), err
	}
	return x.shape, nil
}

// DeviceNum returns 0, the only device.
func (x *Buffer) DeviceNum() (compute.DeviceNum, error) { return 0, x.check("DeviceNum") }

// ToFlatData copies the elements to a slice of their type.
func (x *Buffer) ToFlatData(flat any) error {
	if err := x.check("ToFlatData"); err != nil {
		return err
	}
	p, n, t := unboxed(flat)
	if t != x.shape.DType || n != x.shape.Size() {
		return fmt.Errorf("ToFlatData: a %T of %d elements cannot hold %s", flat, n, x.shape)
	}
	copy(bytesAt(p, x.bytes()), bytesAt(x.mem, x.bytes()))
	return nil
}

// Data returns the elements themselves.
func (x *Buffer) Data() (any, error) { return x.flat, x.check("Data") }

// CopyToDevice returns a copy; there is one device.
func (x *Buffer) CopyToDevice(deviceNum compute.DeviceNum) (compute.Buffer, error) {
	if err := x.check("CopyToDevice"); err != nil {
		return nil, err
	}
	return x.backend.BufferFromFlatData(deviceNum, x.flat, x.shape)
}
