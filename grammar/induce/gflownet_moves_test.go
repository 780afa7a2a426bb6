package induce

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/grammar/forest"
	"github.com/gfnem/gfnem/internal/testkit"
	"github.com/gfnem/gfnem/rng"
	"github.com/gfnem/gfnem/treebank"
)

// smallGFN is a GFlowNet for two nonterminals.
func smallGFN() Config {
	c := tinyConfig(GFN)
	c.Nonterminals, c.Preterminals = 2, 2
	c.GFNWidth, c.GFNLayers, c.GFNHeads, c.DreamLeaves, c.DreamSteps = 8, 1, 2, 10, 6
	c.Moves, c.BackSteps, c.BackStart, c.Threshold, c.ThresholdEnd = 3, 4, 2, 1e9, 1e9
	return c
}

// chains are Markov chains over the trees of a few sentences, many of each, by the programs of a training.
type chains struct {
	*eStep
	sentences [][]int32
	trees     [][]*grammar.Tree // all of each sentence
	target    [][]float64       // their exact distribution
	rows      int
}

// newChain gives all chains the potentials of the grammar of the reference numbers.
func newChain(t testing.TB, s *session, seed uint64, rows int, sentences ...[]int32) *chains {
	t.Helper()
	c := &chains{eStep: &eStep{gflownet: s.gfn, seed: seed}, sentences: sentences, rows: rows}
	n := 0
	for _, x := range sentences {
		n = max(n, len(x))
		var all []*grammar.Tree
		for _, shape := range shapesOf(len(x)) {
			all = append(all, labelled(shape, 2)...)
		}
		c.trees = append(c.trees, all)
	}
	some := make([]treebank.Sentence, rows)
	for i := range some {
		some[i].Words = sentences[i%len(sentences)]
	}
	c.batch = newBatch(some, rows, 1, n)
	g := referenceGrammar(t)
	tables := g.LogTables(dtypes.Float32)
	table := tensors.MustCopyFlatData[float32](tables.Emit) // [V,T]
	var terms []float32
	for _, w := range tensors.MustCopyFlatData[int32](c.batch.words) {
		terms = append(terms, table[2*w], table[2*w+1])
	}
	c.potentials = []*tensors.Tensor{tables.Root, tables.Rules, tensors.FromFlatDataAndDimensions(terms, rows, n, 2)}
	return c
}

// referenceGrammar is context-free, with logits that are sines and cosines of where they stand.
func referenceGrammar(t testing.TB) *grammar.Grammar {
	t.Helper()
	g := grammar.New(grammar.CFG, []string{"A", "B"}, []string{"T0", "T1"}, []string{"0", "1", "2"})
	rules, emit := make([]float64, 2*4*4), make([]float64, 3*2)
	for i := range rules {
		rules[i] = math.Sin(1 + float64(i))
	}
	for w := range 3 {
		for tag := range 2 {
			emit[2*w+tag] = math.Cos(1 + float64(3*tag+w))
		}
	}
	root := []float64{math.Sin(1), math.Sin(2)}
	if err := g.SetLogTables(grammar.TableTensors{
		Root: tensors.FromValue(root), Rules: tensors.FromFlatDataAndDimensions(rules, 2, 4, 4),
		Emit: tensors.FromFlatDataAndDimensions(emit, 3, 2),
	}); err != nil {
		t.Fatal(err)
	}
	return g
}

// start puts chains on trees: which gives the number of the tree of each.
func (c *chains) start(t testing.TB, which func(row, sentence int) int) {
	t.Helper()
	trees := make([]*grammar.Tree, c.rows)
	for i := range trees {
		s := i % len(c.sentences)
		trees[i] = c.trees[s][which(i, s)]
	}
	packed, err := grammar.PackByGaps(trees, c.batch.n)
	if err != nil {
		t.Fatal(err)
	}
	if c.walks, err = c.embed.Call(c.batch.words, c.batch.lengths, packed.Left, packed.Right, packed.Label); err != nil {
		t.Fatal(err)
	}
	if c.logR, err = c.reward(c.walks); err != nil {
		t.Fatal(err)
	}
}

// aim computes the target from the rewards of all trees. There must be room for all of them.
func (c *chains) aim(t testing.TB) (logR [][]float64) {
	t.Helper()
	k := len(c.sentences)
	c.start(t, func(row, s int) int { return row / k % len(c.trees[s]) })
	all := widened(c.logR)
	c.target = nil
	for s := range c.sentences {
		var of []float64
		for i := range c.trees[s] {
			of = append(of, all[i*k+s])
		}
		logR = append(logR, of)
		c.target = append(c.target, gfn.Normalise(of))
	}
	return logR
}

