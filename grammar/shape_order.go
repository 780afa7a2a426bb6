package grammar

import (
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
)

// merges are those of a tree of each sentence, in an order in which a node comes after what is below it. Word i is node
// i, and merge t makes node n+t. All are [sentences,M] but for words, which are [sentences,n].
type merges struct {
	leftNode, rightNode *Node
	parent              *Node // 2u or 2u+1 for the left or right child of merge u
	hasParent           *Node // neither the top nor padding
	wordAt              *Node // u or M+u for the left or right child of merge u
	wordUsed            *Node // not padding
}

// bottomUp sorts merges by how many others are below them. Padding comes last.
func (l *layout) bottomUp(z Trees) merges {
	g, k := z.Left.Graph(), l.n-1
	number := func(dims ...int) *Node { return Iota(g, shapes.Make(dtypes.Int32, dims...), len(dims)-1) }
	merge := number(l.sentences, k)
	live := LessThan(merge, SubScalar(InsertAxes(l.lengths, -1), 1))
	// child says of every node [i] and merge [u] whether the one is this child of the other.
	child := func(of *Node, nodes *Node) *Node {
		is := Equal(InsertAxes(nodes, -1), InsertAxes(of, 1))
		return LogicalAnd(is, BroadcastToDims(InsertAxes(live, 1), is.Shape().Dimensions...))
	}
	node := AddScalar(merge, l.n)
	isLeft, isRight := child(z.Left, node), child(z.Right, node) // [sentences,M,M]
	taken := LogicalOr(isLeft, isRight)

	below := ConvertDType(taken, dtypes.Float32) // paths of one step, then of two, four and so on
	for steps := 1; steps < k; steps *= 2 {
		below = MinScalar(Add(below, DotGeneral(below, []int{2}, []int{0}, below, []int{1}, []int{0})), 1)
	}
	size := ConvertDType(ReduceSum(below, 1), dtypes.Int32)
	size = Where(live, size, AddScalar(size, k))
	mine, other := InsertAxes(size, -1), InsertAxes(size, 1)
	earlier := LogicalOr(LessThan(other, mine), LogicalAnd(Equal(other, mine), LessThan(number(1, 1, k), InsertAxes(merge, -1))))
	rank := ReduceSum(ConvertDType(earlier, dtypes.Int32), -1) // [sentences,M]

	order := Equal(InsertAxes(rank, 1), InsertAxes(merge, -1)) // [sentences,t,u]: merge u is the t-th
	sorted := func(x *Node) *Node {
		x = BroadcastToDims(InsertAxes(x, 1), l.sentences, k, k)
		return ReduceSum(Where(order, x, ZerosLike(x)), -1)
	}
	ranked := func(is *Node, scale, add int) *Node { // of the merge that has this child
		x := BroadcastToDims(InsertAxes(AddScalar(MulScalar(rank, scale), add), 1), is.Shape().Dimensions...)
		return ReduceSum(Where(is, x, ZerosLike(x)), -1)
	}
	some := func(is *Node) *Node { return ReduceMax(ConvertDType(is, dtypes.Int32), -1) }
	renumbered := func(of *Node) *Node {
		row := Iota(g, shapes.Make(dtypes.Int32, l.sentences, k), 0)
		to := AddScalar(Gather(rank, Stack([]*Node{row, MaxScalar(SubScalar(of, l.n), 0)}, -1)), l.n)
		return sorted(Where(LessThan(of, Scalar(g, dtypes.Int32, l.n)), of, to))
	}
	word := number(l.sentences, l.n)
	wordLeft, wordRight := child(z.Left, word), child(z.Right, word) // [sentences,n,M]
	zero := Scalar(g, dtypes.Int32, 0)
	return merges{
		leftNode: renumbered(z.Left), rightNode: renumbered(z.Right),
		parent:    sorted(Add(ranked(isLeft, 2, 0), ranked(isRight, 2, 1))),
		hasParent: GreaterThan(sorted(some(taken)), zero),
		wordAt:    Add(ranked(wordLeft, 1, 0), ranked(wordRight, 1, k)),
		wordUsed:  GreaterThan(some(LogicalOr(wordLeft, wordRight)), zero),
	}
}
