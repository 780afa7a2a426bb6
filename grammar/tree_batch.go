package grammar

import (
	"fmt"
	"slices"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
)

// Trees are one labelled tree for each sentence of a batch: words are nodes 0 to n-1, and the t-th merge of two nodes
// makes node n+t, where n is the greatest length of the batch. A sentence of k words has k-1 merges, and zeros after
// them. Merges are bottom-up, the top last, where it is not said otherwise.
type Trees struct {
	Left, Right, Label *Node // [B,n-1] int32
}

// TreeTensors are Trees on the host.
type TreeTensors struct{ Left, Right, Label *tensors.Tensor }

// PackTrees makes tensors of trees over at most n words.
func PackTrees(trees []*Tree, n int) (TreeTensors, error) {
	return pack(trees, n, func(t *Tree) []int {
		order := make([]int, len(t.Left))
		for m := range order {
			order[m] = m
		}
		return order
	})
}

// PackByGaps is PackTrees in the order of the gaps between words: the node at a gap is the one whose left part ends
// there.
func PackByGaps(trees []*Tree, n int) (TreeTensors, error) {
	return pack(trees, n, func(t *Tree) []int {
		gaps, spans := slices.Clone(t.Left), t.Spans()
		for m, left := range gaps {
			if k := t.Words(); left >= k {
				gaps[m] = spans[left-k].Last
			}
		}
		return gaps
	})
}

// pack puts the merges of trees at places.
func pack(trees []*Tree, n int, places func(t *Tree) []int) (TreeTensors, error) {
	size := len(trees) * (n - 1)
	left, right, label := make([]int32, size), make([]int32, size), make([]int32, size)
	for b, t := range trees {
		k := t.Words()
		if k > n {
			return TreeTensors{}, fmt.Errorf("grammar: tree %d of the batch has %d words, at most %d fit", b, k, n)
		}
		place := places(t)
		node := func(c int) int32 {
			if c >= k {
				c = n + place[c-k]
			}
			return int32(c)
		}
		for m := range t.Left {
			at := b*(n-1) + place[m]
			left[at], right[at], label[at] = node(t.Left[m]), node(t.Right[m]), int32(t.Label[m])
		}
	}
	tensor := func(v []int32) *tensors.Tensor { return tensors.FromFlatDataAndDimensions(v, len(trees), n-1) }
	return TreeTensors{tensor(left), tensor(right), tensor(label)}, nil
}

// UnpackTrees undoes PackTrees, given the number of words of each sentence. Tags [B,n] may be nil.
func UnpackTrees(z TreeTensors, tags *tensors.Tensor, lengths []int32) []*Tree {
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