// restart starts chains at exact samples of the target.
func (c *chains) restart(t testing.TB, seed uint64) {
	t.Helper()
	r := rng.New(seed, "settle")
	c.start(t, func(_, s int) int {
		u, k := r.Float64(), 0
		for k < len(c.target[s])-1 && u >= c.target[s][k] {
			u -= c.target[s][k]
			k++
		}
		return k
	})
}

// shapes writes the trees that walks stand at, as grammar.Tree.Shape does.
func (c *chains) shapes() (out []string) {
	flat := func(i int) []int32 { return tensors.MustCopyFlatData[int32](c.walks[i]) }
	label, left, right, root := flat(forest.WalkLabel), flat(forest.WalkLeft), flat(forest.WalkRight), flat(forest.WalkRoot)
	n := c.batch.n
	for row := range c.rows {
		var write func(node int32) string
		write = func(node int32) string {
			if int(node) < n {
				return fmt.Sprint(node)
			}
			at := row*(n-1) + int(node) - n
			return fmt.Sprintf("%d(%s %s)", label[at]-1, write(left[at]), write(right[at]))
		}
		out = append(out, write(root[row*n]))
	}
	return out
}

// pValue compares where chains are with the target: the least over sentences.
func (c *chains) pValue() float64 {
	counts := make([]map[string]int, len(c.sentences))
	for s := range counts {
		counts[s] = map[string]int{}
	}
	for i, name := range c.shapes() {
		counts[i%len(counts)][name]++
	}
	least := 1.0
	for s := range counts {
		p := map[string]float64{}
		for i, z := range c.trees[s] {
			p[z.Shape()] = c.target[s][i]
		}
		least = min(least, testkit.ChiSquare(counts[s], p))
	}
	return least
}

// scaleReadouts multiplies what the heads read out.
func scaleReadouts(t testing.TB, s *session, factor func(path string) float32) {
	t.Helper()
	found := 0
	for v := range s.store.RootScope().IterVariables() {
		if !strings.HasPrefix(v.Path(), phi) || !strings.Contains(v.Path(), "/readout/") {
			continue
		}
		found++
		x := tensors.MustCopyFlatData[float32](v.MustValue())
		for i := range x {
			x[i] *= factor(v.Path())
		}
		if err := v.SetValue(tensors.FromFlatDataAndDimensions(x, v.Shape().Dimensions...)); err != nil {
			t.Fatal(err)
		}
	}
	if found == 0 {
		t.Fatal("the network has no variables yet")
	}
}

// moveAlpha is the false-alarm rate of one statistical check of moves; no test makes more than ten.
const moveAlpha = 1e-5

// TestMovesKeepTheTarget starts chains at exact samples, makes the moves of an iteration with policies that know nothing of the grammar, and
// compares where they are with where they began: tempered, with a prior on shapes, and with uniform choices mixed in. Leaving out what
// P_B or P_F contribute to the ratio is noticed.
func TestMovesKeepTheTarget(t *testing.T) {
	t.Parallel()
	seed := testkit.Seed(t)
	for _, withPrior := range []bool{false, true} {
		config := smallGFN()
		config.EBM, config.Moves, config.Epsilon, config.Sleep = withPrior, 5, 0.2, 0
		s := tinySession(t, config)
		c := newChain(t, s, seed, 4000, []int32{2, 0, 1, 1}, []int32{0, 1, 2})
		if withPrior {
			c.prior, c.coldness = float32s(spreadPrior(rng.New(seed, "prior"), 4)), 0.7
		}
		c.aim(t)
		// Policies far from uniform, P_B above all: of four words it has a choice in few states.
		scaleReadouts(t, s, func(path string) float32 {
			if strings.Contains(path, forest.BackwardScope) {
				return 30
			}
			return 2
		})
		right := s.gfn.settle
		for _, knob := range []struct{ temperature, epsilon float64 }{{1.1, 0}, {3, 0.2}} {
			s.Temperature, s.Epsilon = knob.temperature, knob.epsilon
			c.restart(t, seed)
			before := strings.Join(c.shapes(), " ")
			c.moves(t, 9)
			t.Logf("prior %v, %+v: accepted %.3f", withPrior, knob, c.accepted)
			if c.accepted <= 0 || c.accepted >= 1 {
				t.Errorf("prior %v, %+v: %g of moves are accepted", withPrior, knob, c.accepted)
			}
			if p := c.pValue(); p < moveAlpha {
				t.Errorf("prior %v, %+v: where chains are has a p-value of %g", withPrior, knob, p)
			}
			if strings.Join(c.shapes(), " ") == before {
				t.Error("no chain has moved")
			}
		}
		if withPrior {
			continue
		}
		s.Temperature, s.Epsilon = 1.1, 0
		for name, forget := range map[string][]int{
			"P_B": {forest.WalkUndoneBack, forest.WalkMadeBack}, "P_F": {forest.WalkUndoneForward, forest.WalkMadeForward},
		} {
			broken, err := s.gfn.program("broken", func(in []*Node) []*Node {
				in = append([]*Node{}, in...)
				for _, i := range forget {
					at := settledHead + forest.WalkSize + i
					in[at] = ZerosLike(in[at])
				}
				return s.gfn.settled(in)
			})
			if err != nil {
				t.Fatal(err)
			}
			s.gfn.settle = broken
			c.restart(t, seed)
			c.moves(t, 9)
			if p := c.pValue(); p > moveAlpha {
				t.Errorf("moves that forget %s were not noticed, p-value %g", name, p)
			}
			broken.Finalize()
			s.gfn.settle = right
		}
	}
}

