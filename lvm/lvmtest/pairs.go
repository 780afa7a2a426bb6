package lvmtest

import (
	"slices"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/support/xslices"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/lvm"
	"github.com/gfnem/gfnem/rng"
)

// draw samples n pairs.
func (c *checker) draw(n int, step uint64) (lvm.Pairs, bool) {
	p, err := lvm.Draw(c.backend, c.scope(), c.model, rng.Key(Seed, "lvmtest pairs", step), n)
	if err != nil {
		c.broke(lawRun, "%v", err)
	}
	return p, err == nil
}

// both feeds pairs to a program.
func both(p lvm.Pairs) []*tensors.Tensor { return slices.Concat(p.X, p.Z) }

// rowByRow checks that LogJoint of a batch is LogJoint of its rows alone.
func (c *checker) rowByRow() {
	all, ok := c.draw(few, 0)
	if !ok {
		return
	}
	p := c.program(func(in []*Node) []*Node {
		x, z := gfn.Batch(in[:len(all.X)]), gfn.State(in[len(all.X):])
		alone := make([]*Node, few)
		for row := range alone {
			alone[row] = c.model.LogJoint(c.scope(), takeRow(x, row), takeRow(z, row))
		}
		return []*Node{wide(c.model.LogJoint(c.scope(), x, z)), wide(Concatenate(alone, 0))}
	})
	defer p.close()
	out, ok := p.call(both(all)...)
	if !ok {
		return
	}
	together, alone := numbers(out[0]), numbers(out[1])
	for row := range together {
		if !near(alone[row], together[row]) {
			c.broke(lawRows, "it is %g for a row among %d, and %g for the same row alone", together[row], few, alone[row])
		}
	}
}

// table checks LogJointTable against LogJoint of every pair.
func (c *checker) table() {
	m, ok := c.model.(lvm.Tabler)
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
	p := c.program(func(in []*Node) []*Node {
		x, z := gfn.Batch(in[:len(a.X)]), gfn.State(in[len(a.X):])
		fast := m.LogJointTable(c.scope(), x, z)
		if s := fast.Shape(); s.Rank() != 2 || s.Dim(0) != few || s.Dim(1) != few+1 {
			c.broke(lawTable, "of %d observations and %d latents it is %s", few, few+1, s)
			return []*Node{in[0]}
		}
		return []*Node{wide(fast), wide(lvm.Table(pairwise{m}, c.scope(), x, z))}
	})
	defer p.close()
	out, ok := p.call(both(lvm.Pairs{X: a.X, Z: b.Z})...)
	if !ok || len(out) < 2 {
		return
	}
	fast, slow := numbers(out[0]), numbers(out[1])
	for i := range fast {
		if !near(fast[i], slow[i]) {
			c.broke(lawTable, "of observation %d and latent %d it is %g, and LogJoint is %g",
				i/(few+1), i%(few+1), fast[i], slow[i])
		}
	}
}

// pairwise hides what a model has besides the methods of lvm.Model.
type pairwise struct{ lvm.Model }

// takeRow returns one row of every tensor, as a batch.
func takeRow(ts []*Node, row int) []*Node {
	return xslices.Map(ts, func(t *Node) *Node { return SliceAxis(t, 0, AxisElem(row)) })
}
