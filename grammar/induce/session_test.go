package induce

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/gfnem/gfnem/backend"
	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/run"
	"github.com/gfnem/gfnem/treebank"
)

// patience is the number of updates of one kind that may fail in a row, that of em.Tally.
const patience = 5

// methods are trainings that differ in what they do.
func methods() map[string]Config {
	marginal, exact, untagged, chains := tinyConfig(Marginal), tinyConfig(Exact), tinyConfig(Exact), tinyConfig(MCEM)
	exact.Grammar, untagged.Tags = string(grammar.NCFG), false
	prior := chains
	prior.EBM = true
	return map[string]Config{"marginal": marginal, "exact": exact, "exact without tags": untagged, "mcem": chains, "mcem with a prior": prior}
}

// A training that is stopped anywhere and continued by another session ends with the same bits.
func TestResume(t *testing.T) {
	for name, c := range methods() {
		c.Updates = 11 // more than an epoch of 8
		if name == "exact without tags" {
			c.Updates = 4
		}
		whole := tinySession(t, c)
		total := int(whole.total())
		stops := []int{0, total / 2, total - 1}
		if c.EBM {
			stops = append(stops, 3, c.EBMUpdates)
		}
		states := map[int]run.State{}
		for at := range total {
			if slices.Contains(stops, at) {
				states[at] = stateOf(t, whole)
			}
			if whole.Done() {
				t.Fatalf("%s: done after %d of %d", name, at, total)
			}
			steps(t, whole, 1)
		}
		if !whole.Done() {
			t.Errorf("%s: not done after %d", name, total)
		}
		want := run.StateHash(stateOf(t, whole))
		for at, state := range states {
			again := tinySession(t, c)
			if err := again.Restore(state); err != nil {
				t.Fatal(err)
			}
			if run.StateHash(stateOf(t, again)) != run.StateHash(state) {
				t.Errorf("%s: a restored state is not the state", name)
			}
			steps(t, again, total-at)
			if run.StateHash(stateOf(t, again)) != want {
				t.Errorf("%s: stopped at %d and resumed, the end is another", name, at)
			}
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

// Every method goes at least half of the way to the entropy of a tiny treebank, which is (log 5 + 3.4 log 2)/4.4 nats per word:
// five patterns of 3.4 words on average, each one of two, and an end.
func TestMethodsLearn(t *testing.T) {
	entropy := (math.Log(5) + 3.4*math.Log(2)) / 4.4
	for name, c := range methods() {
		s := tinySession(t, c)
		valid, err := s.data.Split(treebank.Valid)
		if err != nil {
			t.Fatal(err)
		}
		before, err := s.evaluate(valid)
		if err != nil {
			t.Fatal(err)
		}
		steps(t, s, int(s.total()))
		after, err := s.evaluate(valid)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %.3f to %.3f nats per word, entropy %.3f", name, before.NLL, after.NLL, entropy)
		// The sample of 20 sentences may have a little less than the entropy.
		if !(before.NLL > entropy+0.5) || !(after.NLL < (before.NLL+entropy)/2) || !(after.NLL > entropy-0.1) {
			t.Errorf("%s: %.3f nats per word before and %.3f after, where the entropy is %.3f", name, before.NLL, after.NLL, entropy)
		}
		if s.Skipped != 0 {
			t.Errorf("%s: %d updates were skipped", name, s.Skipped)
		}
	}
}

// The loss of each method is what the method says: -log p(x); -log p(x,z) of the tree where a chain ends; and of samples
// -log p(x,z), which is more than the first, or -log p(x,z,tags), which is more than that.
func TestLosses(t *testing.T) {
	first := func(c Config) (loss float64, s *session, b batch) {
		s = tinySession(t, c)
		b = s.sampler.at(0)
		out, _, err := s.update(0, b)
		if err != nil {
			t.Fatal(err)
		}
		return out.Loss, tinySession(t, c), b // the session as it was before the update
	}
	all := methods()
	marginal, s, b := first(all["marginal"])
	logX, err := s.parser.LogLikelihoods(b.sentences)
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
	tagged.Tags = true
	withTags, _, _ := first(tagged)
	without, _, _ := first(all["exact without tags"])
	if !(withTags > without+0.01 && without > marginal+0.01) {
		t.Errorf("losses %v with tags, %v without, %v of the sentence", withTags, without, marginal)
	}
	for _, name := range []string{"mcem", "mcem with a prior"} {
		loss, s, b := first(all[name])
		ends, err := s.chains(0, b, s.Chain, s.temperature(0))
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
func poison(t *testing.T, s *session, path string) {
	t.Helper()
	state := stateOf(t, s)
	a, ok := state.Arrays[path]
	if !ok {
		t.Fatalf("there is no variable %s", path)
	}
	for i := range a.Data {
		a.Data[i] = 0xff
	}
	if err := s.Restore(state); err != nil {
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
		s.InARow.M = patience - 1
		if c.Method == GFN {
			s.InARow.E = patience - 1
		}
		steps(t, s, 1)
		if s.InARow != (inARow{}) || s.Skipped != 0 {
			t.Errorf("%s: after a good update %+v were skipped in a row, %d in all", method, s.InARow, s.Skipped)
		}
		poison(t, s, c.poisoned)
		before := stateOf(t, s)
		steps(t, s, patience-1)
		if s.Skipped != patience-1 {
			t.Errorf("%s: %d of %d updates were skipped", method, s.Skipped, patience-1)
		}
		_, err := s.Step()
		if !errors.Is(err, run.ErrGaveUp) {
			t.Errorf("%s: after %d updates that are not finite, error %v", method, patience, err)
		}
		after := stateOf(t, s)
		after.Extra = before.Extra
		if run.StateHash(after) != run.StateHash(before) {
			t.Errorf("%s: a skipped update changed a variable", method)
		}
	}
}

// Updates of one kind that all fail end a training, however well those of another kind go in between.
func TestCountsApart(t *testing.T) {
	for _, bad := range []string{"E", "M"} {
		s := &session{}
		for i := 1; i <= patience; i++ {
			e, m := s.count(em.Update{OK: bad != "E"}, &s.InARow.E, "E"), s.count(em.Update{OK: bad != "M"}, &s.InARow.M, "M")
			err := errors.Join(e, m)
			if (err != nil) != (i == patience) {
				t.Errorf("%s failed %d times, error %v", bad, i, err)
			}
			if err != nil && (!errors.Is(err, run.ErrGaveUp) || !strings.Contains(err.Error(), bad+"-updates")) {
				t.Errorf("error %v, want that %s-updates failed", err, bad)
			}
		}
	}
}

// A state that was saved when there was one count for all kinds has none of the new ones.
func TestRestoreOfOldCounts(t *testing.T) {
	s := tinySession(t, tinyConfig(Marginal))
	steps(t, s, 1)
	s.Skipped = 4
	state := stateOf(t, s)
	now := `"in_a_row":{"prior":0,"e":0,"m":0}`
	if !strings.Contains(string(state.Extra), now) {
		t.Fatalf("no %s in %s", now, state.Extra)
	}
	state.Extra = []byte(strings.Replace(string(state.Extra), now, `"skipped_in_a_row":4`, 1))
	s.InARow.M = 3
	if err := s.Restore(state); err != nil {
		t.Fatal(err)
	}
	if s.InARow != (inARow{}) || s.Skipped != 4 || s.Made != 1 {
		t.Errorf("after %d updates and %d skipped, %+v in a row", s.Made, s.Skipped, s.InARow)
	}
}

// A prior whose energies are not finite ends a training, too, and keeps its parameters.
func TestPriorDiverges(t *testing.T) {
	c := tinyConfig(MCEM)
	c.EBM = true
	s := tinySession(t, c)
	steps(t, s, 1)
	for i := range s.prior.Params {
		s.prior.Params[i] = 1e200
	}
	steps(t, s, patience-1)
	if _, err := s.Step(); !errors.Is(err, run.ErrGaveUp) {
		t.Errorf("error %v", err)
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
	var input *run.InputError
	if err := fresh.Restore(state); !errors.As(err, &input) {
		t.Errorf("error %v, want one of the user's", err)
	}
	if fresh.data.Vocabulary.ID("cat") != 2 || fresh.data.Vocabulary.Words()[2] != "cat" {
		t.Error("the vocabulary of the data was changed")
	}
}

// The published schedule: update 0 has rate 0, and after the warm-up the rate stays where it was at its last update.
func TestPaperLearningRate(t *testing.T) {
	c := Paper()
	p, err := newPrograms(simd(), tinySession(t, tinyConfig(Marginal)).store, c.model(6), &c)
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	rate := p.optimizer.Groups[0].Rate
	for step, want := range map[uint64]float64{0: 0, 1: 1.0 / 40, 39: 39.0 / 40, 40: 39.0 / 40, 1000: 39.0 / 40, 9999: 39.0 / 40} {
		if got := rate.At(step) / 1e-3; !(math.Abs(got-want) <= 1e-12) {
			t.Errorf("update %d has %g of the nominal rate, want %g", step, got, want)
		}
	}
	if p.optimizer.ClipNorm != 3 || c.Beta1 != 0.75 || c.Beta2 != 0.999 || c.Batch != 32 || c.Updates != 10_000 {
		t.Error("the preset is not the paper's")
	}
}

// The temperature of the prior, with its values in round numbers. A shorter training follows the same schedule, if its horizon says so.
func TestTemperature(t *testing.T) {
	s := &session{Config: Paper(), prior: &ebmTrainer{}}
	s.Config.Updates, s.Horizon = 2000, 10_000
	if err := s.Validate(); err != nil {
		t.Fatal(err)
	}
	for step, want := range map[uint64]float64{0: 1, 1000: 2, 3333: 10, 5000: 31.6, 10_000: 1000, 20_000: 1000} {
		got := s.temperature(step)
		if exact := math.Pow(10, 3*min(1, float64(step)/10_000)); !(math.Abs(got/exact-1) <= 1e-12) || !(math.Abs(got/want-1) <= 3e-3) {
			t.Errorf("update %d has temperature %g, want about %g", step, got, want)
		}
	}
	s.EBMAnneal = annealLinear
	for step, want := range map[uint64]float64{0: 1, 2500: 250.75, 5000: 500.5, 10_000: 1000, 20_000: 1000} {
		closeTo(t, fmt.Sprintf("linear temperature of update %d", step), s.temperature(step), want, 1e-12)
	}
	s.prior = nil
	if s.temperature(5) != 0 {
		t.Error("a training without a prior has a temperature")
	}
}

func TestBadData(t *testing.T) {
	for want, change := range map[string]func(*Config, *treebank.Dataset){
		"fewer than a batch of 100":    func(c *Config, _ *treebank.Dataset) { c.Batch = 100 },
		"learns from gold trees":       func(c *Config, d *treebank.Dataset) { c.EBM, d.Splits[0].Gold = true, false },
		`has no split "train"`:         func(_ *Config, d *treebank.Dataset) { d.Splits = d.Splits[1:] },
		"no validation or test senten": func(_ *Config, d *treebank.Dataset) { d.Splits = d.Splits[:1] },
	} {
		c, d := tinyConfig(MCEM), tinyData(t)
		change(&c, d)
		_, err := newSession(simd(), c, d)
		var input *run.InputError
		if !errors.As(err, &input) || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one of the user's with %q", err, want)
		}
	}
}

func TestValidate(t *testing.T) {
	for want, change := range map[string]func(*Config){
		`method = "em" is not one of marginal exact mcem`: func(c *Config) { c.Method = "em" },
		`grammar = "" is not one of cfg ncfg`:             func(c *Config) { c.Grammar = "" },
		`ebm = true needs method = "mcem"`:                func(c *Config) { c.EBM = true },
		"nonterminals = 0 is not between 1 and 500":       func(c *Config) { c.Nonterminals = 0 },
		"lr = NaN is not between 0 and 1000":              func(c *Config) { c.LR = math.NaN() },
		"updates = -1 is not between":                     func(c *Config) { c.Updates = -1 },
		"max_length = 1 is not between 2 and 200":         func(c *Config) { c.MaxLength = 1 },
		"ebm_reset = 2 is not between 0 and 1":            func(c *Config) { c.EBMReset = 2 },
		"lr_end = 0 is not between 1e-09 and 1":           func(c *Config) { c.Decay = 0 }, // it is reached exponentially
		`ebm_anneal = "cosine" is not one of exp linear`:  func(c *Config) { c.EBMAnneal = "cosine" },
		"horizon = -5 is not between 1 and":               func(c *Config) { c.Horizon = -5 },
		"threshold = -2 is not between 0 and":             func(c *Config) { c.Threshold = -2 },
	} {
		c := Quick()
		change(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
	for _, preset := range (Task{}).Presets() {
		if err := (Task{}).Config(preset).(*Config).Validate(); err != nil {
			t.Errorf("preset %s: %v", preset, err)
		}
	}
	if (Task{}).Config("none") != nil {
		t.Error("there is a preset of any name")
	}
}

// What a configuration leaves open: the published gates of the paper's preset, which differ, that of the others, which does not, and the
// horizon. What is said stays.
func TestOpenKeys(t *testing.T) {
	for _, c := range []struct {
		preset   string
		set      run.Set
		from, to float64
		horizon  int
	}{
		{"paper", nil, 6, 3, 10_000},
		{"paper", run.Set{"grammar=ncfg", "updates=2000"}, 7, 3.5, 2000},
		{"paper", run.Set{"ebm=true", "updates=2000", "horizon=10000"}, 4, 2, 10_000},
		{"paper", run.Set{"grammar=ncfg", "ebm=true"}, 4, 2, 10_000},
		{"paper", run.Set{"threshold=12"}, 12, 6, 10_000},
		{"paper", run.Set{"ebm=true", "threshold_end=0"}, 4, 0, 10_000},
		{"quick", nil, 6, 3, 4000},
		{"quick", run.Set{"grammar=ncfg", "ebm=true", "horizon=50"}, 6, 3, 50},
	} {
		got := presets[c.preset]()
		if err := run.Resolve(&got, run.Set{"method=gfn"}, c.set); err != nil {
			t.Fatal(err)
		}
		if got.Threshold != c.from || got.ThresholdEnd != c.to || got.Horizon != c.horizon {
			t.Errorf("%s %v: from %v to %v over %d updates, want %+v", c.preset, c.set, got.Threshold, got.ThresholdEnd, got.Horizon, c)
		}
		again := got
		if err := again.Validate(); err != nil || again != got {
			t.Errorf("%s %v: the second time it is %+v, error %v", c.preset, c.set, again, err)
		}
	}
}
