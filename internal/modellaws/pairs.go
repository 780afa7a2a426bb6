package modellaws

import (
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/internal/laws"
	"github.com/gfnem/gfnem/internal/program"
	"github.com/gfnem/gfnem/lvm"
	"github.com/gfnem/gfnem/rng"
)

// draw samples n pairs.
func (c *Checker) draw(n int, step uint64) (lvm.Pairs, bool) {
	p, err := lvm.Draw(c.Backend, c.scope(), c.Model, rng.Key(c.Seed, "lvmtest pairs", step), n)
	if err != nil {
		c.Failed(err, Run)
	}
	return p, err == nil
}

// two are answers of two kinds to the same.
type two[T any] struct{ A, B T }

// rowByRow checks that LogJoint of a batch is LogJoint of its rows alone.
func (c *Checker) rowByRow() {
	all, ok := c.draw(few, 0)
	if !ok {
		return
	}
	out, ok := call(c, program.New[lvm.Pairs, two[*tensors.Tensor]](c.Set, "LogJoint", func(in pairs) two[*Node] {
		alone := make([]*Node, few)
		for row := range alone {
			one := program.Map(in, func(t *Node) *Node { return SliceAxis(t, 0, AxisElem(row)) })
			alone[row] = c.Model.LogJoint(c.scope(), one.X, one.Z)
		}
		return two[*Node]{wide(c.Model.LogJoint(c.scope(), in.X, in.Z)), wide(Concatenate(alone, 0))}
	}), all)
	if !ok {
		return
	}
	c.note(Rows, "%d of a batch", few)
	together, alone := numbers(out.A), numbers(out.B)
	for row := range together {
		if !near(alone[row], together[row]) {
			c.Broke(Rows, "it is %g for a row among %d, and %g for the same row alone", together[row], few, alone[row])
		}
	}
}

// table checks LogJointTable against LogJoint of every pair.
func (c *Checker) table() {
	m, ok := c.Model.(lvm.Tabler)
	if !ok {
		return
	}
	a, ok := c.draw(few, 1)
	if !ok {
		return
	}
	b, ok := c.draw(few+1, 2)
	if !ok {
		return
	}
	out, ok := call(c, program.New[lvm.Pairs, two[*tensors.Tensor]](c.Set, "LogJointTable", func(in pairs) two[*Node] {
		fast := m.LogJointTable(c.scope(), in.X, in.Z)
		if s := fast.Shape(); s.Rank() != 2 || s.Dim(0) != few || s.Dim(1) != few+1 {
			panic(laws.Break(Table, "of %d observations and %d latents it is %s", few, few+1, s))
		}
		return two[*Node]{wide(fast), wide(lvm.Table(pairwise{m}, c.scope(), in.X, in.Z))}
	}), lvm.Pairs{X: a.X, Z: b.Z})
	if !ok {
		return
	}
	c.note(Table, "%d observations by %d latents", few, few+1)
	fast, slow := numbers(out.A), numbers(out.B)
	for i := range fast {
		if !near(fast[i], slow[i]) {
			c.Broke(Table, "of observation %d and latent %d it is %g, and LogJoint is %g",
				i/(few+1), i%(few+1), fast[i], slow[i])
		}
	}
}

// pairwise hides what a model has besides the methods of lvm.Model.
type pairwise struct{ lvm.Model }
