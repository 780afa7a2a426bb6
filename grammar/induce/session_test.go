package induce

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/backend"
	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/config"
	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/grammar/parse"
	"github.com/gfnem/gfnem/grammar/prior"
	"github.com/gfnem/gfnem/internal/program"
	"github.com/gfnem/gfnem/run"
	"github.com/gfnem/gfnem/run/runtest"
	"github.com/gfnem/gfnem/treebank"
)

// patience is the number of updates of one kind that may fail in a row, that of em.Loop.
const patience = 5

// methods are trainings that differ in what they do.
func methods() map[string]Config {
	marginal, exact, untagged, chains := tinyConfig(Marginal), tinyConfig(Exact), tinyConfig(Exact), tinyConfig(MCEM)
	exact.Model.Grammar, untagged.MStep.Collapse = string(grammar.NCFG), Tags
	shapes := untagged
	shapes.MStep.Collapse, shapes.MStep.Samples = Labels, 3
	prior := chains
	prior.Prior.On = true
	xavier := marginal
	xavier.Model.Init, xavier.Model.Grammar = grammar.Xavier, string(grammar.NCFG)
	chains.Eval.Select, xavier.Eval.Every = Last, 2
	return map[string]Config{"marginal": marginal, "marginal, xavier": xavier, "exact": exact, "exact without tags": untagged, "exact shapes": shapes, "mcem": chains, "mcem with a prior": prior}
}

// A training that is stopped anywhere and continued by another session ends with the same bits.
func TestResume(t *testing.T) {
	for name, c := range methods() {
		c.Updates = 11 // more than an epoch of 8
		if name == "exact without tags" {
			c.Updates = 4
		}
		total := int(tinySession(t, c).total())
		stops := []int{total / 2, total - 1}
		if c.Prior.On {
			stops = append(stops, 3, c.Prior.Updates)
		}
		whole := runtest.Job(t, func() run.Job { return tinySession(t, c) }, runtest.Options{Stops: stops}).(*Session)
		if at := whole.at(); at != uint64(total) {
			t.Errorf("%s: done after %d of %d", name, at, total)
		}
	}
}

// The number of processors does not change a bit of a training.
func TestProcessors(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	all := methods()
	all["gfn"] = gfnMethods()["ncfg with a prior"]
	for name, c := range all {
		var hashes []string
		for _, procs := range []int{1, 2} {
			runtime.GOMAXPROCS(procs)
			b, err := backend.Open("simd")
			if err != nil {
				t.Fatal(err)
			}
			s := sessionOn(t, b, c)
			steps(t, s, 10)
			hashes = append(hashes, run.StateHash(stateOf(t, s)))
		}
		if hashes[0] != hashes[1] {
			t.Errorf("%s: one and two processors end with different states", name)
		}
	}
}

// Every method goes at least half of the way to the entropy of a tiny treebank, which is (log 5 + 3.4 log 2)/4.4 nats
// per word: five patterns of 3.4 words on average, each one of two, and an end.
func TestMethodsLearn(t *testing.T) {
	entropy := (math.Log(5) + 3.4*math.Log(2)) / 4.4
	for name, c := range methods() {
		s := tinySession(t, c)
		valid, err := s.data.Split(treebank.Valid)
		if err != nil {
			t.Fatal(err)
		}
		nll := func() float64 {
			t.Helper()
			logX, err := s.Exact.LogLikelihoods(valid.Sentences)
			if err != nil {
				t.Fatal(err)
			}
			return parse.NatsPerWord(logX, valid.Sentences)
		}
		before := nll()
		steps(t, s, int(s.total()))
		after := nll()
		t.Logf("%s: %.3f to %.3f nats per word, entropy %.3f", name, before, after, entropy)
		// The sample of 20 sentences may have a little less than the entropy.
		if !(before > entropy+0.5) || !(after < (before+entropy)/2) || !(after > entropy-0.1) {
			t.Errorf("%s: %.3f nats per word before and %.3f after, where the entropy is %.3f", name, before, after, entropy)
		}
		if s.loop.State().Skipped != 0 {
			t.Errorf("%s: %d updates were skipped", name, s.loop.State().Skipped)
		}
	}
}

