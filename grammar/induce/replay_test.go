package induce

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/grammar/forest"
	"github.com/gfnem/gfnem/grammar/parse"
	"github.com/gfnem/gfnem/internal/testkit"
	"github.com/gfnem/gfnem/rng"
	"github.com/gfnem/gfnem/treebank"
)

// replays learns from trees of each sentence again.
func replays(walks, trees int) Config {
	c := smallGFN()
	c.Wake.Samples, c.Wake.Replay, c.Wake.Beta, c.Optim.Warmup = walks, trees, 1, 40
	return c
}

// batchOf is a batch of sentences with given numbers.
func (s *Session) batchOf(numbers ...int) parse.Padded {
	var some []treebank.Sentence
	for _, i := range numbers {
		some = append(some, s.sampler.sentences[i])
	}
	b := s.batches().Pad(some)
	b.Numbers = numbers
	return b
}

// replayed is the part of an iteration that goes back to trees, as if these walks had been drawn by wake: their weights
// are made from the grammar as it is.
func (w *iteration) replayed(t testing.TB) *iteration {
	t.Helper()
	r := w.learning.Replay
	weights, err := w.Potentials.Call(w.again.SentenceTensors)
	if err != nil {
		t.Fatal(err)
	}
	at, err := w.StandAt.Call(forest.TreesTensors{Sentences: w.again.SentenceTensors, Trees: r.Trees.Trees})
	if err != nil {
		t.Fatal(err)
	}
	when, gaps := tensors.MustCopyFlatData[int32](r.Walks.Undone), w.again.Room()-1
	for i := range when {
		if when[i] >= 0 {
			when[i] = w.again.LengthOf[i/gaps] - 2 - when[i]
		}
	}
	back := &iteration{walker: &walker{gflownet: w.gflownet, batch: w.again, prior: w.prior, coldness: w.coldness}}
	back.aim(weights)
	back.learning.Words = w.again.Words
	back.learning.Wake = forest.RouteTensors{
		Forest: at.Forest, Made: tensors.FromFlatDataAndDimensions(when, r.Walks.Undone.Shape().Dimensions...),
	}
	return back
}

// zetas are log R + log P_B - log P_F of walks by the network and the grammar as they are.
func (w *iteration) zetas(t testing.TB) (zeta, logR []float64) {
	t.Helper()
	logR, _ = rewardsOf(t, w, w.learning.Wake.Forest)
	s := along(t, w.gflownet, w.learning.Words, w.learning.Wake.Forest, w.learning.Wake.Made, false)
	for i := range logR {
		zeta = append(zeta, logR[i]+sum(s.logPB[i])-sum(s.logPF[i]))
	}
	return zeta, logR
}