// TestAcceptanceOfMoves compares how often moves are accepted between exact samples, with uniform policies, with reference numbers.
func TestAcceptanceOfMoves(t *testing.T) {
	t.Parallel()
	const rows = 4000
	seed := testkit.Seed(t)
	config := smallGFN()
	config.Sleep = 0
	s := tinySession(t, config)
	c := newChain(t, s, seed, rows, []int32{0, 1, 2, 0})
	c.aim(t)
	scaleReadouts(t, s, func(string) float32 { return 0 })
	for back, want := range map[int]float64{1: 0.8013, 2: 0.6122, 3: 0.5449} {
		c.restart(t, seed)
		_, out := c.once(t, back)
		got := float64(tensors.ToScalar[float32](out[1])) - acceptedBefore
		most := distuv.UnitNormal.Quantile(1-moveAlpha/2) * math.Sqrt(want*(1-want)/rows)
		if !(math.Abs(got-want) <= most+0.5e-4) {
			t.Errorf("%d steps back: %.4f of moves are accepted, want %.4f ± %.4f", back, got, want, most)
		}
	}
}

// moves makes the moves of an iteration with an M-step.
func (c *chains) moves(t testing.TB, epoch int) {
	t.Helper()
	c.setOut(t, c.stepsBack(true, epoch))
	if err := c.moveOn(); err != nil {
		t.Fatal(err)
	}
}

// setOut chooses moves and sets out on the first as a training without sleep does.
func (c *chains) setOut(t testing.TB, back []int) {
	t.Helper()
	c.choose(back)
	out, err := c.arrive.Call(appendAll(append([]any{c.itinerary, c.explore}, c.judged()...), c.walks)...)
	if err != nil {
		t.Fatal(err)
	}
	c.journey = out[forest.WalkSize+2:]
}

// acceptedBefore is the sum of fractions that once begins with.
const acceptedBefore = 2

// once makes one move, and returns where it led to and how it was settled.
func (c *chains) once(t testing.TB, back int) (after, settled []*tensors.Tensor) {
	t.Helper()
	c.setOut(t, []int{back})
	after, err := c.travel(backAndForth(back), c.journey)
	if err != nil {
		t.Fatal(err)
	}
	args := []any{c.itinerary, c.explore, float32(acceptedBefore), c.logR}
	settled, err = c.settle.Call(append(appendAll(appendAll(args, c.walks), after), c.judged()...)...)
	if err != nil {
		t.Fatal(err)
	}
	return after, settled
}

// TestItinerary: every move has keys of its own and its steps back, and the program that ends the first walks sets out by the first of them.
func TestItinerary(t *testing.T) {
	t.Parallel()
	seed := testkit.Seed(t)
	config := smallGFN()
	config.Sleep, config.Moves = 0, 3
	s := tinySession(t, config)
	c := newChain(t, s, seed, 6, []int32{2, 0, 1, 1}, []int32{0, 1, 2})
	c.start(t, func(int, int) int { return 1 })
	c.setOut(t, []int{2, 1})
	flat := tensors.MustCopyFlatData[uint64](c.itinerary)
	const rows, k = 4, 3 // moves and one more; a key
	var back []uint64
	seen := map[string]bool{}
	for row := range slices.Chunk(flat, 2*k+1) {
		seen[fmt.Sprint(row[:k])], seen[fmt.Sprint(row[k:2*k])] = true, true
		back = append(back, row[2*k])
	}
	if len(seen) != 2*rows || !slices.Equal(back, []uint64{2, 1, 0, 0}) {
		t.Errorf("%d different keys, want %d; steps back %v", len(seen), 2*rows, back)
	}
	want, err := CallOnceN(simd(), func(in []*Node) []*Node {
		return s.gfn.net.SetOut(forest.WalkOf(in[2:]), rng.In(in[0]), Const(in[0].Graph(), int32(2)), Const(in[0].Graph(), true), how(in[1])).List()
	}, appendAll([]any{c.key("move", 0), c.knobs()}, c.walks)...)
	if err != nil {
		t.Fatal(err)
	}
	for i := range want {
		if !want[i].Equal(c.journey[i]) {
			t.Errorf("tensor %d of the first journey is %v, want %v", i, c.journey[i], want[i])
		}
	}
}