// The loss of each method is what the method says: -log p(x); -log p(x,z) of the tree where a chain ends; and of
// samples -log p(x,s) of the shape, which is more than the first, -log p(x,z), which is more than that, or -log
// p(x,z,tags), which is more again.
func TestLosses(t *testing.T) {
	first := func(c Config) (loss float64, s *Session, b parse.Padded) {
		s = tinySession(t, c)
		b = s.sampler.at(0)
		var z latents
		if s.loop.E != nil {
			e, err := s.loop.E.Infer(em.Moment{}, b)
			if err != nil {
				t.Fatal(err)
			}
			z = e.Z
		}
		out, err := s.loop.M.Maximize(em.Moment{}, b, z)
		if err != nil {
			t.Fatal(err)
		}
		return out.Loss, tinySession(t, c), b // the session as it was before the update
	}
	all := methods()
	marginal, s, b := first(all["marginal"])
	logX, err := s.Exact.LogLikelihoods(b.Sentences)
	if err != nil {
		t.Fatal(err)
	}
	want := 0.0
	for _, v := range logX {
		want -= v / float64(len(logX))
	}
	if math.Abs(marginal-want) > 1e-4 { // of some ten nats, in single precision
		t.Errorf("marginal: loss %v, want %v", marginal, want)
	}
	tagged := all["exact without tags"]
	tagged.MStep.Collapse = Nothing
	withTags, _, _ := first(tagged)
	without, _, _ := first(all["exact without tags"])
	shape := all["exact without tags"]
	shape.MStep.Collapse = Labels
	ofShape, _, _ := first(shape)
	if !(withTags > without+0.01 && without > ofShape+0.01 && ofShape > marginal+0.01) {
		t.Errorf("losses %v with tags, %v without, %v of the shape, %v of the sentence", withTags, without, ofShape, marginal)
	}
	for _, name := range []string{"mcem", "mcem with a prior"} {
		loss, s, b := first(all[name])
		ends, err := s.loop.E.(chainStep).run(em.Moment{}, b)
		if err != nil {
			t.Fatal(err)
		}
		want := 0.0
		for _, r := range ends {
			want -= r.LogP / float64(len(ends))
		}
		if !(math.Abs(loss-want) <= 1e-4) {
			t.Errorf("%s: loss %v, want %v", name, loss, want)
		}
	}
}

// poison makes a parameter of a session NaN.
func poison(t *testing.T, s *Session, path string) {
	t.Helper()
	v := s.set.Store.GetVariable(path)
	if v == nil {
		t.Fatalf("there is no variable %s", path)
	}
	values := tensors.MustCopyFlatData[float32](v.MustValue())
	for i := range values {
		values[i] = float32(math.NaN())
	}
	if err := v.SetValue(tensors.FromFlatDataAndDimensions(values, v.Shape().Dimensions...)); err != nil {
		t.Fatal(err)
	}
}

// Five updates in a row that are not finite end a training; its state stays what it was but for the counts.
func TestDivergence(t *testing.T) {
	grammarOf, network := "/theta/symbols", "/phi/encoder/tokens"
	for _, c := range []struct {
		Config
		poisoned string
	}{
		{tinyConfig(Marginal), grammarOf}, {tinyConfig(Exact), grammarOf}, {tinyConfig(MCEM), grammarOf}, {smallGFN(), grammarOf}, {smallGFN(), network},
	} {
		method := c.Method + " with NaN in " + c.poisoned
		s := tinySession(t, c.Config)
		steps(t, s, 2)
		before := s.loop.State()
		before.InARow.M = patience - 1
		if c.Method == GFN {
			before.InARow.E = patience - 1
		}
		s.loop.SetState(before)
		steps(t, s, 1)
		if now := s.loop.State(); now.InARow != (em.InARow{}) || now.Skipped != 0 {
			t.Errorf("%s: after a good update %+v were skipped in a row, %d in all", method, now.InARow, now.Skipped)
		}
		poison(t, s, c.poisoned)
		kept := stateOf(t, s)
		steps(t, s, patience-1)
		if s.loop.State().Skipped != patience-1 {
			t.Errorf("%s: %d of %d updates were skipped", method, s.loop.State().Skipped, patience-1)
		}
		_, err := s.Step()
		if !errors.Is(err, run.ErrGaveUp) {
			t.Errorf("%s: after %d updates that are not finite, error %v", method, patience, err)
		}
		after := stateOf(t, s)
		after.Extra = kept.Extra
		if run.StateHash(after) != run.StateHash(kept) {
			t.Errorf("%s: a skipped update changed a variable", method)
		}
	}
}

