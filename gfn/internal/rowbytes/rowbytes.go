// Package rowbytes has the rows of tensors as bytes, by which states are compared.
package rowbytes

import "github.com/gomlx/gomlx/core/tensors"

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
