// Package prior holds an energy-based prior on the shapes of binary trees, with density in proportion to exp(-E), and
// how it is learned from annotated ones. A network reads a tree bottom-up:
//
//	h(leaf) = e
//	h(node) = B3 elu(B2 elu(B1 [h(left); h(right)] + b1) + b2) + b3
//	E(tree) = C3 elu(C2 elu(C1 h(top) + c1) + c2) + c3
//
// It is small, and Markov chains ask for one tree at a time, so it runs on the host; in graphs there is Energies.
package prior

import (
	"math"
	"math/rand/v2"

	"github.com/gfnem/gfnem/grammar/chain"
)

const (
	width = 16
	head  = 32
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

// perceptron is three layers, with elu after the first two.
type perceptron struct{ first, second, third dense }

// values are what was computed in a perceptron.
type values struct{ in, a, b, out []float64 }

func newPerceptron(in, hidden, out, at int) (m perceptron) {
	m.first = dense{in, hidden, at}
	m.second = dense{hidden, hidden, at + m.first.size()}
	m.third = dense{hidden, out, m.second.at + m.second.size()}
	return m
}

func (m perceptron) end() int { return m.third.at + m.third.size() }

func (m perceptron) newValues() values {
	v := func(n int) []float64 { return make([]float64, n) }
	return values{in: v(m.first.in), a: v(m.first.out), b: v(m.second.out), out: v(m.third.out)}
}

func (m perceptron) forward(p []float64, v values) {
	m.first.forward(p, v.in, v.a)
	elu(v.a)
	m.second.forward(p, v.a, v.b)
	elu(v.b)
	m.third.forward(p, v.b, v.out)
}

// backward adds the gradient of parameters to g and returns that of what came in, given that of what came out.
func (m perceptron) backward(p, g []float64, v values, dout []float64) []float64 {
	d := m.newValues()
	m.third.backward(p, g, v.b, dout, d.b)
	eluBack(v.b, d.b)
	m.second.backward(p, g, v.a, d.b, d.a)
	eluBack(v.a, d.a)
	m.first.backward(p, g, v.in, d.a, d.in)
	return d.in
}

// The leaf vector comes first among the parameters.
var (
	compose = newPerceptron(2*width, width, width, width)
	readout = newPerceptron(width, head, 1, compose.end())

	// size is the number of parameters.
	size = readout.end()
)

// NewParameters draws initial parameters: the leaf from N(0, 1/16), layers uniform in ±1/sqrt(fan-in).
func NewParameters(r *rand.Rand) []float64 {
	p := make([]float64, size)
	for i := range width {
		p[i] = r.NormFloat64() / math.Sqrt(width)
	}
	for _, m := range []perceptron{compose, readout} {
		for _, l := range []dense{m.first, m.second, m.third} {
			bound := 1 / math.Sqrt(float64(l.in))
			for i := range l.size() {
				p[l.at+i] = bound * (2*r.Float64() - 1)
			}
		}
	}
	return p
}

// Net computes energies of trees, one after another, and gradients, for parameters that do not change. What a tree
// shares with the one before is not computed again: a chain changes little at a time.
type Net struct {
	p      []float64
	nodes  []node // by number in the tree
	head   values
	shapes uint64 // numbers given to shapes so far
	last   uint64 // the shape that head belongs to
}

// node is what was computed at a node. Its shape is a number that no other shape has, and which stays while the
// children keep theirs; 0 is none, 1 a leaf.
type node struct {
	values
	shape, left, right uint64
}

const leafShape = 1

// NewNet returns a network with some parameters.
func NewNet(parameters []float64) *Net {
	return &Net{p: parameters, shapes: leafShape, head: readout.newValues()}
}

// Energy of a tree.
func (e *Net) Energy(t *chain.Tree) float64 {
	for len(e.nodes) < 2*t.Words()-1 {
		e.nodes = append(e.nodes, node{values: compose.newValues()})
	}
	if top := e.visit(t, t.Top()); top.shape != e.last {
		copy(e.head.in, top.out)
		readout.forward(e.p, e.head)
		e.last = top.shape
	}
	return e.head.out[0]
}

func (e *Net) visit(t *chain.Tree, number int) *node {
	n := &e.nodes[number]
	if number < t.Words() {
		if n.shape != leafShape {
			copy(n.out, e.p[:width])
			n.shape = leafShape
		}
		return n
	}
	l, r := t.Children(number)
	left, right := e.visit(t, l), e.visit(t, r)
	if n.shape > leafShape && n.left == left.shape && n.right == right.shape {
		return n
	}
	e.shapes++
	n.shape, n.left, n.right = e.shapes, left.shape, right.shape
	copy(n.in, left.out)
	copy(n.in[width:], right.out)
	compose.forward(e.p, n.values)
	return n
}

// gradient adds weight times the gradient of the energy of a tree to g, and returns the energy.
func (e *Net) gradient(t *chain.Tree, weight float64, g []float64) float64 {
	energy := e.Energy(t)
	e.visitBack(t, t.Top(), readout.backward(e.p, g, e.head, []float64{weight}), g)
	return energy
}

func (e *Net) visitBack(t *chain.Tree, number int, dh, g []float64) {
	if number < t.Words() {
		for i, v := range dh {
			g[i] += v
		}
		return
	}
	both := compose.backward(e.p, g, e.nodes[number].values, dh)
	l, r := t.Children(number)
	e.visitBack(t, l, both[:width], g)
	e.visitBack(t, r, both[width:], g)
}
