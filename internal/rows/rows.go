// Package rows copies rows of tensors that share their first axis.
package rows

import (
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/support/xslices"
)

// Of returns the bytes of each row, over all tensors, by which rows are compared.
func Of(ts []*tensors.Tensor) []string {
	rows := make([][]byte, ts[0].Shape().Dim(0))
	for _, t := range ts {
		must(t.ConstBytes(func(data []byte) {
			width := len(data) / len(rows)
			for r := range rows {
				rows[r] = append(rows[r], data[r*width:(r+1)*width]...)
			}
		}))
	}
	return xslices.Map(rows, func(row []byte) string { return string(row) })
}

// Join makes n rows of such bytes, the last one repeated, for tensors like others.
func Join(like []*tensors.Tensor, rows []string, n int) []*tensors.Tensor {
	offset := 0
	return xslices.Map(like, func(t *tensors.Tensor) *tensors.Tensor {
		out := empty(t, n)
		must(out.MutableBytes(func(data []byte) {
			width := len(data) / n
			for r := range n {
				copy(data[r*width:], rows[min(r, len(rows)-1)][offset:offset+width])
			}
			offset += width
		}))
		return out
	})
}

// Take copies the rows of some numbers.
func Take(ts []*tensors.Tensor, rows []int) []*tensors.Tensor {
	return xslices.Map(ts, func(t *tensors.Tensor) *tensors.Tensor {
		out := empty(t, len(rows))
		must(t.ConstBytes(func(from []byte) {
			must(out.MutableBytes(func(to []byte) {
				width := len(to) / len(rows)
				for i, r := range rows {
					copy(to[i*width:(i+1)*width], from[r*width:])
				}
			}))
		}))
		return out
	})
}

// Put copies each row of some tensors to the row of others that at says, or nowhere if that is negative.
func Put(to, from []*tensors.Tensor, at func(row int) int) {
	for i, t := range from {
		count := t.Shape().Dim(0)
		must(t.ConstBytes(func(data []byte) {
			must(to[i].MutableBytes(func(out []byte) {
				width := len(data) / count
				for r := range count {
					if k := at(r); k >= 0 {
						copy(out[k*width:(k+1)*width], data[r*width:])
					}
				}
			}))
		}))
	}
}

// Empty returns tensors like others, with n rows.
func Empty(like []*tensors.Tensor, n int) []*tensors.Tensor {
	return xslices.Map(like, func(t *tensors.Tensor) *tensors.Tensor { return empty(t, n) })
}

// empty returns a tensor like another, with n rows.
func empty(like *tensors.Tensor, n int) *tensors.Tensor {
	return tensors.FromShape(shapes.Make(like.DType(), append([]int{n}, like.Shape().Dimensions[1:]...)...))
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
