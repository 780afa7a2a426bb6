package induce

import (
	"math"
	"slices"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/grammar/forest"
)

// leg is a part of a journey: so many passes of the loop, by a program that reads at most so many trees of a forest, which are its places.
type leg struct{ places, passes int }

// through sets out on journeys by a program and makes them. Element i of trees is the greatest number of trees that
// a forest has when pass i begins, which is when the network reads it.
func (e *gflownet) through(trees []int, p *program, args ...any) ([]*tensors.Tensor, error) {
	j, err := p.Call(args...)
	if err != nil {
		return nil, err
	}
	return e.travel(trees, j)
}

// travel makes journeys. On a CPU it does so in legs, by programs with places for more and for fewer trees, since forests have few when
// trees are nearly whole. On a card, where a call costs more than this saves, it goes the whole way by one program: the one with few places, if
// there are never more trees. A network that says nothing finite may leave forests with more trees than that; its walks mean nothing anyway.
func (e *gflownet) travel(trees []int, journey []*tensors.Tensor) ([]*tensors.Tensor, error) {
	if !e.onCPU {
		places := e.net.Positions
		if len(trees) > 0 && slices.Max(trees) <= fewPlaces {
			places = fewPlaces
		}
		p, err := e.way(places)
		if err != nil {
			return nil, err
		}
		return p.Call(appendAll(nil, journey)...)
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

// fewPlaces are enough for nearly half of all moves at the paper's settings, which go up to 20 steps back. Every further size would have to
// be compiled, too, in several seconds.
const fewPlaces = 10

// way returns the program that makes whole journeys with so many places.
func (e *gflownet) way(places int) (*program, error) {
	return e.sized(e.ways, places, "travel", func(in []*Node) []*Node {
		return e.net.GoOn(e.store.Scope(phi), forest.JourneyOf(in), nil, places).Walk.List()
	})
}

// leg returns the program that makes legs with so many places.
func (e *gflownet) leg(places int) (*program, error) {
	return e.sized(e.legs, places, "travel", func(in []*Node) []*Node {
		return e.net.GoOn(e.store.Scope(phi), forest.JourneyOf(in[1:]), in[0], places).List()
	})
}

// plan divides a journey into legs. The last one goes on to the end.
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
		legs = []leg{{places: most}}
	}
	legs[len(legs)-1].passes = math.MaxInt32
	return legs
}

// rising is the number of trees in each pass on the way up: from, from-1, ..., 2.
func rising(from int) []int {
	var out []int
	for k := from; k > 1; k-- {
		out = append(out, k)
	}
	return out
}

// falling is the number of trees in each pass on the way down: 2, 3, ..., to. The step from one tree to two is made when setting out, and the
// pass over the last number makes none: it settles the step before, if the loop still goes on.
func falling(to int) []int {
	out := rising(to)
	slices.Reverse(out)
	return out
}

// backAndForth is the number of trees in each pass of a move of so many steps back: 2, ..., steps+1, ..., 2.
func backAndForth(steps int) []int { return append(falling(steps), rising(steps+1)...) }

// alongside is the greatest number of trees in each pass of two kinds of walks at once. Those that have fallen keep their last number while
// others go on; if none does, there is no pass over it.
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
