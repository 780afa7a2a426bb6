package forest

import (
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"

	"github.com/gfnem/gfnem/internal/program"
)

// Together makes one batch of two, so that they are one rollout: the network is then evaluated on both at once. Apart
// undoes it.
func Together(a, b Walk) Walk {
	words := max(a.Forest.Words(), b.Forest.Words())
	return program.Zip(a.resize(words), b.resize(words), below)
}

// Apart returns the first rows of walks and the others, over so many words.
func Apart(w Walk, rows, words, otherWords int) (a, b Walk) {
	return w.Some(0, rows, words), w.Some(rows, w.Forest.Length.Shape().Dim(0), otherWords)
}

// Some returns some rows of walks, over so many words.
func (w Walk) Some(from, to, words int) Walk {
	return program.Map(w, func(x *Node) *Node { return SliceAxis(x, 0, AxisRange(from, to)) }).resize(words)
}

// resize makes room for more words, which are padding, or takes it away.
func (w Walk) resize(words int) Walk {
	f := w.Forest
	n := f.Words()
	if n == words {
		return w
	}
	b := f.Length.Shape().Dim(0)
	fit := func(x *Node, size int, fill *Node) *Node { // the second axis
		have := x.Shape().Dim(1)
		if size <= have {
			return SliceAxis(x, 1, AxisRange(0, size))
		}
		dims := append([]int{b, size - have}, x.Shape().Dimensions[2:]...)
		return Concatenate([]*Node{x, BroadcastToDims(fill, dims...)}, 1)
	}
	g := f.Root.Graph()
	number := func(v int32) *Node { return Const(g, v) }
	node := func(x *Node) *Node { return Where(GreaterOrEqual(x, number(int32(n))), AddScalar(x, words-n), x) }
	gaps := func(x *Node, fill int32) *Node { return fit(x, words-1, number(fill)) }
	place := Iota(g, shapes.Make(dtypes.Int32, b, words), 1)
	byWord := func(x *Node) *Node {
		if words <= n {
			return SliceAxis(x, 1, AxisRange(0, words))
		}
		return Concatenate([]*Node{x, SliceAxis(place, 1, AxisRangeToEnd(n))}, 1)
	}
	w.Nodes = spread(w.Nodes, n, words)
	w.Inside = program.Map(w.Inside, func(x *Node) *Node { return spread(x, n, words) })
	w.Undone, w.Made = gaps(w.Undone, -1), gaps(w.Made, -1)
	w.Forest = Forest{
		Label: gaps(f.Label, 0), Left: gaps(node(f.Left), 0), Right: gaps(node(f.Right), 0),
		Root: byWord(node(f.Root)), First: byWord(f.First), Last: byWord(f.Last), Length: f.Length,
	}
	return w
}

// spread makes room for more words, or takes it away, in values of n words and the nodes between them, [B,n+G,...].
func spread(x *Node, n, words int) *Node {
	fit := func(part *Node, size int) *Node {
		s := part.Shape().Clone()
		if size <= s.Dimensions[1] {
			return SliceAxis(part, 1, AxisRange(0, size))
		}
		s.Dimensions[1] = size - s.Dimensions[1]
		return Concatenate([]*Node{part, Zeros(x.Graph(), s)}, 1)
	}
	return Concatenate([]*Node{
		fit(SliceAxis(x, 1, AxisRange(0, n)), words), fit(SliceAxis(x, 1, AxisRangeToEnd(n)), words-1),
	}, 1)
}
