package induce

import (
	"math"
	"slices"
	"strings"
	"testing"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/grammar/forest"
	"github.com/gfnem/gfnem/internal/program"
	"github.com/gfnem/gfnem/internal/testkit"
	"github.com/gfnem/gfnem/optim"
	"github.com/gfnem/gfnem/run"
)

// iteration is an E-step in its parts.
type iteration struct {
	*walker
	losses learnResult
}

func (w *iteration) update(t testing.TB, rates []float32) {
	t.Helper()
	var err error
	if w.losses, err = w.walker.update(rates); err != nil {
		t.Fatal(err)
	}
	if !w.losses.OK {
		t.Fatal("the update was not made")
	}
}

// awake makes the E-step of the first iteration.
func awake(t testing.TB, s *Session, maximize bool) *iteration {
	t.Helper()
	w := &iteration{walker: s.loop.E.(gfnStep).walker(em.Moment{}, s.sampler.at(0))}
	if s.Prior.On {
		w.coldness = 0.7
	}
	if err := w.run(maximize, 0); err != nil {
		t.Fatal(err)
	}
	w.update(t, w.optimizer.Rates(0))
	return w
}

// metrics are those that the iteration reports.
func (w *iteration) metrics() map[string]float64 { return w.walker.metrics(w.losses) }

// hashBelow is what the arrays of a state below a scope are; empty if there are none.
func hashBelow(s run.State, scope string) string {
	part := run.State{Arrays: map[string]run.Array{}}
	for path, a := range s.Arrays {
		if strings.HasPrefix(path, scope+"/") {
			part.Arrays[path] = a
		}
	}
	if len(part.Arrays) == 0 {
		return ""
	}
	return run.StateHash(part)
}

// stepped is what the network itself, at temperature 1, says of the steps of paths: log P_F, log P_B and flows, by
// path.
type stepped struct{ logPF, logPB, flow [][]float64 }

// trees counts those of all forests that the network is asked about: two or more of each.
func (s stepped) trees() (n int) {
	for _, steps := range s.logPF {
		for k := range steps {
			n += k + 2
		}
	}
	return n
}

// along scores paths to the trees that forests stand at. The step of a gap is when it was made or, of paths that were
// undone, counted backward when it was undone.
func along(t testing.TB, e *gflownet, leaves *tensors.Tensor, f forest.ForestTensors, when *tensors.Tensor, undone bool) stepped {
	t.Helper()
	rows, gaps := when.Shape().Dim(0), when.Shape().Dim(1)
	at := tensors.MustCopyFlatData[int32](when)
	steps := make([]int32, rows)
	for i := range at {
		steps[i/gaps] = max(steps[i/gaps], at[i]+1)
	}
	for i := range at {
		if undone && at[i] >= 0 {
			at[i] = steps[i/gaps] - 1 - at[i]
		}
	}
	type in struct {
		Forest              forest.ForestTensors
		Leaves, When, Steps *tensors.Tensor
	}
	type nodes struct {
		Forest              forest.Forest
		Leaves, When, Steps *Node
	}
	type scores[T any] struct{ LogPF, LogPB, Flow T }
	out, err := program.Once[in, scores[*tensors.Tensor]](e.Set.Backend, e.Set.Store, "along", func(in nodes) scores[*Node] {
		h := forest.History{
			Trees: in.Forest.Trees(), Leaves: in.Leaves, When: in.When, Steps: in.Steps, Length: in.Forest.Length,
		}
		if e.Grammar != nil {
			h.Symbols = e.Embed(e.phi(), in.Forest, in.Leaves).Inside.Symbols
		}
		s := e.Score(e.phi(), rows*gaps*gaps, forest.Histories{History: h, Most: gaps})[0]
		return scores[*Node]{s.LogPF, s.LogPB, s.Flow}
	}, in{f, leaves, tensors.FromFlatDataAndDimensions(at, rows, gaps), tensors.FromValue(steps)})
	if err != nil {
		t.Fatal(err)
	}
	table := func(x *tensors.Tensor) (byPath [][]float64) {
		flat := widened(x)
		for b, k := range steps {
			byPath = append(byPath, flat[b*gaps:][:k])
		}
		return byPath
	}
	return stepped{table(out.LogPF), table(out.LogPB), table(out.Flow)}
}

