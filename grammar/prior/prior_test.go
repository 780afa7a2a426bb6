package prior

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/grammar/chain"
	"github.com/gfnem/gfnem/internal/testkit"
	"github.com/gfnem/gfnem/rng"
	"github.com/gfnem/gfnem/treebank"
)

// shapesOf are all trees over n words, with label 0.
func shapesOf(n int) []*grammar.Tree {
	var build func(first, last int) [][]treebank.Span
	build = func(first, last int) [][]treebank.Span {
		if first == last {
			return [][]treebank.Span{nil}
		}
		var out [][]treebank.Span
		for mid := first; mid < last; mid++ {
			for _, l := range build(first, mid) {
				for _, r := range build(mid+1, last) {
					s := append(append([]treebank.Span{}, l...), r...)
					out = append(out, append(s, treebank.Span{first, last}))
				}
			}
		}
		return out
	}
	var out []*grammar.Tree
	for _, spans := range build(0, n-1) {
		out = append(out, treeOf(spans, n))
	}
	return out
}

// spread is a prior in which the least and the greatest energy of trees over n words differ by 1.5.
func spread(r *rand.Rand, n int) []float64 {
	p := NewParameters(r)
	for i := range p {
		p[i] *= 2 // so that inputs of elu have both signs
	}
	least, most := math.Inf(1), math.Inf(-1)
	for _, z := range shapesOf(n) {
		e := NewNet(p).Energy(chain.NewTree(z))
		least, most = min(least, e), max(most, e)
	}
	for i := readout.third.at; i < size; i++ { // the energy is linear in these
		p[i] *= 1.5 / (most - least)
	}
	return p
}

// slowEnergy computes the energy as the formula is written, layer by layer from the parameters in order.
func slowEnergy(p []float64, z *chain.Tree) float64 {
	next := p
	take := func(n int) (v []float64) {
		v, next = next[:n], next[n:]
		return v
	}
	leaf := take(16)
	type layer struct{ w, b []float64 }
	var layers []layer
	for _, s := range [][2]int{{16, 32}, {16, 16}, {16, 16}, {32, 16}, {32, 32}, {1, 32}} {
		layers = append(layers, layer{take(s[0] * s[1]), take(s[0])})
	}
	if len(next) != 0 {
		panic("parameters are left over")
	}
	three := func(l []layer, x []float64) []float64 {
		for k := range l {
			y := make([]float64, len(l[k].b))
			for o := range y {
				y[o] = l[k].b[o]
				for i := range x {
					y[o] += l[k].w[o*len(x)+i] * x[i]
				}
				if k < 2 && y[o] < 0 {
					y[o] = math.Exp(y[o]) - 1
				}
			}
			x = y
		}
		return x
	}
	var h func(node int) []float64
	h = func(node int) []float64 {
		if node < z.Words() {
			return leaf
		}
		l, r := z.Children(node)
		return three(layers[:3], append(append([]float64{}, h(l)...), h(r)...))
	}
	return three(layers[3:], h(z.Top()))[0]
}

func TestEnergy(t *testing.T) {
	if size != 2721 {
		t.Errorf("%d parameters, want 2,721", size)
	}
	r := rand.New(rand.NewPCG(testkit.Seed(t), 0))
	p := spread(r, 4)
	net := NewNet(p) // one for all trees, to see that it forgets
	for n := 2; n < 12; n++ {
		z := chain.NewTree(grammar.RandomTree(r, n, 1))
		if got, want := net.Energy(z), slowEnergy(p, z); !(math.Abs(got-want) <= 1e-10*max(1, math.Abs(want))) {
			t.Errorf("%d words: energy %v, want %v", n, got, want)
		}
	}
}

// Gradients are those of finite differences, in every parameter, and are added to what is there with their weight.
func TestEnergyGradient(t *testing.T) {
	r := rand.New(rand.NewPCG(testkit.Seed(t), 1))
	for _, n := range []int{2, 5} {
		p := spread(r, 4)
		net := NewNet(p)
		z := chain.NewTree(grammar.RandomTree(r, n, 1))
		g := make([]float64, size)
		for i := range g {
			g[i] = 7
		}
		const weight, step = -0.5, 1e-5
		if got := net.gradient(z, weight, g); got != net.Energy(z) {
			t.Errorf("the gradient returns the energy %v, not %v", got, net.Energy(z))
		}
		for i := range p {
			was := p[i]
			p[i] = was + step
			up := NewNet(p).Energy(z)
			p[i] = was - step
			want := 7 + weight*(up-NewNet(p).Energy(z))/(2*step)
			p[i] = was
			if !(math.Abs(g[i]-want) <= 1e-6*max(1, math.Abs(want))) {
				t.Fatalf("%d words, parameter %d: gradient %v, want %v", n, i, g[i], want)
			}
		}
	}
}

// kernel is a step of the buffer's chain as a matrix over shapes: a uniform rotation, accepted by the given rule.
func kernel(shapes []*grammar.Tree, energies []float64, accept func(before, after float64) float64) [][]float64 {
	number := map[string]int{}
	for i, z := range shapes {
		number[z.Shape()] = i
	}
	k := make([][]float64, len(shapes))
	for i, z := range shapes {
		k[i] = make([]float64, len(shapes))
		edges := z.Words() - 2
		for e := range edges {
			next := chain.NewTree(z)
			next.Rotate(e)
			j := number[next.Copy().Shape()]
			a := accept(energies[i], energies[j]) / float64(edges)
			k[i][j] += a
			k[i][i] += 1/float64(edges) - a
		}
	}
	return k
}

