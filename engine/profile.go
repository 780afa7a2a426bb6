package engine

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gomlx/compute"
)

// Cost is what one step of a computation took while a profile was kept.
type Cost struct {
	Computation string
	What        string // the operation, or those that were fused
	Runs        int
	Time        time.Duration // of all runs
	Flops       float64       // arithmetic of all runs; an elementwise operation counts as one
	Bytes       float64       // read and written in memory, if every operand is touched once
}

// Profiler collects what the steps of all computations of a backend cost.
type Profiler struct {
	mu    sync.Mutex
	steps map[*stepInfo]*Cost
}

// Profile starts a profile of a backend of this package, which ends the one before. Computations run as usual, a little
// slower.
func Profile(b compute.Backend) (*Profiler, error) {
	e, ok := b.(*Backend)
	if !ok {
		return nil, fmt.Errorf("backend %s cannot be profiled, %s can", b.Name(), Name)
	}
	p := &Profiler{steps: map[*stepInfo]*Cost{}}
	e.profiler.Store(p)
	return p, nil
}

// Costs returns what was collected so far, the most expensive step first.
func (p *Profiler) Costs() []Cost {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []Cost
	for _, c := range p.steps {
		out = append(out, *c)
	}
	slices.SortFunc(out, func(a, b Cost) int {
		return cmp.Or(cmp.Compare(b.Time, a.Time), strings.Compare(a.What, b.What))
	})
	return out
}

func (p *Profiler) add(name string, s *stepInfo, d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.steps[s]
	if c == nil {
		c = &Cost{Computation: name, What: s.what}
		p.steps[s] = c
	}
	c.Runs++
	c.Time += d
	c.Flops += s.flops
	c.Bytes += s.bytes
}

// stepInfo describes a step.
type stepInfo struct {
	what         string
	flops, bytes float64
}

// describe says what the step of a cluster does, once its values have memory.
func describe(c *cluster) *stepInfo {
	s := &stepInfo{}
	seen := map[*value]bool{}
	touch := func(v *value) {
		if v.slot >= 0 && !seen[v] {
			seen[v] = true
			s.bytes += float64(v.bytes())
		}
	}
	var names []string
	count := map[string]int{}
	for _, l := range c.lops {
		s.flops += l.flops()
		for _, a := range l.ins {
			touch(a.v)
		}
		for _, v := range l.outs {
			touch(v)
		}
		name := l.name()
		if count[name]++; count[name] == 1 {
			names = append(names, name)
		}
	}
	for i, n := range names {
		if count[n] > 1 {
			names[i] = fmt.Sprintf("%d %s", count[n], n)
		}
	}
	s.what = strings.Join(names, ", ")
	if c.m > 0 {
		s.what = fmt.Sprintf("%d rows: %s", c.m, s.what)
	}
	return s
}

// name of an operation, with its sizes if it is a product.
func (l *lop) name() string {
	if d, ok := l.opaque.(maxStep); ok {
		return fmt.Sprintf("max of %d of %dx%dx%d", d.b, d.m, d.k, d.n)
	}
	switch d, ok := l.opaque.(dotStep); {
	case ok && d.b > 1:
		return fmt.Sprintf("%d of %dx%dx%d", d.b, d.m, d.k, d.n)
	case ok:
		return fmt.Sprintf("%dx%dx%d", d.m, d.k, d.n)
	case l.form == formDot:
		return fmt.Sprintf("%dx%dx%d", l.rows, l.n, l.cols)
	case l.form == formOuter:
		return fmt.Sprintf("%dx%dx%d", l.outs[0].size/l.n, l.rows, l.n)
	case l.node == nil:
		return "Copy"
	case l.node.op == compute.OpTypeConvGeneral:
		return fmt.Sprintf("Conv %v * %v", l.node.inputs[0].shape.Dimensions, l.node.inputs[1].shape.Dimensions)
	}
	return l.node.op.String()
}

// flops of an operation: two for a multiplication with addition, one for anything else on an element.
func (l *lop) flops() float64 {
	if d, ok := l.opaque.(maxStep); ok {
		return 2 * float64(d.b) * float64(d.m) * float64(d.k) * float64(d.n)
	}
	switch d, ok := l.opaque.(dotStep); {
	case ok:
		return 2 * float64(d.b) * float64(d.m) * float64(d.k) * float64(d.n)
	case l.form == formDot:
		return 2 * float64(l.rows) * float64(l.n) * float64(l.cols)
	case l.form == formOuter:
		return 2 * float64(l.rows) * float64(l.outs[0].size)
	case l.node == nil:
		return 0
	case l.node.op == compute.OpTypeConvGeneral:
		return planConv(l).flops()
	case l.form == formMap:
		return float64(l.outs[0].size)
	case l.form == formReduce, l.form == formCollect, l.form == formArg:
		return float64(l.ins[0].size())
	}
	return 0
}

// flops of a convolution, without products with the zeros of padding and dilation.
func (p *convPlan) flops() float64 {
	meetings := 1.0 // of an output with an element of the input, in one channel
	for _, table := range p.table {
		n := 0
		for _, off := range table {
			if off >= 0 {
				n++
			}
		}
		meetings *= float64(n)
	}
	return 2 * float64(p.batch) * meetings * float64(p.inC) * float64(p.outC) * float64(p.groups)
}
