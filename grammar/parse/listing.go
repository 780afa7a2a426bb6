package parse

import (
	"fmt"
	"sync"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/grammar/forest"
	"github.com/gfnem/gfnem/internal/program"
)

// listing is all forests over n words, and the steps between them: the same for all sentences of a length.
type listing struct {
	*gfn.DAG
	n     int
	inner int                 // the number of forests of more than one tree; they come first
	parts [][]*tensors.Tensor // of these, listingRows at a time, the last one repeated
	trees []*grammar.Tree     // by object
}

// mostForests is the number of forests up to which they are listed; six words and three labels have 14,506.
const mostForests = 20_000

// mostListed is the number of forests of all sentences up to which they are listed; a hundred of the small grammar's
// have 400,000.
const mostListed = 1_000_000

// listingRows is the number of forests that the network reads at a time.
const listingRows = 512

// countForests is the number of forests over n words with so many labels, or a number above mostForests.
func countForests(n, labels int) int {
	trees, forests := make([]float64, n+1), make([]float64, n+1)
	trees[1], forests[0] = 1, 1
	for k := 1; k <= n; k++ {
		for left := 1; left < k; left++ {
			trees[k] += float64(labels) * trees[left] * trees[k-left]
		}
		for last := 1; last <= k; last++ {
			forests[k] += forests[k-last] * trees[last]
		}
	}
	return int(min(forests[n], mostForests+1))
}

var listings sync.Map // of *listing, by backend, which holds its tensors, words and labels

// listForests returns the listing of a length, which is made once.
func listForests(b compute.Backend, env forest.Env) (*listing, error) {
	n := env.Words
	key := struct {
		backend compute.Backend
		env     forest.Env
	}{b, env}
	if l, ok := listings.Load(key); ok {
		return l.(*listing), nil
	}
	x := []*tensors.Tensor{
		tensors.FromFlatDataAndDimensions(make([]int32, n), 1, n), tensors.FromValue([]int32{int32(n)}),
	}
	d, err := gfn.Enumerate(b, env, x, mostForests)
	if err != nil {
		return nil, fmt.Errorf("list the trees over %d words: %w", n, err)
	}
	l := &listing{DAG: d, n: n, inner: d.Objects[0]}
	for from := 0; from < l.inner; from += listingRows {
		part := make([]*tensors.Tensor, len(d.States()))
		for i, all := range d.States() {
			part[i] = someRows(all, from, l.inner)
		}
		l.parts = append(l.parts, part)
	}
	l.trees = l.readTrees()
	listings.Store(key, l)
	return l, nil
}

// someRows copies listingRows rows of an int32 tensor; from row end on, the last one before it is repeated.
func someRows(t *tensors.Tensor, from, end int) *tensors.Tensor {
	all := tensors.MustCopyFlatData[int32](t)
	size := len(all) / t.Shape().Dim(0)
	out := make([]int32, 0, listingRows*size)
	for r := range listingRows {
		at := min(from+r, end-1) * size
		out = append(out, all[at:at+size]...)
	}
	return tensors.FromFlatDataAndDimensions(out, append([]int{listingRows}, t.Shape().Dimensions[1:]...)...)
}

// readTrees reads the objects, forests of one tree each, from the top down.
func (l *listing) readTrees() []*grammar.Tree {
	flat := tensors.MustCopyFlatData[int32]
	f := program.Of[forest.ForestTensors](l.ObjectStates())
	label, left, right, root := flat(f.Label), flat(f.Left), flat(f.Right), flat(f.Root)
	out := make([]*grammar.Tree, len(l.Objects))
	for i := range out {
		z := &grammar.Tree{}
		var read func(node int32) int
		read = func(node int32) int {
			if int(node) < l.n {
				return int(node)
			}
			at := i*(l.n-1) + int(node) - l.n
			first, second := read(left[at]), read(right[at])
			z.Left, z.Right, z.Label = append(z.Left, first), append(z.Right, second), append(z.Label, int(label[at])-1)
			return l.n + len(z.Left) - 1
		}
		read(root[i*l.n])
		out[i] = z
	}
	return out
}