// The state of a prior that does not fit is refused.
func TestPriorState(t *testing.T) {
	c := tinyConfig(MCEM)
	c.Prior.On = true
	s := tinySession(t, c)
	state := stateOf(t, s)
	s.prior.Second = s.prior.Second[:5]
	bad := stateOf(t, s)
	if err := tinySession(t, c).Restore(bad); err == nil {
		t.Error("a prior with a part missing was restored")
	}
	if err := tinySession(t, c).Restore(state); err != nil {
		t.Error(err)
	}
}

// A prior whose energies are not finite ends a training, too, and keeps its parameters.
func TestPriorDiverges(t *testing.T) {
	c := tinyConfig(MCEM)
	c.Prior.On = true
	s := tinySession(t, c)
	steps(t, s, 1)
	for i := range s.prior.Params {
		s.prior.Params[i] = 1e200
	}
	steps(t, s, patience-1)
	resumed := tinySession(t, c)
	if err := resumed.Restore(stateOf(t, s)); err != nil {
		t.Fatal(err)
	}
	for _, s := range []*Session{s, resumed} {
		if _, err := s.Step(); !errors.Is(err, run.ErrGaveUp) {
			t.Errorf("error %v", err)
		}
	}
	for _, p := range s.prior.Params {
		if p != 1e200 {
			t.Fatalf("a parameter became %v", p)
		}
	}
}

// A state of other data is refused, and does not change the words of this one.
func TestRestoreOfOtherData(t *testing.T) {
	s := tinySession(t, tinyConfig(Marginal))
	steps(t, s, 1)
	state := stateOf(t, s)
	state.Extra = []byte(strings.Replace(string(state.Extra), `"cat"`, `"cow"`, 1))
	fresh := tinySession(t, tinyConfig(Marginal))
	var input *badinput.Error
	if err := fresh.Restore(state); !errors.As(err, &input) {
		t.Errorf("error %v, want one of the user's", err)
	}
	if fresh.data.Vocabulary.ID("cat") != 2 || fresh.data.Vocabulary.Words()[2] != "cat" {
		t.Error("the vocabulary of the data was changed")
	}
}

// The published schedule: update 0 has rate 0, and after the warm-up the rate stays where it was at its last update.
func TestPaperLearningRate(t *testing.T) {
	c := PaperConfig()
	p := newMStep(program.NewSet(simd(), nil), nil, &c)
	rate := p.optimizer.Groups[0].Rate
	for step, want := range map[uint64]float64{0: 0, 1: 1.0 / 40, 39: 39.0 / 40, 40: 39.0 / 40, 1000: 39.0 / 40, 9999: 39.0 / 40} {
		if got := rate.At(step) / 1e-3; !(math.Abs(got-want) <= 1e-12) {
			t.Errorf("update %d has %g of the nominal rate, want %g", step, got, want)
		}
	}
	fast := QuickConfig()
	fast.Updates, fast.Optim.Warmup = 400, 0
	if err := fast.Validate(); err != nil {
		t.Fatal(err)
	}
	rate = newMStep(program.NewSet(simd(), nil), nil, &fast).optimizer.Groups[0].Rate
	for step, want := range map[uint64]float64{0: 1, 100: 1, 250: math.Sqrt(0.05), 400: 0.05} {
		if got := rate.At(step) / 3e-3; !(math.Abs(got-want) <= 1e-12) {
			t.Errorf("update %d of preset quick has %g of the nominal rate, want %g", step, got, want)
		}
	}
	if p.optimizer.ClipNorm != 3 || c.Optim.Theta.Beta1 != 0.75 || c.Optim.Theta.Beta2 != 0.999 || c.Batch != 32 || c.Updates != 10_000 {
		t.Error("the preset is not the paper's")
	}
}

