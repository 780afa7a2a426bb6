// Package rowbytes has the rows of tensors as bytes, by which states are compared.
package rowbytes

import (
	"slices"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"
)

// Of returns the bytes of each row of tensors that share a batch axis, over all tensors.
func Of(ts []*tensors.Tensor) []string {
	rows := make([][]byte, ts[0].Shape().Dim(0))
	for _, t := range ts {
		err := t.ConstBytes(func(data []byte) {
			width := len(data) / len(rows)
			for r := range rows {
				rows[r] = append(rows[r], data[r*width:(r+1)*width]...)
			}
		})
		if err != nil {
			panic(err)
		}
	}
	out := make([]string, len(rows))
	for r := range rows {
		out[r] = string(rows[r])
	}
	return out
}

// Layout is how tensors lie one after the other in a row of bytes: their shapes for one row, with a batch axis of 1.
type Layout []shapes.Shape

// LayoutOf returns the layout of the rows of tensors.
func LayoutOf(ts []*tensors.Tensor) Layout {
	l := make(Layout, len(ts))
	for i, t := range ts {
		l[i] = withRows(t.Shape(), 1)
	}
	return l
}

// Join makes tensors of n rows, the last one repeated.
func (l Layout) Join(rows []string, n int) []*tensors.Tensor {
	out := make([]*tensors.Tensor, len(l))
	offset := 0
	for i, s := range l {
		width := int(s.ByteSize())
		out[i] = tensors.FromShape(withRows(s, n))
		err := out[i].MutableBytes(func(data []byte) {
			for r := range n {
				copy(data[r*width:], rows[min(r, len(rows)-1)][offset:offset+width])
			}
		})
		if err != nil {
			panic(err)
		}
		offset += width
	}
	return out
}

func withRows(s shapes.Shape, n int) shapes.Shape {
	dims := slices.Clone(s.Dimensions)
	dims[0] = n
	return shapes.Make(s.DType, dims...)
}