// TestAccept compares decisions on moves with the formula, given the same coins: log a = log R(z') - log R(z) + b2 + f1 - b1 - f2. All
// that a walk is made of is then that of one side or the other.
func TestAccept(t *testing.T) {
	t.Parallel()
	const rows = 600
	seed := testkit.Seed(t)
	config := smallGFN()
	config.Sleep = 0
	c := newChain(t, tinySession(t, config), seed, rows, []int32{2, 0, 1, 1}, []int32{0, 1, 2})
	c.aim(t)
	c.restart(t, seed)
	rewards := tensors.MustCopyFlatData[float32](c.logR)
	inf := float32(math.Inf(1))
	rewards[0], rewards[1], rewards[2] = inf, -inf, float32(math.NaN()) // nobody leaves the first, all leave the second; the third is undefined
	c.logR = tensors.FromFlatDataAndDimensions(rewards, rows)
	walks := append([]*tensors.Tensor{c.logR}, c.walks...)
	after, out := c.once(t, 2)
	newR, err := c.reward(after)
	if err != nil {
		t.Fatal(err)
	}
	after = append([]*tensors.Tensor{newR}, after...)
	coins, err := CallOnceN(simd(), func(in []*Node) []*Node { return []*Node{rng.In(in[0]).Uniform(dtypes.Float32, rows)} }, c.key("accept", 0))
	if err != nil {
		t.Fatal(err)
	}
	number := func(i int) []float64 { return widened(after[1+i]) }
	b1, f1, f2, b2 := number(forest.WalkUndoneBack), number(forest.WalkUndoneForward), number(forest.WalkMadeForward), number(forest.WalkMadeBack)
	accepted := 0.0
	for i, coin := range widened(coins[0]) {
		logA := widened(newR)[i] - float64(rewards[i]) + b2[i] + f1[i] - b1[i] - f2[i]
		if math.Abs(math.Log(coin)-logA) < 1e-4 {
			continue // too close to call in single precision
		}
		want := walks
		if math.Log(coin) <= logA {
			want, accepted = after, accepted+1.0/rows
		}
		for k := range want {
			if got, want := rowOf(t, out[3+k], i), rowOf(t, want[k], i); got != want {
				t.Fatalf("tensor %d of row %d, with log a = %g and a coin of %g, is %s, want %s", k, i, logA, coin, got, want)
			}
		}
	}
	closeTo(t, "fraction accepted", float64(tensors.ToScalar[float32](out[1]))-acceptedBefore, accepted, 3.0/rows)
	if accepted < 0.2 || accepted > 0.8 {
		t.Errorf("%g of moves are accepted", accepted)
	}
}

// TestStepsBack: the trained move goes back by any number of steps up to a limit that grows by one with each epoch.
func TestStepsBack(t *testing.T) {
	t.Parallel()
	c := smallGFN()
	c.BackStart, c.BackSteps, c.Sleep = 0, 3, 0
	s := tinySession(t, c)
	b := newBatch([]treebank.Sentence{{Words: []int32{0, 1, 2, 3, 4}}}, 4, c.Bucket, c.MaxLength)
	for epoch, most := range []int{1, 2, 3, 3} {
		seen := map[int]int{}
		for it := range uint64(30) {
			w := &eStep{gflownet: s.gfn, it: it, batch: b}
			if err := w.run(false, epoch); err != nil {
				t.Fatal(err)
			}
			steps := slices.Max(tensors.MustCopyFlatData[int32](w.learning.after[forest.WalkUndone])) + 1
			seen[int(steps)]++
		}
		// Each number is missed with a probability of (2/3)^30 at most.
		if len(seen) != most || seen[0] > 0 || seen[most] == 0 {
			t.Errorf("in epoch %d trained moves go back by %v, want any up to %d", epoch, seen, most)
		}
	}
}

// rowOf writes one row of a tensor.
func rowOf(t testing.TB, x *tensors.Tensor, row int) string {
	t.Helper()
	var text string
	err := x.ConstBytes(func(data []byte) {
		width := len(data) / x.Shape().Dim(0)
		text = fmt.Sprint(data[row*width:][:width])
	})
	if err != nil {
		t.Fatal(err)
	}
	return text
}
