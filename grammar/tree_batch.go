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

// HostTrees are Trees as tensors.
type HostTrees struct{ Left, Right, Label *tensors.Tensor }

// PackTrees makes tensors of trees over at most n words.
func PackTrees(trees []*Tree, n int) (HostTrees, error) {
	size := len(trees) * (n - 1)
	left, right, label := make([]int32, size), make([]int32, size), make([]int32, size)
	for b, t := range trees {
		k := t.Words()
		if k > n {
			return HostTrees{}, fmt.Errorf("grammar: tree %d of the batch has %d words, at most %d fit", b, k, n)
		}
		node := func(c int) int32 {
			if c >= k {
				c += n - k
			}
			return int32(c)
		}
		for m := range t.Left {
			at := b*(n-1) + m
			left[at], right[at], label[at] = node(t.Left[m]), node(t.Right[m]), int32(t.Label[m])
		}
	}
	pack := func(v []int32) *tensors.Tensor { return tensors.FromFlatDataAndDimensions(v, len(trees), n-1) }
	return HostTrees{pack(left), pack(right), pack(label)}, nil
}

// UnpackTrees undoes PackTrees, given the number of words of each sentence. Tags [B,n] may be nil.
func UnpackTrees(z HostTrees, tags *tensors.Tensor, lengths []int32) []*Tree {
	flat := tensors.MustCopyFlatData[int32]
	left, right, label := flat(z.Left), flat(z.Right), flat(z.Label)
	var tag []int32
	if tags != nil {
		tag = flat(tags)
	}
	n := z.Left.Shape().Dim(1) + 1
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
			t.Left, t.Right, t.Label = append(t.Left, node(left[at])), append(t.Right, node(right[at])), append(t.Label, int(label[at]))
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