// The temperature of the prior, with its values in round numbers. A shorter training follows the same schedule, if its
// horizon says so.
func TestTemperature(t *testing.T) {
	s := &Session{Config: PaperConfig(), prior: &prior.Trainer{}}
	s.Config.Updates, s.Horizon = 2000, 10_000
	if err := s.Validate(); err != nil {
		t.Fatal(err)
	}
	for step, want := range map[uint64]float64{0: 1, 1000: 2, 3333: 10, 5000: 31.6, 10_000: 1000, 20_000: 1000} {
		got := s.ebmTemperature(step)
		if exact := math.Pow(10, 3*min(1, float64(step)/10_000)); !(math.Abs(got/exact-1) <= 1e-12) || !(math.Abs(got/want-1) <= 3e-3) {
			t.Errorf("update %d has temperature %g, want about %g", step, got, want)
		}
	}
	s.Prior.Anneal = "linear"
	for step, want := range map[uint64]float64{0: 1, 2500: 250.75, 5000: 500.5, 10_000: 1000, 20_000: 1000} {
		closeTo(t, fmt.Sprintf("linear temperature of update %d", step), s.ebmTemperature(step), want, 1e-12)
	}
}

func TestBadData(t *testing.T) {
	for want, change := range map[string]func(*Config, *treebank.Dataset){
		"fewer than a batch of 100: l": func(c *Config, _ *treebank.Dataset) { c.Batch = 100 },
		"learns from gold trees":       func(c *Config, d *treebank.Dataset) { c.Prior.On, d.Splits[0].Gold = true, false },
		`has no split "train"`:         func(_ *Config, d *treebank.Dataset) { d.Splits = d.Splits[1:] },
		"no validation or test senten": func(_ *Config, d *treebank.Dataset) { d.Splits = d.Splits[:1] },
	} {
		c, d := tinyConfig(MCEM), tinyData(t)
		change(&c, d)
		_, err := NewSession(simd(), c, d)
		var input *badinput.Error
		if !errors.As(err, &input) || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one of the user's with %q", err, want)
		}
	}
}