// Trees that were kept are learned from when their sentences come again, by ways, scores and rewards of the network and
// the grammar of that time, which are no longer those of the time when they were kept. Sentences without a tree do not
// count.
func TestReplay(t *testing.T) {
	t.Parallel()
	for what, change := range map[string]func(c *Config){
		"moves":             func(c *Config) {},
		"Non-CFG, a prior":  func(c *Config) { c.Model.Grammar, c.Prior.On, c.Wake.Objective = string(grammar.NCFG), true, "tb" },
		"shapes, weights":   func(c *Config) { c.Policy.Trees, c.Moves.Count, c.Moves.ECount, c.Moves.Balance = Shapes, 0, 0, 0 },
		"vargrad, no sleep": func(c *Config) { c.Policy.Trees, c.Wake.Objective, c.Sleep.Weight = Shapes, "vargrad", 0 },
	} {
		const walks, kept = 3, 2
		config := replays(walks, kept)
		change(&config)
		s := tinySession(t, config)
		makeGrammar(t, s)
		step := s.loop.E.(gfnStep)
		numbers := make([]int, s.Batch)
		for i := range numbers {
			numbers[i] = 3 * i
		}
		first := &iteration{walker: step.walker(em.Moment{}, s.batchOf(numbers...))}
		if err := first.run(true, 0); err != nil {
			t.Fatal(err)
		}
		before := first.walks.Forest
		first.update(t, slices.Repeat([]float32{0.1}, len(s.gfn.optimizer.Groups)))
		if got := first.metrics()["wake/replayed"]; got != 0 {
			t.Errorf("%s: at first %g of all trees are there", what, got)
		}
		first.remember()
		if out, err := s.loop.M.Maximize(em.Moment{M: 100}, s.batchOf(numbers...), first.latents); err != nil || !out.OK {
			t.Fatal(err, out)
		}

		numbers[1], numbers[4] = 1, 2 // new ones
		w := &iteration{walker: step.walker(em.Moment{Iteration: 1}, s.batchOf(numbers...))}
		if err := w.run(true, 0); err != nil {
			t.Fatal(err)
		}
		w.update(t, w.optimizer.Rates(0))
		if want := float64(s.Batch-2) / float64(s.Batch); w.metrics()["wake/replayed"] != want {
			t.Errorf("%s: %g of all trees are there, want %g", what, w.metrics()["wake/replayed"], want)
		}
		back := w.replayed(t)
		used := func(row int) bool { return row/kept != 1 && row/kept != 4 }
		was, now := readTrees(before), readTrees(back.learning.Wake.Forest)
		oldR, _ := rewardsOf(t, first, before)
		zeta, logR := back.zetas(t)
		gotR, gotW := widened(w.learning.Replay.Walks.Rewards.LogR), widened(w.logAgain)
		stale := 0
		for row := range now {
			if is := tensors.MustCopyFlatData[bool](w.learning.Replay.Walks.Used)[row]; is != used(row) {
				t.Errorf("%s: tree %d is used: %v", what, row, is)
			}
			if !used(row) {
				continue
			}
			closeTo(t, what+": log R", gotR[row], logR[row], 1e-5)
			closeTo(t, what+": the weight", gotW[row], zeta[row], 1e-4)
			of := was[row/kept*walks:][:walks]
			if i := slices.Index(of, now[row]); i < 0 || config.Moves.Count > 0 && of[row%kept] != now[row] {
				t.Errorf("%s: tree %d is %s, which is none of %s", what, row, now[row], of)
			} else if math.Abs(oldR[row/kept*walks+i]-logR[row]) > 1e-2 {
				stale++
			}
		}
		if stale == 0 {
			t.Errorf("%s: rewards are as they were", what)
		}

		var want float64
		if config.Wake.Objective == "vargrad" {
			fresh, _ := w.zetas(t)
			total, count := 0.0, 0.0
			for i := range s.Batch {
				group := fresh[i*walks:][:walks:walks]
				if used(i * kept) {
					group = append(group, zeta[i*kept:][:kept]...)
				}
				center := mean(len(group), func(k int) float64 { return group[k] })
				for _, v := range group {
					total, count = total+(v-center)*(v-center), count+1
				}
			}
			want = total / count
		} else {
			losses, trees := wakeLosses(t, w)
			again, more := wakeLosses(t, back)
			_, dreamt := sleepLoss(t, w)
			if trees += more + dreamt; config.Moves.Balance > 0 {
				_, moved := balanceLoss(t, w)
				trees += moved
			}
			if w.trees != trees {
				t.Errorf("%s: room for %d trees, but there are %d", what, w.trees, trees)
			}
			for row, loss := range again {
				if used(row) {
					losses = append(losses, loss)
				}
			}
			want = mean(len(losses), func(i int) float64 { return losses[i] })
		}
		closeTo(t, what+": the loss", w.losses.Wake, want, 1e-4)
	}
}

