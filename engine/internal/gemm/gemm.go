package gemm

import (
	"fmt"
	"math/bits"
	"unsafe"

	"github.com/gfnem/gfnem/engine/internal/cpu"
)

// Float is what matrices are made of.
type Float interface{ float32 | float64 }

// Matrix is a view of Rows x Cols elements: element (i,j) is Data[i*RowStride+j*ColStride]. Strides are not negative.
type Matrix[T Float] struct {
	Data                 []T
	Rows, Cols           int
	RowStride, ColStride int
}

// Dense is the view of a row-major matrix.
func Dense[T Float](data []T, rows, cols int) Matrix[T] {
	return Matrix[T]{Data: data, Rows: rows, Cols: cols, RowStride: cols, ColStride: 1}
}

// T is the transpose of m, of the same elements.
func (m Matrix[T]) T() Matrix[T] {
	return Matrix[T]{Data: m.Data, Rows: m.Cols, Cols: m.Rows, RowStride: m.ColStride, ColStride: m.RowStride}
}

// Activation is an elementwise function applied to the result.
type Activation uint8

const (
	None  Activation = iota
	ReLU             // x, or 0 where x < 0
	Leaky            // x, or Slope*x where x < 0
)

// Options says what happens to a product besides being stored. The zero value stores it. The order is that of the
// fields; each step happens while the element is in a register or a near cache.
type Options[T Float] struct {
	Add bool // C += AB instead of C = AB
	// Max puts + in place of products and the maximum in place of sums: c[i,j] is the greatest a[i,k]+b[k,j], and with
	// Add it is no less than it was. A NaN is the greatest of all, and -0 is less than +0. Max excludes what is below.
	Max     bool
	Bias    []T // nil, or one number per column of C
	RowBias []T // nil, or one number per row of C
	Act     Activation
	Slope   T // of Leaky; finite
	// Func, if not nil, replaces elements by a function of each. It is called on strips of C of any length, once for
	// each element, possibly from several goroutines at once.
	Func func(strip []T)
}

// Gemm sets c to the product of a and b, as o says. The columns of c are contiguous (ColStride 1) and its rows do not
// overlap each other, a, or b.
func Gemm[T Float](c, a, b Matrix[T], o Options[T]) {
	gemmAt(cpu.Use, c, a, b, o)
}

// Gemm32 is Gemm of float32.
func Gemm32(c, a, b Matrix[float32], o Options[float32]) { gemmAt(cpu.Use, c, a, b, o) }

// Gemm64 is Gemm of float64.
func Gemm64(c, a, b Matrix[float64], o Options[float64]) { gemmAt(cpu.Use, c, a, b, o) }

func gemmAt[T Float](level cpu.Level, c, a, b Matrix[T], o Options[T]) {
	check(c, a, b, &o)
	checkExtent("C", c, 0)
	checkExtent("A", a, 0)
	checkExtent("B", b, 0)
	if c.Rows == 0 || c.Cols == 0 {
		return
	}
	g := getJob[T]()
	g.set(level, c, a, b, &o)
	g.product()
	g.free()
}

// check panics if the sizes of the matrices do not fit each other.
func check[T Float](c, a, b Matrix[T], o *Options[T]) {
	if a.Rows != c.Rows || b.Cols != c.Cols || a.Cols != b.Rows {
		panic(fmt.Sprintf("gemm: [%d,%d] is not the shape of [%d,%d] x [%d,%d]",
			c.Rows, c.Cols, a.Rows, a.Cols, b.Rows, b.Cols))
	}
	if c.Cols > 1 && c.ColStride != 1 || c.Rows > 1 && c.RowStride < c.Cols {
		panic(fmt.Sprintf("gemm: the rows of C are not contiguous, or overlap: [%d,%d] with strides %d, %d",
			c.Rows, c.Cols, c.RowStride, c.ColStride))
	}
	if o.Bias != nil && len(o.Bias) != c.Cols {
		panic(fmt.Sprintf("gemm: bias of %d for %d columns", len(o.Bias), c.Cols))
	}
	if o.RowBias != nil && len(o.RowBias) != c.Rows {
		panic(fmt.Sprintf("gemm: row bias of %d for %d rows", len(o.RowBias), c.Rows))
	}
	if o.Act > Leaky {
		panic(fmt.Sprintf("gemm: unknown activation %d", o.Act))
	}
	if o.Max && (o.Bias != nil || o.RowBias != nil || o.Act != None || o.Func != nil) {
		panic("gemm: Max excludes biases, activations and functions")
	}
}

// checkExtent panics if m, moved by offset elements, is not within its data.
func checkExtent[T Float](name string, m Matrix[T], offset int) {
	if m.Rows < 0 || m.Cols < 0 || m.RowStride < 0 || m.ColStride < 0 || offset < 0 {
		panic(fmt.Sprintf("gemm: negative size or stride: %s is [%d,%d] with strides %d, %d, moved by %d",
			name, m.Rows, m.Cols, m.RowStride, m.ColStride, offset))
	}
	if m.Rows == 0 || m.Cols == 0 {
		return
	}
	high1, low1 := bits.Mul64(uint64(m.Rows-1), uint64(m.RowStride))
	high2, low2 := bits.Mul64(uint64(m.Cols-1), uint64(m.ColStride))
	size := uint64(len(m.Data)) // the sum of three numbers below it does not overflow
	if high1|high2 != 0 || low1 >= size || low2 >= size || uint64(offset) >= size || low1+low2+uint64(offset) >= size {
		panic(fmt.Sprintf("gemm: %s [%d,%d] with strides %d, %d, moved by %d, does not fit %d elements",
			name, m.Rows, m.Cols, m.RowStride, m.ColStride, offset, len(m.Data)))
	}
}

// base is the address of the first element, or nil.
func base[T Float](s []T) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(s)) }