func mean(n int, f func(i int) float64) (m float64) {
	for i := range n {
		m += f(i) / float64(n)
	}
	return m
}

func sum(x []float64) (total float64) {
	for _, v := range x {
		total += v
	}
	return total
}

// TestLossesOfAnIteration compares the losses of wake, of a move and of sleep with their formulas, from what the
// network says of each step at temperature 1, though walks are tempered: all but those of sleep. The first update has a
// learning rate of zero: it moves Adam's moments and nothing else.
func TestLossesOfAnIteration(t *testing.T) {
	t.Parallel()
	for what, change := range map[string]func(c *Config){
		"CFG":                func(c *Config) {},
		"Non-CFG, lambda":    func(c *Config) { c.Model.Grammar, c.Wake.Lambda = string(grammar.NCFG), 0.5 },
		"TB, uniform P_B":    func(c *Config) { c.Wake.Objective, c.Policy.UniformBack = "tb", true },
		"TB without sleep":   func(c *Config) { c.Wake.Objective, c.Sleep.Weight = "tb", 0 },
		"HVI, no moves":      func(c *Config) { c.Wake.Objective, c.Wake.Beta, c.Wake.Epsilon, c.Moves.Balance = "hvi", 1, 0, 0 },
		"sleep alone":        func(c *Config) { c.Wake.Objective, c.Moves.Balance = "none", 0 },
		"balance, no moves":  func(c *Config) { c.Wake.Objective, c.Sleep.Weight, c.Moves.Count, c.Moves.ECount = "none", 0, 0, 0 }, // one is made
		"linear attention":   func(c *Config) { c.Policy.Linear = true },
		"shapes":             func(c *Config) { c.Policy.Trees = Shapes },
		"shapes of Non-CFG":  func(c *Config) { c.Policy.Trees, c.Model.Grammar, c.Prior.On = Shapes, string(grammar.NCFG), true },
		"Non-CFG with prior": func(c *Config) { c.Model.Grammar, c.Prior.On = string(grammar.NCFG), true },
	} {
		config := smallGFN()
		config.Wake.Beta, config.Wake.Epsilon, config.Optim.Warmup = 1.0/3, 0.3, 40
		change(&config)
		s := tinySession(t, config)
		makeGrammar(t, s)
		before := stateOf(t, s)
		w := awake(t, s, false)
		after := stateOf(t, s)
		if hashBelow(before, em.Theta) != hashBelow(after, em.Theta) {
			t.Error("the E-step changed the grammar")
		}
		awake(t, s, false)
		again := stateOf(t, s)
		if phis := hashBelow(after, em.Phi); phis == "" || phis != hashBelow(again, em.Phi) {
			t.Error("an update with a rate of zero changed the network")
		}
		if hashBelow(after, "/optim") == hashBelow(again, "/optim") {
			t.Error("Adam's moments do not move")
		}
		want := map[string]float64{}
		wake, trees := wakeLoss(t, w)
		if config.Wake.Objective != "none" {
			want["wake/loss"] = wake
		}
		if config.Moves.Balance > 0 {
			balance, more := balanceLoss(t, w)
			want["balance/loss"], trees = balance, trees+more
		}
		if config.Sleep.Weight > 0 {
			sleep, more := sleepLoss(t, w)
			want["sleep/loss"], trees = sleep, trees+more
		}
		if w.trees != trees {
			t.Errorf("%s: room for %d trees, but there are %d", what, w.trees, trees)
		}
		got := w.metrics()
		for _, part := range []string{"wake/loss", "balance/loss", "sleep/loss"} {
			loss, is := want[part]
			if _, logged := got[part]; logged != is {
				t.Errorf("%s: %s is logged: %v, want %v", what, part, logged, is)
			}
			closeTo(t, what+": "+part, got[part], loss, 1e-4)
		}
		if _, logged := got["moves/accepted"]; logged != (config.Moves.Balance > 0) {
			t.Errorf("%s: acceptance is logged: %v", what, logged)
		}
	}
}

