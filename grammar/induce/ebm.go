package induce

import (
	"math"
	"math/rand/v2"

	"github.com/gfnem/gfnem/grammar/chain"
)

// An energy-based prior on the shapes of binary trees, with density in proportion to exp(-E). A network reads a tree bottom-up:
//
//	h(leaf) = e
//	h(node) = B3 elu(B2 elu(B1 [h(left); h(right)] + b1) + b2) + b3
//	E(tree) = C3 elu(C2 elu(C1 h(top) + c1) + c2) + c3
//
// It is small, and chains ask for one tree at a time, so it runs on the host.

const (
	ebmWidth = 16
	ebmHead  = 32
)

// dense is a layer y = W x + b, whose parameters begin at an offset.
type dense struct{ in, out, at int }

func (d dense) size() int { return d.out * (d.in + 1) }

func (d dense) forward(p, x, y []float64) {
	w, b := p[d.at:], p[d.at+d.in*d.out:]
	for o := range d.out {
		s := b[o]
		for i, v := range w[o*d.in : (o+1)*d.in] {
			s += v * x[i]
		}
		y[o] = s
	}
}

// backward adds the gradient of parameters to g and that of x to dx, given that of y.
func (d dense) backward(p, g, x, dy, dx []float64) {
	w, gw, gb := p[d.at:], g[d.at:], g[d.at+d.in*d.out:]
	for o := range d.out {
		v := dy[o]
		gb[o] += v
		row, grow := w[o*d.in:(o+1)*d.in], gw[o*d.in:(o+1)*d.in]
		for i := range row {
			grow[i] += v * x[i]
			dx[i] += v * row[i]
		}
	}
}

func elu(x []float64) {
	for i, v := range x {
		if v < 0 {
			x[i] = math.Expm1(v)
		}
	}
}

// eluBack turns the gradient of y = elu(x) into that of x, in place.
func eluBack(y, dy []float64) {
	for i, v := range y {
		if v < 0 {
			dy[i] *= v + 1
		}
	}
}

// The leaf vector comes first, then the layers.
var ebmLayers = func() (l [6]dense) {
	at := ebmWidth
	for i, s := range [][2]int{
		{2 * ebmWidth, ebmWidth}, {ebmWidth, ebmWidth}, {ebmWidth, ebmWidth},
		{ebmWidth, ebmHead}, {ebmHead, ebmHead}, {ebmHead, 1},
	} {
		l[i] = dense{s[0], s[1], at}
		at += l[i].size()
	}
	return l
}()

// ebmSize is the number of parameters.
var ebmSize = ebmLayers[5].at + ebmLayers[5].size()

// newEBM draws initial parameters: the leaf from N(0, 1/16), layers uniform in ±1/sqrt(fan-in).
func newEBM(r *rand.Rand) []float64 {
	p := make([]float64, ebmSize)
	for i := range ebmWidth {
		p[i] = r.NormFloat64() / math.Sqrt(ebmWidth)
	}
	for _, l := range ebmLayers {
		bound := 1 / math.Sqrt(float64(l.in))
		for i := range l.size() {
			p[l.at+i] = bound * (2*r.Float64() - 1)
		}
	}
	return p
}

// ebmNet computes energies of trees, one after another, and gradients, for parameters that do not change. What a tree shares with
// the one before is not computed again: a chain changes little at a time.
type ebmNet struct {
	p      []float64
	nodes  []ebmNode // by node
	head   [3][]float64
	shapes uint64 // numbers given to shapes so far
	last   uint64 // the shape that head belongs to
}

// ebmNode is what was computed at a node: [h(left); h(right)], both hidden layers, and h. Its shape is a number that no other
// shape has, and which stays while the children keep theirs; 0 is none, 1 a leaf.
type ebmNode struct {
	in, a, b, h, dh    []float64
	shape, left, right uint64
}

const leafShape = 1

func newEBMNet(p []float64) *ebmNet {
	return &ebmNet{p: p, shapes: leafShape, head: [3][]float64{make([]float64, ebmHead), make([]float64, ebmHead), make([]float64, 1)}}
}

func (e *ebmNet) grow(nodes int) {
	for len(e.nodes) < nodes {
		v := func(n int) []float64 { return make([]float64, n) }
		e.nodes = append(e.nodes, ebmNode{in: v(2 * ebmWidth), a: v(ebmWidth), b: v(ebmWidth), h: v(ebmWidth), dh: v(ebmWidth)})
	}
}

// energy of a tree.
func (e *ebmNet) energy(t *chain.Tree) float64 {
	e.grow(2*t.Words() - 1)
	top := e.visit(t, t.Top())
	if top.shape != e.last {
		e.top(top.h)
		e.last = top.shape
	}
	return e.head[2][0]
}

func (e *ebmNet) visit(t *chain.Tree, node int) *ebmNode {
	n := &e.nodes[node]
	if node < t.Words() {
		if n.shape != leafShape {
			copy(n.h, e.p[:ebmWidth])
			n.shape = leafShape
		}
		return n
	}
	l, r := t.Children(node)
	left, right := e.visit(t, l), e.visit(t, r)
	if n.shape > leafShape && n.left == left.shape && n.right == right.shape {
		return n
	}
	e.shapes++
	n.shape, n.left, n.right = e.shapes, left.shape, right.shape
	copy(n.in, left.h)
	copy(n.in[ebmWidth:], right.h)
	ebmLayers[0].forward(e.p, n.in, n.a)
	elu(n.a)
	ebmLayers[1].forward(e.p, n.a, n.b)
	elu(n.b)
	ebmLayers[2].forward(e.p, n.b, n.h)
	return n
}

// top computes the energy of the tree whose top has h.
func (e *ebmNet) top(h []float64) {
	ebmLayers[3].forward(e.p, h, e.head[0])
	elu(e.head[0])
	ebmLayers[4].forward(e.p, e.head[0], e.head[1])
	elu(e.head[1])
	ebmLayers[5].forward(e.p, e.head[1], e.head[2])
}

// gradient adds weight times the gradient of the energy of a tree to g, and returns the energy.
func (e *ebmNet) gradient(t *chain.Tree, weight float64, g []float64) float64 {
	energy := e.energy(t)
	d1, d0 := make([]float64, ebmHead), make([]float64, ebmHead)
	top := &e.nodes[t.Top()]
	clear(top.dh)
	ebmLayers[5].backward(e.p, g, e.head[1], []float64{weight}, d1)
	eluBack(e.head[1], d1)
	ebmLayers[4].backward(e.p, g, e.head[0], d1, d0)
	eluBack(e.head[0], d0)
	ebmLayers[3].backward(e.p, g, top.h, d0, top.dh)
	e.visitBack(t, t.Top(), g)
	return energy
}

func (e *ebmNet) visitBack(t *chain.Tree, node int, g []float64) {
	n := &e.nodes[node]
	if node < t.Words() {
		for i, v := range n.dh {
			g[i] += v
		}
		return
	}
	db, da, din := make([]float64, ebmWidth), make([]float64, ebmWidth), make([]float64, 2*ebmWidth)
	ebmLayers[2].backward(e.p, g, n.b, n.dh, db)
	eluBack(n.b, db)
	ebmLayers[1].backward(e.p, g, n.a, db, da)
	eluBack(n.a, da)
	ebmLayers[0].backward(e.p, g, n.in, da, din)
	l, r := t.Children(node)
	copy(e.nodes[l].dh, din)
	copy(e.nodes[r].dh, din[ebmWidth:])
	e.visitBack(t, l, g)
	e.visitBack(t, r, g)
}