func TestValidate(t *testing.T) {
	for want, change := range map[string]func(*Config){
		`method = "em" is not one of marginal exact mcem`:     func(c *Config) { c.Method = "em" },
		`model.grammar = "" is not one of cfg ncfg`:           func(c *Config) { c.Model.Grammar = "" },
		`mstep.collapse = "none" needs method = "exact"`:      func(c *Config) { c.Method, c.MStep.Collapse = GFN, Nothing },
		`policy.trees = "shapes" hands on no labels: set`:     func(c *Config) { c.Method, c.Policy.Trees, c.MStep.Collapse = GFN, Shapes, Tags },
		`mstep.samples = 4 needs method = "exact"`:            func(c *Config) { c.MStep.Samples = 4 },
		`prior.on = true needs method = "mcem"`:               func(c *Config) { c.Prior.On = true },
		`wake.objective = "rws" is right for trees`:           func(c *Config) { c.Method, c.Wake.Objective = GFN, "rws" },
		`wake.objective = "vargrad" compares the walks`:       func(c *Config) { c.Method, c.Wake.Objective = GFN, "vargrad" },
		`mstep.weights = true weighs the walks`:               func(c *Config) { c.Method, c.MStep.Weights = GFN, true },
		`moves.persist = true needs moves`:                    func(c *Config) { c.Method, c.Moves.Persist, c.Moves.Count = GFN, true, 0 },
		`wake.replay = 2 keeps more trees than wake.samples`:  func(c *Config) { c.Method, c.Wake.Replay = GFN, 2 },
		`wake.replay = 1 learns from trees that others have`:  func(c *Config) { c.Method, c.Wake.Replay, c.Wake.Objective = GFN, 1, "none" },
		`set moves.balance = 0`:                               func(c *Config) { c.Method, c.Wake.Replay, c.Moves.Count, c.Moves.ECount = GFN, 1, 0, 0 },
		`set moves.count = 0`:                                 func(c *Config) { c.Method, c.MStep.Weights, c.Wake.Samples = GFN, true, 2 },
		"model.nonterminals = 0 is not between 1 and 500":     func(c *Config) { c.Model.Nonterminals = 0 },
		"optim.theta.rate = NaN is neither -1 nor between 0 ": func(c *Config) { c.Optim.Theta.Rate = math.NaN() },
		"updates = -1 is neither 0 nor between":               func(c *Config) { c.Updates = -1 },
		"max_length = 1 is neither 0 nor between 2 and 200":   func(c *Config) { c.MaxLength = 1 },
		"prior.reset = 2 is not between 0 and 1":              func(c *Config) { c.Prior.Reset = 2 },
		"optim.theta.end = 0 is not between 1e-09 and 1":      func(c *Config) { c.Optim.Theta.End = 0 }, // it is reached exponentially
		`eval.patience = 3 waits for a better evaluation`:     func(c *Config) { c.Eval.Patience, c.Eval.Every = 3, 0 },
		`eval.patience = 2 waits for a better evaluation`:     func(c *Config) { c.Eval.Patience, c.Eval.Select = 2, Last },
		`prior.anneal = "cosine" is not one of exp linear`:    func(c *Config) { c.Prior.Anneal = "cosine" },
		"horizon = -5 is not between 0 and":                   func(c *Config) { c.Horizon = -5 },
		"gate.threshold = -2 is neither -1 nor between 0 and": func(c *Config) { c.Gate.Threshold = -2 },
	} {
		c := QuickConfig()
		c.AsPublished(4)
		change(&c)
		if err := config.Resolve(&c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
	for _, preset := range (Task{}).Presets() {
		for _, method := range []string{Marginal, Exact, MCEM, GFN} {
			c := (Task{}).Config(preset).(*Config)
			if preset == "small" {
				method = GFN
			}
			if err := errors.Join(config.Check(c), config.Resolve(c, config.Set{"method=" + method})); err != nil {
				t.Errorf("preset %s: %v", preset, err)
			}
		}
	}
	if (Task{}).Config("none") != nil {
		t.Error("there is a preset of any name")
	}
}

// What a configuration leaves open: the published gates of the paper's preset, which differ, that of the others, which
// does not, and the horizon. What is said stays.
func TestOpenKeys(t *testing.T) {
	for _, c := range []struct {
		preset   string
		set      config.Set
		from, to float64
		horizon  int
	}{
		{"paper", nil, 6, 3, 10_000},
		{"paper", config.Set{"model.grammar=ncfg", "updates=2000"}, 7, 3.5, 2000},
		{"paper", config.Set{"prior.on=true", "updates=2000", "horizon=10000"}, 4, 2, 10_000},
		{"paper", config.Set{"model.grammar=ncfg", "prior.on=true"}, 4, 2, 10_000},
		{"paper", config.Set{"gate.threshold=12"}, 12, 6, 10_000},
		{"paper", config.Set{"prior.on=true", "gate.threshold_end=0"}, 4, 0, 10_000},
		{"quick", nil, 12, 6, 2500},
		{"quick", config.Set{"model.grammar=ncfg", "prior.on=true", "horizon=50"}, 12, 6, 50},
	} {
		got := presets[c.preset]()
		if err := config.Resolve(&got, config.Set{"method=gfn"}, c.set); err != nil {
			t.Fatal(err)
		}
		if got.Gate.Threshold != c.from || got.Gate.ThresholdEnd != c.to || got.Horizon != c.horizon {
			t.Errorf("%s %v: from %v to %v over %d updates, want %+v", c.preset, c.set, got.Gate.Threshold, got.Gate.ThresholdEnd, got.Horizon, c)
		}
		again := got
		if err := again.Validate(); err != nil || again != got {
			t.Errorf("%s %v: the second time it is %+v, error %v", c.preset, c.set, again, err)
		}
	}
}