func times(p []float64, k [][]float64) []float64 {
	out := make([]float64, len(p))
	for i, row := range k {
		for j, v := range row {
			out[j] += p[i] * v
		}
	}
	return out
}

// The chain of the buffer leaves exp(-E) invariant, by enumeration over four words; and the buffer moves by that chain:
// after some steps its trees have the distribution of the matrix's power. The chi-square test has a false-alarm rate of
// 1e-5; a chain that accepts everything is caught.
func TestBufferChain(t *testing.T) {
	seed := testkit.Seed(t)
	shapes := shapesOf(4)
	p := spread(rand.New(rand.NewPCG(seed, 2)), 4)
	energies, target := make([]float64, len(shapes)), make([]float64, len(shapes))
	total := 0.0
	for i, z := range shapes {
		energies[i] = NewNet(p).Energy(chain.NewTree(z))
		target[i] = math.Exp(-energies[i])
		total += target[i]
	}
	metropolis := kernel(shapes, energies, func(before, after float64) float64 { return min(1, math.Exp(before-after)) })
	for i, v := range times(target, metropolis) {
		if !(math.Abs(v-target[i]) <= 1e-12*total) {
			t.Errorf("shape %d: weight %v became %v", i, target[i], v)
		}
	}

	const slots, moves = 1000, 6
	trainer := &Trainer{c: Config{Seed: seed, Batch: slots}, Checkpoint: Checkpoint{Params: p, First: make([]float64, size), Second: make([]float64, size)}}
	for range slots * (moves + 1) { // one epoch is longer than the test
		trainer.gold = append(trainer.gold, shapes[0])
	}
	for k := range uint64(moves) {
		trainer.Step(k)
	}
	counts := map[string]int{}
	for _, z := range trainer.Buffer {
		counts[z.Shape()]++
	}
	law := func(k [][]float64) map[string]float64 {
		dist := make([]float64, len(shapes))
		dist[0] = 1
		for range moves {
			dist = times(dist, k)
		}
		out := map[string]float64{}
		for i, q := range dist {
			out[shapes[i].Shape()] = q
		}
		return out
	}
	if q := testkit.ChiSquare(counts, law(metropolis)); q < 1e-5 {
		t.Errorf("after %d steps the buffer holds %v, improbable by %.1g", moves, counts, q)
	}
	always := kernel(shapes, energies, func(_, _ float64) float64 { return 1 })
	if q := testkit.ChiSquare(counts, law(always)); q > 1e-5 {
		t.Errorf("the test does not see whether proposals are accepted: %.1g", q)
	}
}

// Trained on right-branching trees, the prior prefers them to random ones, at every length.
func TestPriorLearns(t *testing.T) {
	c := Config{LR: 5e-3, L2: 1e-4, Reset: 0.1, Batch: 8}
	var train []treebank.Sentence
	for i := range 160 {
		n := 4 + i%5
		train = append(train, treebank.Sentence{Words: make([]int32, n), Gold: treebank.RightBranching(n)})
	}
	trainer := NewTrainer(c, train)
	for k := range uint64(300) {
		trainer.Step(k)
	}
	r := rng.New(c.Seed, "test")
	for n := 4; n < 9; n++ {
		right := NewNet(trainer.Params).Energy(chain.NewTree(treeOf(treebank.RightBranching(n), n)))
		random := 0.0
		for range 100 {
			random += NewNet(trainer.Params).Energy(chain.NewTree(grammar.RandomTree(r, n, 1))) / 100
		}
		if !(right < random-0.5) {
			t.Errorf("%d words: right-branching %.2f, random %.2f on average", n, right, random)
		}
	}
}

// Flat constituents are divided to the left, and all gold spans are kept.
func TestLeftBinary(t *testing.T) {
	for _, c := range []struct {
		gold []treebank.Span
		want string
	}{
		{[]treebank.Span{{0, 3}}, "0(0(0(0 1) 2) 3)"},
		{[]treebank.Span{{1, 3}, {0, 4}}, "0(0(0 0(0(1 2) 3)) 4)"},
		{[]treebank.Span{{0, 1}, {0, 1}, {0, 1}}, "0(0 1)"},
	} {
		n := c.gold[len(c.gold)-1][1] + 1
		z := leftBinary(c.gold, n)
		if err := z.Check(); err != nil || z.Shape() != c.want {
			t.Errorf("%v became %s, want %s (%v)", c.gold, z.Shape(), c.want, err)
		}
	}
	for _, z := range shapesOf(6) {
		var spans []treebank.Span
		for _, s := range z.Spans() {
			spans = append(spans, treebank.Span{s.First, s.Last})
		}
		if got := leftBinary(spans, 6).Shape(); got != z.Shape() {
			t.Errorf("the binary tree %s became %s", z.Shape(), got)
		}
	}
}

// A net that follows a chain, with rotations made and undone, gives the energies of nets that see each tree alone.
func TestEnergyFollowsChain(t *testing.T) {
	r := rand.New(rand.NewPCG(testkit.Seed(t), 7))
	p := NewParameters(r)
	net := NewNet(p)
	for _, n := range []int{9, 4, 12} {
		z := chain.NewTree(grammar.RandomTree(r, n, 1))
		for range 60 {
			undo := z.Rotate(r.IntN(n - 2))
			if got, want := net.Energy(z), NewNet(p).Energy(z); got != want {
				t.Fatalf("%d words: energy %v, alone %v", n, got, want)
			}
			if r.IntN(2) == 0 {
				undo()
			}
		}
	}
}