// Without moves the trees that are kept are a Markov chain that leaves the posterior as it is. A chain that forgets
// where it is, and one that takes any walk whatever it weighs, are noticed.
func TestReplayKeepsTheTarget(t *testing.T) {
	t.Parallel()
	const rows = 4000
	seed := testkit.Seed(t)
	config := replays(2, 1)
	config.Sleep.Weight, config.Moves.Count, config.Moves.ECount, config.Moves.Balance, config.Wake.Beta = 0, 0, 0, 0, 1/1.1
	s := tinySession(t, config)
	makeGrammar(t, s)
	c := newChain(t, s, seed, rows, []int32{2, 0, 1, 1}, []int32{0, 1, 2})
	var err error
	if c.weights, err = s.gfn.Potentials.Call(c.batch.SentenceTensors); err != nil {
		t.Fatal(err)
	}
	c.aim(t)
	scaleReadouts(t, s, func(string) float32 { return 3 })
	s.Config.Batch = rows
	for i := range rows {
		c.batch.Numbers = append(c.batch.Numbers, i)
	}
	for name, forget := range map[string]func(w *walker){
		"": func(*walker) {},
		"forgets where it is": func(w *walker) {
			w.logAgain = tensors.FromValue(slices.Repeat([]float32{float32(math.Inf(-1))}, rows))
		},
		"takes any": func(w *walker) {
			w.logW, w.logAgain = tensors.FromValue(make([]float32, 2*rows)), tensors.FromValue(make([]float32, rows))
		},
	} {
		if s.gfn.replay, err = newKeptTrees(s.set.Store, fmt.Sprintf("test%d", len(name)), rows, 1, c.batch.Room()); err != nil {
			t.Fatal(err)
		}
		c.restart(t, seed)
		s.gfn.replay.keep(c.batch, c.walks.Forest, func(row int) int { return row })
		before := c.shapes()
		for it := range uint64(2) {
			w := &walker{gflownet: s.gfn, seed: rng.New(seed, name).Uint64(), it: it, batch: c.batch.Repeat(2), again: c.batch}
			if err := w.run(false, 0); err != nil {
				t.Fatal(err)
			}
			forget(w)
			w.remember()
		}
		z, _, _ := s.gfn.replay.trees(c.batch)
		if c.walks, err = c.StandAt.Call(forest.TreesTensors{Sentences: c.batch.SentenceTensors, Trees: z}); err != nil {
			t.Fatal(err)
		}
		moved := 0
		for i, tree := range c.shapes() {
			if tree != before[i] {
				moved++
			}
		}
		p := c.pValue()
		t.Logf("%q: %d of %d trees are others, p-value %g", name, moved, rows, p)
		if name == "" && (p < moveAlpha || moved < rows/10) {
			t.Errorf("where chains are has a p-value of %g; %d of %d have moved", p, moved, rows)
		} else if name != "" && p > moveAlpha {
			t.Errorf("a chain that %s was not noticed, p-value %g", name, p)
		}
	}
}

// What is chosen has a weight, if anything has.
func TestByWeight(t *testing.T) {
	inf := math.Inf(-1)
	for _, c := range []struct {
		u    float64
		logW []float64
		want int
	}{
		{0, []float64{inf, inf, 3}, 2}, {0.999, []float64{5, inf, inf}, 0}, {0.4, []float64{inf, inf}, 1},
		{0.24, []float64{0, math.Log(3)}, 0}, {0.26, []float64{0, math.Log(3)}, 1}, {1, []float64{0, 0, inf}, 1},
		{0.7, []float64{1e4, 1e4 - math.Ln2}, 1},
	} {
		if got := byWeight(c.u, c.logW); got != c.want {
			t.Errorf("%g chooses %d of %v, want %d", c.u, got, c.logW, c.want)
		}
	}
	got := logWeights(tensors.FromValue([]float32{1, float32(math.NaN()), float32(math.Inf(1)), float32(inf)}))
	if !slices.Equal(got, []float64{1, inf, inf, inf}) {
		t.Errorf("weights are %v", got)
	}
}