// Products of 16-bit numbers change the losses of an iteration a little, and trainings go on.
func TestGFNHalf(t *testing.T) {
	t.Parallel()
	config := smallGFN()
	full := awake(t, tinySession(t, config), false)
	config.Policy.Half = true
	s := tinySession(t, config)
	if !s.gfn.Half {
		t.Error("the network does not know of it")
	}
	half := awake(t, s, false)
	for part, want := range full.metrics() {
		if part != "moves/accepted" && part != "balance/loss" { // walks may part ways where a choice was close
			closeTo(t, part+" in 16 bits", half.metrics()[part], want, 0.05)
		}
	}
	if half.losses == full.losses {
		t.Error("16-bit products change nothing")
	}
	steps(t, s, 10)
	if s.loop.State().Skipped != 0 {
		t.Errorf("%d updates were skipped", s.loop.State().Skipped)
	}
}

// makeGrammar sees that the grammar's variables are there.
func makeGrammar(t testing.TB, s *Session) {
	t.Helper()
	if _, err := s.gfn.Potentials.Call(s.sampler.at(0).SentenceTensors); err != nil {
		t.Fatal(err)
	}
}

// balanceLoss is the mean of (log R(z) + b1 + f2 - log R(z') - b2 - f1)^2.
func balanceLoss(t testing.TB, w *iteration) (loss float64, trees int) {
	t.Helper()
	m := w.learning.Move
	down := along(t, w.gflownet, w.learning.Words, m.Before.Forest, m.After.Undone, true)
	up := along(t, w.gflownet, w.learning.Words, m.After.Forest, m.After.Made, false)
	old, _ := rewardsOf(t, w, m.Before.Forest)
	new, _ := rewardsOf(t, w, m.After.Forest)
	moved := 0
	loss = mean(len(old), func(i int) float64 {
		if old[i] != new[i] {
			moved++
		}
		return math.Pow(old[i]+sum(down.logPB[i])+sum(up.logPF[i])-new[i]-sum(up.logPB[i])-sum(down.logPF[i]), 2)
	})
	if moved == 0 {
		t.Error("no walk has moved")
	}
	return loss, down.trees() + up.trees()
}

// rewardsOf rewards trees again.
func rewardsOf(t testing.TB, w *iteration, f forest.ForestTensors) (logR, nodes []float64) {
	t.Helper()
	in := forest.RewardTensors{Target: w.target, Forest: f}
	if w.Grammar != nil {
		type forests[T, F any] struct {
			Words  T
			Forest F
		}
		var err error
		in.Inside, err = program.Once[forests[*tensors.Tensor, forest.ForestTensors], forest.InsideTensors](
			w.Set.Backend, w.Set.Store, "inside", func(in forests[*Node, forest.Forest]) forest.Inside {
				return w.Embed(w.phi(), in.Forest, in.Words).Inside
			}, forests[*tensors.Tensor, forest.ForestTensors]{w.learning.Words, f})
		if err != nil {
			t.Fatal(err)
		}
	}
	out, err := w.Reward.Call(in)
	if err != nil {
		t.Fatal(err)
	}
	return widened(out.LogR), widened(out.Nodes)
}

// sleepLoss is the mean of -log P_F of the paths along which dreams were taken apart, by the policy itself.
func sleepLoss(t testing.TB, w *iteration) (loss float64, trees int) {
	t.Helper()
	d, undone := w.learning.Sleep.Dream, w.learning.Sleep.Undone
	leaves := forest.SentenceTensors{Words: d.Leaves, Lengths: d.Lengths}
	start, err := w.StandAt.Call(forest.TreesTensors{Sentences: leaves, Trees: d.Trees})
	if err != nil {
		t.Fatal(err)
	}
	s := along(t, w.gflownet, d.Leaves, start.Forest, undone, true)
	reported, lengths := widened(w.down.UndoneBack), tensors.MustCopyFlatData[int32](d.Lengths)
	for i, logPB := range s.logPB {
		closeTo(t, "log P_B of a dream", reported[i], sum(logPB), 1e-4)
		if want := min(int(lengths[i])-1, w.Sleep.Steps); len(logPB) != want {
			t.Errorf("a dream of %d leaves is taken apart in %d steps, want %d", lengths[i], len(logPB), want)
		}
	}
	return mean(len(s.logPF), func(i int) float64 { return -sum(s.logPF[i]) }), s.trees()
}

