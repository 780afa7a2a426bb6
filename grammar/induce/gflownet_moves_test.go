package induce

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/grammar/forest"
	"github.com/gfnem/gfnem/grammar/parse"
	"github.com/gfnem/gfnem/internal/program"
	"github.com/gfnem/gfnem/internal/testkit"
	"github.com/gfnem/gfnem/rng"
	"github.com/gfnem/gfnem/treebank"
)

// smallGFN is a GFlowNet for two nonterminals.
func smallGFN() Config {
	c := tinyConfig(GFN)
	c.Model.Nonterminals, c.Model.Preterminals = 2, 2
	c.Policy.Width, c.Policy.Layers, c.Policy.Heads, c.Sleep.Leaves, c.Sleep.Steps = 8, 1, 2, 10, 6
	c.Moves.Count, c.Moves.Steps, c.Moves.FirstSteps, c.Gate.Threshold, c.Gate.ThresholdEnd = 3, 4, 2, 1e9, 1e9
	return c
}

// chains are Markov chains over the trees of a few sentences, many of each, by the programs of a training.
type chains struct {
	*walker
	weights   grammar.PotentialTensors
	sentences [][]int32
	trees     [][]*grammar.Tree // all of each sentence
	exact     [][]float64       // their distribution
	rows      int
}

// newChain gives all chains the potentials of the grammar of the reference numbers.
func newChain(t testing.TB, s *Session, seed uint64, rows int, sentences ...[]int32) *chains {
	t.Helper()
	c := &chains{walker: &walker{gflownet: s.gfn, seed: seed}, sentences: sentences, rows: rows}
	n := 0
	for _, x := range sentences {
		n = max(n, len(x))
		all := shapesOf(len(x))
		if s.Policy.Trees == Labelled {
			all = nil
			for _, shape := range shapesOf(len(x)) {
				all = append(all, labelled(shape, 2)...)
			}
		}
		c.trees = append(c.trees, all)
	}
	some := make([]treebank.Sentence, rows)
	for i := range some {
		some[i].Words = sentences[i%len(sentences)]
	}
	c.batch = parse.Batches{Rows: rows, Bucket: 1, Most: n}.Pad(some)
	g := referenceGrammar(t)
	tables := g.LogProbs(dtypes.Float32)
	if s.gfn.Grammar != nil {
		s.gfn.Grammar = tables.Keep(s.set.Store.Scope("/reference"))
	}
	table := tensors.MustCopyFlatData[float32](tables.Emit) // [V,T]
	var terms []float32
	for _, w := range tensors.MustCopyFlatData[int32](c.batch.Words) {
		terms = append(terms, table[2*w], table[2*w+1])
	}
	c.weights = grammar.PotentialTensors{
		Root: tables.Root, Rules: tables.Rules, Terms: tensors.FromFlatDataAndDimensions(terms, rows, n, 2),
	}
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
	if err := g.SetLogProbs(grammar.LogProbTensors{
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
	c.walker.aim(c.weights)
	packed, err := grammar.PackByGaps(trees, c.batch.Room())
	if err != nil {
		t.Fatal(err)
	}
	if c.walks, err = c.StandAt.Call(forest.TreesTensors{Sentences: c.batch.SentenceTensors, Trees: packed}); err != nil {
		t.Fatal(err)
	}
	c.logR = c.reward(t, c.walks.Forest)
}

// reward returns log R of whole trees.
func (c *chains) reward(t testing.TB, f forest.ForestTensors) *tensors.Tensor {
	t.Helper()
	out, err := c.Reward.Call(forest.RewardTensors{Target: c.target, Forest: f, Inside: c.walks.Inside})
	if err != nil {
		t.Fatal(err)
	}
	return out.LogR
}

// aim computes the target from the rewards of all trees. There must be room for all of them.
func (c *chains) aim(t testing.TB) (logR [][]float64) {
	t.Helper()
	k := len(c.sentences)
	c.start(t, func(row, s int) int { return row / k % len(c.trees[s]) })
	all := widened(c.logR)
	c.exact = nil
	for s := range c.sentences {
		var of []float64
		for i := range c.trees[s] {
			of = append(of, all[i*k+s])
		}
		logR = append(logR, of)
		c.exact = append(c.exact, gfn.Normalise(of))
	}
	return logR
}

// restart starts chains at exact samples of the target.
func (c *chains) restart(t testing.TB, seed uint64) {
	t.Helper()
	r := rng.New(seed, "settle")
	c.start(t, func(_, s int) int {
		u, k := r.Float64(), 0
		for k < len(c.exact[s])-1 && u >= c.exact[s][k] {
			u -= c.exact[s][k]
			k++
		}
		return k
	})
}

// shapes writes the trees that walks stand at, as grammar.Tree.Shape does.
func (c *chains) shapes() (out []string) {
	flat, f := tensors.MustCopyFlatData[int32], c.walks.Forest
	label, left, right, root := flat(f.Label), flat(f.Left), flat(f.Right), flat(f.Root)
	n := c.batch.Room()
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
			p[z.Shape()] = c.exact[s][i]
		}
		least = min(least, testkit.ChiSquare(counts[s], p))
	}
	return least
}

