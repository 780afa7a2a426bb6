package envtest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/gfn/internal/rowbytes"
)

// layout is how the tensors of a state lie one after the other in a row of bytes, by which states are compared.
type layout []shapes.Shape // of one row, with a batch axis of 1

func layoutOf(ts []*tensors.Tensor) layout {
	l := make(layout, len(ts))
	for i, t := range ts {
		dims := slices.Clone(t.Shape().Dimensions)
		dims[0] = 1
		l[i] = shapes.Make(t.DType(), dims...)
	}
	return l
}

// join makes tensors of n rows, the last one repeated.
func (l layout) join(rows []string, n int) []*tensors.Tensor {
	out := make([]*tensors.Tensor, len(l))
	offset := 0
	for i, s := range l {
		width := int(s.ByteSize())
		dims := slices.Clone(s.Dimensions)
		dims[0] = n
		out[i] = tensors.FromShape(shapes.Make(s.DType, dims...))
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

func (l layout) show(row string) string {
	parts := make([]string, len(l))
	for i, t := range l.join([]string{row}, 1) {
		v := fmt.Sprint(t.Value())
		parts[i] = v[1 : len(v)-1] // without the brackets of the batch axis
	}
	return "(" + strings.Join(parts, " ") + ")"
}

// rowTensors returns row i of tensors that share a batch axis, as tensors of one row.
func rowTensors(ts []*tensors.Tensor, i int) []*tensors.Tensor {
	l := layoutOf(ts)
	return l.join(rowbytes.Of(ts)[i:i+1], 1)
}