// wakeLoss is the objective of wake, in plain loops; without one it counts trees only.
func wakeLoss(t testing.TB, w *iteration) (loss float64, trees int) {
	t.Helper()
	losses, trees := wakeLosses(t, w)
	return mean(len(losses), func(b int) float64 { return losses[b] }), trees
}

// wakeLosses are those of each walk.
func wakeLosses(t testing.TB, w *iteration) (losses []float64, trees int) {
	t.Helper()
	l := w.learning
	s := along(t, w.gflownet, l.Words, l.Wake.Forest, l.Wake.Made, false)
	gaps := w.batch.Room() - 1
	logR, nodes := rewardsOf(t, w, l.Wake.Forest)
	ints := tensors.MustCopyFlatData[int32]
	when, left, right := ints(l.Wake.Made), ints(l.Wake.Forest.Left), ints(l.Wake.Forest.Right)
	signal := func(b int) float64 { return logR[b] + sum(s.logPB[b]) - sum(s.logPF[b]) }
	all := mean(len(logR), signal)
	of := func(b int) float64 {
		if w.Wake.Objective == "hvi" {
			// The baseline is the mean of the others.
			k := float64(len(logR))
			others := (k*all - signal(b)) / (k - 1)
			return -sum(s.logPB[b]) - (signal(b)-others)*sum(s.logPF[b])
		}
		row, last := b*gaps, len(s.logPF[b])
		known := map[int]int{} // the step after which the score of a gap counts
		for g := range last {
			if w.Model.Grammar == string(grammar.CFG) || w.Grammar != nil {
				known[g] = int(when[row+g])
				continue
			}
			for _, child := range []int32{left[row+g], right[row+g]} {
				if gap := int(child) - w.batch.Room(); gap >= 0 {
					known[gap] = int(when[row+g])
				}
			}
		}
		value := make([]float64, last+1) // log F(s_t) less log P_F - log P_B of the steps before
		ratio := 0.0
		for at := range last {
			value[at] = s.flow[b][at] - ratio
			for g, step := range known {
				if step < at {
					value[at] += nodes[row+g]
				}
			}
			ratio += s.logPF[b][at] - s.logPB[b][at]
		}
		value[last] = logR[b] - ratio
		if w.Wake.Objective == "tb" {
			return math.Pow(value[0]-value[last], 2)
		}
		total, spans := 0.0, 0.0
		for j := range value {
			for i := range j {
				weight := math.Pow(w.Wake.Lambda, float64(j-i-1))
				total, spans = total+weight*math.Pow(value[i]-value[j], 2), spans+weight
			}
		}
		return total / spans
	}
	for b := range logR {
		losses = append(losses, of(b))
	}
	return losses, s.trees()
}

