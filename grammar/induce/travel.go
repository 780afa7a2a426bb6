package induce

import (
	"math"
	"slices"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/grammar/forest"
)

// leg is a part of a journey: passes in which no forest has more trees than there are places.
type leg struct{ places, passes int }

// through sets out on journeys by a program and makes them. Element i of trees is the greatest number of trees of a forest in pass i.
func (e *gflownet) through(trees []int, p *program, args ...any) ([]*tensors.Tensor, error) {
	j, err := p.Call(args...)
	if err != nil {
		return nil, err
	}
	return e.travel(trees, j)
}

// travel makes journeys: on a CPU in legs, by programs with places for more and for fewer trees, since forests have few when trees are
// nearly whole.
func (e *gflownet) travel(trees []int, journey []*tensors.Tensor) ([]*tensors.Tensor, error) {
	if !e.onCPU {
		return e.wholeWay.Call(appendAll(nil, journey)...)
	}
	for _, l := range plan(trees, journey[forest.JourneyWalk+forest.WalkRoot].Shape().Dim(1)) {
		p, err := e.leg(l.places)
		if err != nil {
			return nil, err
		}
		if journey, err = p.Call(appendAll([]any{int32(l.passes)}, journey)...); err != nil {
			return nil, err
		}
	}
	return journey[forest.JourneyWalk:], nil
}

// leg returns the program that makes legs with so many places.
func (e *gflownet) leg(places int) (*program, error) {
	return e.sized(e.legs, places, "travel", func(in []*Node) []*Node {
		return e.net.GoOn(e.store.Scope(phi), forest.JourneyOf(in[1:]), in[0], places).List()
	})
}

// plan divides a journey into legs. The last one goes on to the end. A network that says nothing finite may leave forests with more trees
// than this; its walks mean nothing anyway.
func plan(trees []int, most int) []leg {
	const least = 8 // places, below which little is gained
	const grain = 4 // of places, so that few programs are compiled
	var legs []leg
	for _, k := range trees {
		places := min(max(least, (k+grain-1)/grain*grain), most)
		if last := len(legs) - 1; last >= 0 && legs[last].places == places {
			legs[last].passes++
		} else {
			legs = append(legs, leg{places, 1})
		}
	}
	if len(legs) == 0 {
		return []leg{{most, math.MaxInt32}}
	}
	legs[len(legs)-1].passes = math.MaxInt32
	return legs
}

// rising are the trees in the passes that make whole ones of so many.
func rising(from int) []int {
	var out []int
	for k := from; k > 1; k-- {
		out = append(out, k)
	}
	return out
}

// falling are the trees in the passes that make so many of whole ones: the first step back, from one tree, needs no pass.
func falling(to int) []int {
	out := rising(to)
	slices.Reverse(out)
	return out
}

// backAndForth are the trees in the passes of a move.
func backAndForth(steps int) []int { return append(falling(steps), rising(steps+1)...) }

// alongside are the trees in the passes of two journeys at once. Those that fall stay where they end, and are read there only if others go
// on.
func alongside(rise, fall []int) []int {
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
