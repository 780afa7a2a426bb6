package grammar

import (
	"fmt"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
)

// Trees are one labelled tree for each sentence of a batch: words are nodes 0 to n-1, and the t-th merge of two nodes makes
// node n+t, where n is the greatest length of the batch. A sentence of k words has k-1 merges, and zeros after them. Merges
// are bottom-up, the top last, where it is not said otherwise.
type Trees struct {
	Left, Right, Label *Node // [B,n-1] int32
}

// TreeTensors are Trees on the host.
type TreeTensors struct{ Left, Right, Label *tensors.Tensor }

// PackTrees makes tensors of trees over at most n words, in the shapes of Trees.
func PackTrees(trees []*Tree, n int) (left, right, label *tensors.Tensor, err error) {
	size := len(trees) * (n - 1)
	l, r, x := make([]int32, size), make([]int32, size), make([]int32, size)
	for b, t := range trees {
		k := t.Words()
		if k > n {
			return nil, nil, nil, fmt.Errorf("grammar: tree %d of the batch has %d words, at most %d fit", b, k, n)
		}
		node := func(c int) int32 {
			if c >= k {
				c += n - k
			}
			return int32(c)
		}
		for m := range t.Left {
			at := b*(n-1) + m
			l[at], r[at], x[at] = node(t.Left[m]), node(t.Right[m]), int32(t.Label[m])
		}
	}
	make2 := func(v []int32) *tensors.Tensor { return tensors.FromFlatDataAndDimensions(v, len(trees), n-1) }
	return make2(l), make2(r), make2(x), nil
}

// UnpackTrees undoes PackTrees, given the number of words of each sentence. Tags [B,n] may be nil.
func UnpackTrees(left, right, label, tags *tensors.Tensor, lengths []int32) []*Tree {
	l, r, x := tensors.MustCopyFlatData[int32](left), tensors.MustCopyFlatData[int32](right), tensors.MustCopyFlatData[int32](label)
	var tag []int32
	if tags != nil {
		tag = tensors.MustCopyFlatData[int32](tags)
	}
	n := left.Shape().Dim(1) + 1
	out := make([]*Tree, len(lengths))
	for b, length := range lengths {
		k := int(length)
		node := func(c int32) int {
			if int(c) >= n {
				return int(c) - (n - k)
			}
			return int(c)
		}
		t := &Tree{}
		for m := range k - 1 {
			at := b*(n-1) + m
			t.Left, t.Right, t.Label = append(t.Left, node(l[at])), append(t.Right, node(r[at])), append(t.Label, int(x[at]))
		}
		for i := range k {
			if tag != nil {
				t.Tags = append(t.Tags, int(tag[b*n+i]))
			}
		}
		out[b] = t
	}
	return out
}
