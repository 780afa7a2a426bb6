package induce

import (
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/grammar/forest"
	"github.com/gfnem/gfnem/grammar/parse"
	"github.com/gfnem/gfnem/internal/memory"
	"github.com/gfnem/gfnem/internal/program"
)

// keptTrees are some trees of each training sentence. They are in the order of gaps; a node is a word, or its gap and
// the greatest number of words. A label is one more than that of the node, 0 where there is no tree yet.
type keptTrees struct {
	variable   *model.Variable // [sentences,each,3,words-1] int32: labels, left and right children
	each, most int             // trees of a sentence; words
}

// newKeptTrees makes room for trees below em.Kept, so that checkpoints have them.
func newKeptTrees(store *model.Store, name string, sentences, each, most int) (*keptTrees, error) {
	if err := memory.Need("the trees that are kept", 4, sentences, each, 3, most-1); err != nil {
		return nil, err
	}
	none := tensors.FromShape(shapes.Make(dtypes.Int32, sentences, each, 3, most-1))
	v := store.Scope(em.Kept).VariableWithValue(name, none).SetTrainable(false)
	return &keptTrees{variable: v, each: each, most: most}, nil
}

// row is what is kept of a row of a batch: labels, left and right children.
func (k *keptTrees) row(all []int32, b parse.Padded, row int) (label, left, right []int32) {
	gaps := k.most - 1
	at := all[(b.Numbers[row/k.each]*k.each+row%k.each)*3*gaps:]
	return at[:gaps], at[gaps:][:gaps], at[2*gaps:][:gaps]
}

// trees are those of a batch, and which of its rows have one; the others have a tree that branches to the right.
func (k *keptTrees) trees(b parse.Padded) (z grammar.TreeTensors, there *tensors.Tensor, some int) {
	n := b.Room()
	var label, left, right []int32
	has := make([]bool, len(b.LengthOf))
	tensors.MustConstFlatData(k.variable.MustValue(), func(all []int32) {
		for i, length := range b.LengthOf {
			keptLabel, keptLeft, keptRight := k.row(all, b, i)
			if has[i] = keptLabel[0] > 0; has[i] {
				some++
			}
			node := func(c int32) int32 {
				if int(c) >= k.most {
					return c - int32(k.most-n)
				}
				return c
			}
			for g := range int32(n - 1) {
				switch {
				case g >= length-1:
					label, left, right = append(label, 0), append(left, 0), append(right, 0)
				case has[i]:
					label, left, right = append(label, keptLabel[g]-1), append(left, node(keptLeft[g])), append(right, node(keptRight[g]))
				case g == length-2:
					label, left, right = append(label, 0), append(left, g), append(right, g+1)
				default:
					label, left, right = append(label, 0), append(left, g), append(right, int32(n)+g+1)
				}
			}
		}
	})
	tensor := func(v []int32) *tensors.Tensor { return tensors.FromFlatDataAndDimensions(v, len(b.LengthOf), n-1) }
	return grammar.TreeTensors{Left: tensor(left), Right: tensor(right), Label: tensor(label)}, tensors.FromValue(has), some
}

// keep keeps a tree for each row of a batch: that of a row of forests, or what there is if that is negative. What is
// not whole, since a network said nothing finite, is not kept.
func (k *keptTrees) keep(b parse.Padded, f forest.ForestTensors, from func(row int) int) {
	flat := tensors.MustCopyFlatData[int32]
	label, left, right, n := flat(f.Label), flat(f.Left), flat(f.Right), b.Room()
	tensors.MustMutableFlatData(k.variable.MustValue(), func(all []int32) {
		for i, length := range b.LengthOf {
			row := from(i) * (n - 1)
			whole := row >= 0
			for g := range int(length) - 1 {
				whole = whole && label[row+g] > 0
			}
			if !whole {
				continue
			}
			keptLabel, keptLeft, keptRight := k.row(all, b, i)
			node := func(c int32) int32 {
				if int(c) >= n {
					return c + int32(k.most-n)
				}
				return c
			}
			for g := range int(length) - 1 {
				keptLabel[g], keptLeft[g], keptRight[g] = label[row+g], node(left[row+g]), node(right[row+g])
			}
		}
	})
}

type (
	resumeIn[T, W, Z any] struct {
		Moves  moveKeys[T]
		Knobs  em.Knobs[T]
		Target forest.Target[T]
		Words  T
		Trees  Z
		There  T // [B] bool: the rows that have a tree to go on from
		Fresh  W
		LogR   T // of fresh trees
	}
	resumeOut[T, W, R any] struct {
		Walk W
		LogR T
		Next R
	}

	resumeArgs   = resumeIn[*tensors.Tensor, forest.WalkTensors, grammar.TreeTensors]
	resumeResult = resumeOut[*tensors.Tensor, forest.WalkTensors, forest.RolloutTensors]
)

// resumed puts chains that persist where they were, under the grammar and the network as they are now, and starts the
// first move.
func (e *gflownet) resumed(in resumeIn[*Node, forest.Walk, grammar.Trees]) (out resumeOut[*Node, forest.Walk, forest.Rollout]) {
	kept := e.Embed(e.phi(), forest.FromTrees(in.Trees, in.Target.Lengths), in.Words)
	out.Walk = chosen(in.There, kept, in.Fresh)
	out.LogR = Where(in.There, e.RewardOf(in.Target, kept.Forest, kept.Inside).LogR, in.LogR)
	out.Next = e.nextMove(moveAt(in.Moves, 0), in.Target, out.Walk, in.Knobs)
	return out
}

// chosen are the rows of walks that are marked, and of others elsewhere.
func chosen(is *Node, yes, no forest.Walk) forest.Walk {
	return program.Zip(no, yes, func(no, yes *Node) *Node {
		wide := is
		for wide.Rank() < no.Rank() {
			wide = InsertAxes(wide, -1)
		}
		return Where(BroadcastToDims(wide, no.Shape().Dimensions...), yes, no)
	})
}

// goOn moves chains that persist to where they were.
func (w *walker) goOn() error {
	z, there, some := w.chains.trees(w.batch)
	out, err := w.resume.Call(resumeArgs{
		Moves: w.keys, Knobs: w.knobs, Target: w.target, Words: w.batch.Words, Trees: z, There: there, Fresh: w.walks, LogR: w.logR,
	})
	w.walks, w.logR, w.next, w.resumed = out.Walk, out.LogR, out.Next, float64(some)/float64(len(w.batch.LengthOf))
	return err
}
