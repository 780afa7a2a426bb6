package gfn

import (
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/support/xslices"
)

// Beside joins trajectories of the same b observations, each path having as many of every observation: all
// trajectories of an observation become successive rows, those of the first path first. So an objective can compare
// them.
func Beside(b int, paths ...Path) Path {
	if len(paths) == 1 {
		return paths[0]
	}
	join := func(what string, get func(Path) *Node) *Node {
		all := xslices.Map(paths, get)
		missing := 0
		for i, rows := range all {
			if rows == nil {
				missing++
				continue
			}
			if rows.Shape().Dim(0)%b != 0 {
				fail("%d trajectories do not belong to %d observations, as many to each", rows.Shape().Dim(0), b)
			}
			dims := rows.Shape().Dimensions
			all[i] = Reshape(rows, append([]int{b, dims[0] / b}, dims[1:]...)...)
		}
		switch missing {
		case 0:
			return mergeSteps(Concatenate(all, 1))
		case len(all):
			return nil
		}
		fail("of paths that are joined some have a %s, and some have none", what)
		return nil
	}
	out := Path{
		LogPF:    join("LogPF", func(p Path) *Node { return p.LogPF }),
		LogPB:    join("LogPB", func(p Path) *Node { return p.LogPB }),
		Flow:     join("Flow", func(p Path) *Node { return p.Flow }),
		LogZ:     join("LogZ", func(p Path) *Node { return p.LogZ }),
		LogR:     join("LogR", func(p Path) *Node { return p.LogR }),
		Partial:  join("Partial", func(p Path) *Node { return p.Partial }),
		Valid:    join("Valid", func(p Path) *Node { return p.Valid }),
		Terminal: join("Terminal", func(p Path) *Node { return p.Terminal }),
	}
	for _, p := range paths {
		if p.Used != nil {
			out.Used = join("Used", Path.used)
			break
		}
	}
	return out
}

// used is Used, also where it is left out.
func (p Path) used() *Node {
	if p.Used != nil {
		return p.Used
	}
	return BroadcastToDims(Const(p.LogR.Graph(), true), p.LogR.Shape().Dim(0))
}