// TestParentsOfNothing: a grammar whose embeddings of parents are zero is context-free, so that a whole iteration says
// the same: with TB, since SubTB sees partial rewards, which a grammar with parents knows later.
func TestParentsOfNothing(t *testing.T) {
	t.Parallel()
	seed := testkit.Seed(t)
	start := func(kind grammar.Kind) *Session {
		c := smallGFN()
		c.Seed, c.Model.Grammar, c.Wake.Objective, c.Optim.Warmup = seed, string(kind), "tb", 40 // so that the first updates change nothing
		s := tinySession(t, c)
		makeGrammar(t, s)
		return s
	}
	both := func(s *Session) (*iteration, em.Update) {
		w := awake(t, s, true)
		out, err := s.loop.M.Maximize(em.Moment{}, w.batch, latents{Forests: &w.walks.Forest})
		if err != nil {
			t.Fatal(err)
		}
		return w, out.Update
	}
	cfg, cfgM := both(start(grammar.CFG))
	s := start(grammar.NCFG)
	other, _ := both(s)
	v := s.set.Store.GetVariable(em.Theta + "/parents")
	if err := v.SetValue(tensors.FromShape(v.Shape())); err != nil {
		t.Fatal(err)
	}
	ncfg, ncfgM := both(s)
	same := func(what string, got, want *tensors.Tensor) {
		for i, v := range widened(want) {
			closeTo(t, what, widened(got)[i], v, 1e-5)
		}
	}
	same("log R", ncfg.logR, cfg.logR)
	same("the score of a node", ncfg.learning.Rewards.Nodes, cfg.learning.Rewards.Nodes)
	sameForests(t, ncfg.walks.Forest, cfg.walks.Forest)
	closeTo(t, "wake", ncfg.losses.Wake, cfg.losses.Wake, 1e-5)
	closeTo(t, "balance", ncfg.losses.Balance, cfg.losses.Balance, 1e-5)
	closeTo(t, "sleep", ncfg.losses.Sleep, cfg.losses.Sleep, 1e-5)
	closeTo(t, "norm of the gradient", ncfg.losses.GradNorm, cfg.losses.GradNorm, 1e-4)
	closeTo(t, "loss of the M-step", ncfgM.Loss, cfgM.Loss, 1e-5)
	if math.Abs(other.losses.Wake/cfg.losses.Wake-1) < 1e-3 {
		t.Error("parents make no difference")
	}
}

// TestWeightsOfLosses: plain gradient descent from the same walks lowers the sum of losses, each by its weight, by the
// rate times the square of the gradient's norm, to first order. The step is so small that the rest is less than a
// twentieth of that.
func TestWeightsOfLosses(t *testing.T) {
	t.Parallel()
	for what, change := range map[string]func(c *Config){
		"wake":    func(c *Config) { c.Moves.Balance, c.Sleep.Weight = 0, 0 },
		"balance": func(c *Config) { c.Wake.Objective, c.Moves.Balance, c.Sleep.Weight = "none", 0.3, 0 },
		"sleep":   func(c *Config) { c.Wake.Objective, c.Moves.Balance, c.Sleep.Weight = "none", 0, 7 },
		"all":     func(c *Config) { c.Moves.Balance, c.Sleep.Weight = 0.3, 7 },
	} {
		config := smallGFN()
		config.Optim.Clip, config.Optim.Warmup = 0, 40 // the first rate is 0
		change(&config)
		s := tinySession(t, config)
		for i := range s.gfn.optimizer.Groups {
			s.gfn.optimizer.Groups[i].Rule = optim.SGD{}
		}
		w := awake(t, s, false)
		total := func() float64 {
			return w.losses.Wake + config.Moves.Balance*w.losses.Balance + config.Sleep.Weight*w.losses.Sleep
		}
		before := total()
		fall := before / 100
		rate := fall / (w.losses.GradNorm * w.losses.GradNorm)
		for _, r := range []float64{rate, 0} { // what the second says is of the network after the first
			w.update(t, slices.Repeat([]float32{float32(r)}, len(s.gfn.optimizer.Groups)))
		}
		closeTo(t, what+": how much the losses fall", (before-total())/fall, 1, 0.05)
	}
}

// sameForests fails unless two batches of forests are the same.
func sameForests(t testing.TB, got, want forest.ForestTensors) {
	t.Helper()
	for _, pair := range [][2]*tensors.Tensor{
		{got.Label, want.Label}, {got.Left, want.Left}, {got.Right, want.Right}, {got.Root, want.Root}, {got.First, want.First},
		{got.Last, want.Last}, {got.Length, want.Length},
	} {
		if !pair[0].Equal(pair[1]) {
			t.Errorf("forests are not the same: %v, want %v", pair[0], pair[1])
		}
	}
}
