package forest

import (
	"fmt"
	"math"
	"slices"

	"github.com/gomlx/compute"
	. "github.com/gomlx/gomlx/core/graph"

	"github.com/gfnem/gfnem/backend"
	"github.com/gfnem/gfnem/internal/program"
	"github.com/gfnem/gfnem/nn"
)

// CanRun tries the kind of loop that rollouts are, whose body broadcasts what it is given, unless a backend is known to
// have it.
func CanRun(b compute.Backend) error {
	if backend.QuickToCompile(b) {
		return nil
	}
	type state struct{ Table, Row *Node }
	type in struct{ Row []int32 }
	type out struct{ Sum int }
	type nodes struct{ Row *Node }
	type sum struct{ Sum *Node }
	_, err := program.Once[in, out](b, nil, "a loop", func(in nodes) sum {
		s := nn.Repeat(1, state{Stack([]*Node{in.Row, in.Row}, 0), in.Row}, func(_ *Node, s state) state {
			return state{Add(s.Table, BroadcastToShape(InsertAxes(s.Row, 0), s.Table.Shape())), s.Row}
		})
		return sum{Squeeze(Slice(s.Table, AxisElem(0), AxisElem(0)))}
	}, in{[]int32{1, 2}})
	if err != nil {
		return fmt.Errorf("the %s backend lacks operations that GFlowNets over trees need: use --backend simd or xla", b.Name())
	}
	return nil
}

// segment is a part of a rollout: so many passes of the loop, by a program that reads at most so many trees of a
// forest.
type segment struct {
	maxTrees int
	passes   int32
}

// fewTrees are enough for nearly half of all moves at the paper's settings, which go up to 20 steps back. Every further
// size would have to be compiled, too, in several seconds.
const fewTrees = 10

// Finish runs rollouts to their ends. Element i of trees is the greatest number of trees that a forest has when pass i
// begins, which is when the network reads it.
//
// Where programs are quick to compile it does so in segments, by programs for more and for fewer trees, since forests
// have few when trees are nearly whole. Elsewhere, where a call costs more than this saves, one program runs the whole
// loop: that for few trees, if there are never more. A network that says nothing finite may leave forests with more
// trees than that; its walks mean nothing anyway.
func (s *Sampler) Finish(trees []int, r RolloutTensors) (WalkTensors, error) {
	return s.FinishPart(trees, r, Part{})
}

// FinishPart does so with a part of a larger batch, where programs are quick to compile.
func (s *Sampler) FinishPart(trees []int, r RolloutTensors, of Part) (WalkTensors, error) {
	if !s.Quick {
		most := s.Positions
		if len(trees) > 0 && slices.Max(trees) <= fewTrees {
			most = fewTrees
		}
		return s.whole.Call(segmentTensors{MaxTrees: most, Rollout: r})
	}
	for _, part := range plan(trees, r.Forest.Words()) {
		var err error
		if r, err = s.segment.Call(segmentTensors{part.maxTrees, of, &part.passes, r}); err != nil {
			return WalkTensors{}, err
		}
	}
	return r.WalkTensors, nil
}

// plan divides a rollout into segments. The last one goes on to the end.
func plan(trees []int, most int) []segment {
	const least = 8 // trees, below which little is gained
	const grain = 4 // of trees, so that few programs are compiled
	var all []segment
	for _, k := range trees {
		size := min(max(least, (k+grain-1)/grain*grain), most)
		if last := len(all) - 1; last >= 0 && all[last].maxTrees == size {
			all[last].passes++
		} else {
			all = append(all, segment{size, 1})
		}
	}
	if len(all) == 0 {
		all = []segment{{maxTrees: most}}
	}
	all[len(all)-1].passes = math.MaxInt32
	return all
}

// Rising is the number of trees in each pass on the way up: from, from-1, ..., 2.
func Rising(from int) []int {
	var out []int
	for k := from; k > 1; k-- {
		out = append(out, k)
	}
	return out
}

// Falling is the number of trees in each pass on the way down: 2, 3, ..., to. The step from one tree to two is made
// when the rollout starts, and the pass over the last number makes none: it completes the step before, if the loop
// still goes on.
func Falling(to int) []int {
	out := Rising(to)
	slices.Reverse(out)
	return out
}

// BackAndForth is the number of trees in each pass of a move of so many steps back: 2, ..., steps+1, ..., 2.
func BackAndForth(steps int) []int { return append(Falling(steps), Rising(steps+1)...) }

// Alongside is the greatest number of trees in each pass of two kinds of walks at once. Those that have fallen keep
// their last number while others go on; if none does, there is no pass over it.
func Alongside(rise, fall []int) []int {
	out := make([]int, max(len(rise), len(fall)-1))
	for i := range out {
		if i < len(rise) {
			out[i] = rise[i]
		}
		if len(fall) > 0 {
			out[i] = max(out[i], fall[min(i, len(fall)-1)])
		}
	}
	return out
}