// scaleReadouts multiplies what the heads read out.
func scaleReadouts(t testing.TB, s *Session, factor func(path string) float32) {
	t.Helper()
	found := 0
	for v := range s.set.Store.RootScope().IterVariables() {
		if !strings.HasPrefix(v.Path(), em.Phi) || !strings.Contains(v.Path(), "/readout/") {
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

// TestMovesKeepTheTarget starts chains at exact samples, makes the moves of an iteration with policies that know
// nothing of the grammar, and compares where they are with where they began: tempered, with a prior on shapes, and with
// uniform choices mixed in. Leaving out what P_B or P_F contribute to the ratio is noticed. So it is over shapes.
func TestMovesKeepTheTarget(t *testing.T) {
	t.Parallel()
	seed := testkit.Seed(t)
	for what, trees := range map[string]string{"": Labelled, "with a prior": Labelled, "over shapes": Shapes} {
		withPrior := what == "with a prior"
		config := smallGFN()
		config.Policy.Trees, config.Prior.On, config.Moves.Count, config.Wake.Epsilon, config.Sleep.Weight = trees, withPrior, 5, 0.2, 0
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
		right := s.gfn.accept
		for _, knob := range []struct{ temperature, epsilon float64 }{{1.1, 0}, {3, 0.2}} {
			s.Wake.Beta, s.Wake.Epsilon = 1/knob.temperature, knob.epsilon
			c.restart(t, seed)
			before := strings.Join(c.shapes(), " ")
			c.moves(t, 9)
			t.Logf("%s, %+v: accepted %.3f", what, knob, c.accepted)
			if c.accepted <= 0 || c.accepted >= 1 {
				t.Errorf("%s, %+v: %g of moves are accepted", what, knob, c.accepted)
			}
			if p := c.pValue(); p < moveAlpha {
				t.Errorf("%s, %+v: where chains are has a p-value of %g", what, knob, p)
			}
			if strings.Join(c.shapes(), " ") == before {
				t.Error("no chain has moved")
			}
		}
		if withPrior {
			continue
		}
		s.Wake.Beta, s.Wake.Epsilon = 1/1.1, 0
		for name, forget := range map[string]func(w *forest.Walk){
			"P_B": func(w *forest.Walk) { w.UndoneBack, w.MadeBack = ZerosLike(w.UndoneBack), ZerosLike(w.MadeBack) },
			"P_F": func(w *forest.Walk) {
				w.UndoneForward, w.MadeForward = ZerosLike(w.UndoneForward), ZerosLike(w.MadeForward)
			},
		} {
			s.gfn.accept = program.New[acceptArgs, acceptResult](s.set, "broken", func(in acceptIn[*Node, forest.Walk]) acceptOut[*Node, forest.Walk, forest.Rollout] {
				forget(&in.After)
				return s.gfn.accepted(in)
			})
			c.restart(t, seed)
			c.moves(t, 9)
			if p := c.pValue(); p > moveAlpha {
				t.Errorf("moves %s that forget %s were not noticed, p-value %g", what, name, p)
			}
			s.gfn.accept = right
		}
	}
}

// TestAcceptanceOfMoves compares how often moves are accepted between exact samples, with uniform policies, with
// reference numbers.
func TestAcceptanceOfMoves(t *testing.T) {
	t.Parallel()
	const rows = 4000
	seed := testkit.Seed(t)
	config := smallGFN()
	config.Sleep.Weight = 0
	s := tinySession(t, config)
	c := newChain(t, s, seed, rows, []int32{0, 1, 2, 0})
	c.aim(t)
	scaleReadouts(t, s, func(string) float32 { return 0 })
	for back, want := range map[int]float64{1: 0.8013, 2: 0.6122, 3: 0.5449} {
		c.restart(t, seed)
		_, out := c.once(t, back)
		got := float64(tensors.ToScalar[float32](out.Accepted)) - acceptedBefore
		most := distuv.UnitNormal.Quantile(1-moveAlpha/2) * math.Sqrt(want*(1-want)/rows)
		if !(math.Abs(got-want) <= most+0.5e-4) {
			t.Errorf("%d steps back: %.4f of moves are accepted, want %.4f ± %.4f", back, got, want, most)
		}
	}
}

// moves makes the moves of an iteration with an M-step.
func (c *chains) moves(t testing.TB, epoch int) {
	t.Helper()
	c.propose(t, c.stepsBack(true, epoch))
	if err := c.moveOn(); err != nil {
		t.Fatal(err)
	}
}

// propose chooses moves and starts the first as a training without sleep does.
func (c *chains) propose(t testing.TB, back []int) {
	t.Helper()
	c.choose(back)
	out, err := c.walker.propose.Call(proposeArgs{Moves: c.keys, Knobs: c.knobs, Target: c.target, Walk: c.walks})
	if err != nil {
		t.Fatal(err)
	}
	c.next = out.Next
}

// acceptedBefore is the sum of fractions that once begins with.
const acceptedBefore = 2

// once makes one move, and returns where it led to and whether it was accepted.
func (c *chains) once(t testing.TB, back int) (after forest.WalkTensors, accepted acceptResult) {
	t.Helper()
	c.propose(t, []int{back})
	after, err := c.Finish(forest.BackAndForth(back), c.next)
	if err != nil {
		t.Fatal(err)
	}
	accepted, err = c.accept.Call(acceptArgs{
		Moves: c.keys, Knobs: c.knobs, Accepted: tensors.FromValue(float32(acceptedBefore)), LogR: c.logR,
		Before: c.walks, After: after, Target: c.target,
	})
	if err != nil {
		t.Fatal(err)
	}
	return after, accepted
}

// TestMoveKeys: every move has keys of its own and its steps back, and the program that ends the first walks starts the
// first of them.
func TestMoveKeys(t *testing.T) {
	t.Parallel()
	seed := testkit.Seed(t)
	config := smallGFN()
	config.Sleep.Weight, config.Moves.Count = 0, 3
	s := tinySession(t, config)
	c := newChain(t, s, seed, 6, []int32{2, 0, 1, 1}, []int32{0, 1, 2})
	c.start(t, func(int, int) int { return 1 })
	c.propose(t, []int{2, 1})
	const rows, k = 4, 3 // moves and one more; a key
	seen := map[string]bool{}
	for _, keys := range []*tensors.Tensor{c.keys.Accept, c.keys.Move} {
		for row := range slices.Chunk(tensors.MustCopyFlatData[uint64](keys), k) {
			seen[fmt.Sprint(row)] = true
		}
	}
	if back := tensors.MustCopyFlatData[int32](c.keys.Back); len(seen) != 2*rows || !slices.Equal(back, []int32{2, 1, 0, 0}) {
		t.Errorf("%d different keys, want %d; steps back %v", len(seen), 2*rows, back)
	}
	type in struct {
		Key   *tensors.Tensor
		Knobs em.Knobs[*tensors.Tensor]
		Walk  forest.WalkTensors
	}
	type nodes struct {
		Key   *Node
		Knobs em.Knobs[*Node]
		Walk  forest.Walk
	}
	want, err := program.Once[in, forest.RolloutTensors](simd(), nil, "first move", func(in nodes) forest.Rollout {
		g := in.Key.Graph()
		how := gfn.Behaviour{Beta: in.Knobs.Beta, Epsilon: in.Knobs.Epsilon}
		return s.gfn.Rollout(in.Walk, rng.In(in.Key), Const(g, int32(2)), Const(g, true), how)
	}, in{c.key("move", 0), c.knobs, c.walks})
	if err != nil {
		t.Fatal(err)
	}
	same := 0
	tensorsOf(c.next, func(name string, got *tensors.Tensor) {
		tensorsOf(want, func(other string, want *tensors.Tensor) {
			if name == other && !want.Equal(got) {
				t.Errorf("%s of the first move is %v, want %v", name, got, want)
			} else if name == other {
				same++
			}
		})
	})
	if same < 20 {
		t.Errorf("%d tensors of the first move are as they should be", same)
	}
}

// TestAccept compares decisions on moves with the formula, given the same coins: log a = log R(z') - log R(z) + b2 + f1
// - b1 - f2. All that a walk is made of is then that of one side or the other.
func TestAccept(t *testing.T) {
	t.Parallel()
	const rows = 600
	seed := testkit.Seed(t)
	config := smallGFN()
	config.Sleep.Weight = 0
	c := newChain(t, tinySession(t, config), seed, rows, []int32{2, 0, 1, 1}, []int32{0, 1, 2})
	c.aim(t)
	c.restart(t, seed)
	rewards := tensors.MustCopyFlatData[float32](c.logR)
	inf := float32(math.Inf(1))
	rewards[0], rewards[1], rewards[2] = inf, -inf, float32(math.NaN()) // nobody leaves the first, all leave the second; the third is undefined
	c.logR = tensors.FromFlatDataAndDimensions(rewards, rows)
	type state struct {
		LogR *tensors.Tensor
		Walk forest.WalkTensors
	}
	old := state{c.logR, c.walks}
	after, out := c.once(t, 2)
	newR := c.reward(t, after.Forest)
	coins, err := CallOnce(simd(), func(key *Node) *Node { return rng.In(key).Uniform(dtypes.Float32, rows) }, c.key("accept", 0))
	if err != nil {
		t.Fatal(err)
	}
	b1, f1, f2, b2 := widened(after.UndoneBack), widened(after.UndoneForward), widened(after.MadeForward), widened(after.MadeBack)
	accepted := 0.0
	for i, coin := range widened(coins) {
		logA := widened(newR)[i] - float64(rewards[i]) + b2[i] + f1[i] - b1[i] - f2[i]
		if math.Abs(math.Log(coin)-logA) < 1e-4 {
			continue // too close to call in single precision
		}
		want := old
		if math.Log(coin) <= logA {
			want, accepted = state{newR, after}, accepted+1.0/rows
		}
		rows := map[string]string{}
		tensorsOf(want, func(name string, x *tensors.Tensor) { rows[name] = rowOf(t, x, i) })
		tensorsOf(state{out.LogR, out.Walk}, func(name string, x *tensors.Tensor) {
			if got := rowOf(t, x, i); got != rows[name] {
				t.Fatalf("%s of row %d, with log a = %g and a coin of %g, is %s, want %s", name, i, logA, coin, got, rows[name])
			}
		})
	}
	closeTo(t, "fraction accepted", float64(tensors.ToScalar[float32](out.Accepted))-acceptedBefore, accepted, 3.0/rows)
	if accepted < 0.2 || accepted > 0.8 {
		t.Errorf("%g of moves are accepted", accepted)
	}
}

// TestStepsBack: the trained move goes back by any number of steps up to a limit that grows by one with each epoch.
func TestStepsBack(t *testing.T) {
	t.Parallel()
	c := smallGFN()
	c.Moves.FirstSteps, c.Moves.Steps, c.Sleep.Weight = 0, 3, 0
	s := tinySession(t, c)
	b := parse.Batches{Rows: 4, Bucket: c.Bucket, Most: c.MaxLength}.Pad([]treebank.Sentence{{Words: []int32{0, 1, 2, 3, 4}}})
	for epoch, most := range []int{1, 2, 3, 3} {
		seen := map[int]int{}
		for it := range uint64(30) {
			w := &walker{gflownet: s.gfn, it: it, batch: b}
			if err := w.run(false, epoch); err != nil {
				t.Fatal(err)
			}
			steps := slices.Max(tensors.MustCopyFlatData[int32](w.learning.Move.After.Undone)) + 1
			seen[int(steps)]++
		}
		// Each number is missed with a probability of (2/3)^30 at most.
		if len(seen) != most || seen[0] > 0 || seen[most] == 0 {
			t.Errorf("in epoch %d trained moves go back by %v, want any up to %d", epoch, seen, most)
		}
	}
	// Epochs are those of iterations, however few M-steps they have.
	losses := map[float64]bool{}
	for _, m := range []uint64{0, 1000} {
		s := tinySession(t, c)
		out, err := s.loop.E.Infer(em.Moment{Iteration: 2 * s.sampler.perEpoch(), M: m}, s.sampler.at(0))
		if err != nil {
			t.Fatal(err)
		}
		losses[out.Metrics["balance/loss"]] = true
	}
	if len(losses) != 1 {
		t.Errorf("the trained move depends on the number of M-steps: losses %v", losses)
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

// tensorsOf calls f for every tensor that is there in a struct, with the names of its fields.
func tensorsOf(s any, f func(name string, x *tensors.Tensor)) {
	var visit func(name string, v reflect.Value)
	visit = func(name string, v reflect.Value) {
		if x, ok := v.Interface().(*tensors.Tensor); ok {
			if x != nil {
				f(name, x)
			}
			return
		}
		for i := range v.NumField() {
			visit(name+"."+v.Type().Field(i).Name, v.Field(i))
		}
	}
	visit("", reflect.ValueOf(s))
}
