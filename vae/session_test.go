package vae

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/backend"
	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/config"
	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/mnist"
	"github.com/gfnem/gfnem/rng"
	"github.com/gfnem/gfnem/run"
	"github.com/gfnem/gfnem/run/runtest"
)

// bars are images of 8x8 pixels, each with a bright row or column and a little noise.
func bars(name string, count int) mnist.Images {
	r := rng.New(1, "test bars", uint64(len(name)))
	pixels := make([]byte, count*64)
	for i := range count {
		at, down := r.IntN(8), r.IntN(2)
		for k := range 8 {
			if down == 1 {
				pixels[i*64+k*8+at] = 1
			} else {
				pixels[i*64+at*8+k] = 1
			}
		}
		pixels[i*64+r.IntN(64)] ^= 1
	}
	return mnist.NewImages(mnist.Size{Height: 8, Width: 8}, pixels)
}

func barSet() *mnist.Set {
	size := mnist.Size{Height: 8, Width: 8}
	return &mnist.Set{Name: "bars", Size: size, Train: bars("train", 52), Test: bars("test", 20)}
}

// tinyConfig is a training of a second or so.
func tinyConfig(method string) Config {
	c := PaperConfig()
	c.Method, c.Batch, c.Epochs, c.Gate.Turn, c.Sleep.Probability = method, 8, 2, 2, 0.5
	c.Model.Codes, c.Model.Rows, c.Model.Columns, c.Model.Channels = 3, 2, 2, 4
	c.Optim.DropOn, c.Optim.Phi.Rate, c.Optim.Phi.Drop, c.Optim.Theta.Rate, c.Optim.Theta.Drop = 2, 1e-2, 0.1, 1e-2, 1
	if method == MethodVQ {
		c.Optim.Theta.Drop = 0.1
	}
	c.Eval.Samples, c.Eval.FitUpdates, c.Eval.ExtraEUpdates, c.Eval.Every = 20, 4, 3, 5
	return c
}

// methods are trainings that differ in what they do.
func methods() map[string]Config {
	out := map[string]Config{}
	for _, m := range Methods() {
		out[m] = tinyConfig(m)
	}
	mixed := tinyConfig(MethodGFN)
	mixed.MStep.Latents, mixed.MStep.GreedyProbability = latentsGreedy, 0.5
	mixed.Wake.Epsilon, mixed.Wake.Beta, mixed.Policy.LogZ, mixed.Policy.Floor = 0.1, 0.8, logZImage, 1e-9
	out["mixed"] = mixed
	compared := tinyConfig(MethodGD)
	compared.Policy.LogZ, compared.Wake.Samples, compared.Model.Gain, compared.Optim.Theta.Drop = logZNone, 3, 2, 0.1
	out["compared"] = compared
	best := compared
	best.MStep.Latents, best.Gate.Turn = latentsBest, 0
	out["best"] = best
	all := compared // what preset best has, and a memory
	all.MStep.Latents, all.Gate.Turn, all.Wake.Memory, all.Optim.Smooth, all.Optim.Clip = latentsWeighted, 0, 2, true, 10
	all.Model.Norm, all.Model.CodeWidth, all.Policy.Order = normBatch, 2, orderCenter
	all.Policy.Network, all.Policy.Width, all.Policy.Layers = networkAttention, 8, 1
	out["all means"] = all
	chains := tinyConfig(MethodGFN)
	chains.Moves.Count, chains.Moves.Steps, chains.Moves.Persist, chains.Gate.Turn = 2, 2, true, 0
	out["chains"] = chains
	return out
}

func tinySession(t *testing.T, c Config) *session {
	t.Helper()
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	s, err := newSession(open(t), c, barSet())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func steps(t *testing.T, s *session, n int) (logs []map[string]float64) {
	t.Helper()
	for range n {
		tick, err := s.Step()
		if err != nil {
			t.Fatal(err)
		}
		logs = append(logs, tick.Log)
	}
	return logs
}

func stateOf(t *testing.T, s *session) run.State {
	t.Helper()
	state, err := s.State()
	if err != nil {
		t.Fatal(err)
	}
	return state
}

// A training that is stopped anywhere and continued by another session ends with the same bits, and evaluates alike.
func TestResume(t *testing.T) {
	for name, c := range methods() {
		start := func() run.Job { return tinySession(t, c) }
		whole := runtest.Job(t, start, runtest.Options{Stops: []int{5, 11}}).(*session)
		if total := whole.total(); total != 12 || whole.made() != total {
			t.Fatalf("%s: %d of %d updates in two epochs of 52 images, want 12", name, whole.made(), total)
		}
		want := run.StateHash(stateOf(t, whole))
		// Evaluating changes nothing, and gives the same twice.
		var results []string
		for range 2 {
			r, err := whole.Evaluate()
			if err != nil {
				t.Fatal(err)
			}
			text, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			results = append(results, string(text))
		}
		if run.StateHash(stateOf(t, whole)) != want {
			t.Errorf("%s: evaluation changed the state", name)
		}
		if results[0] != results[1] {
			t.Errorf("%s: evaluations differ:\n%s\n%s", name, results[0], results[1])
		}
	}
}

// The number of processors does not change a bit of a training.
func TestProcessors(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, name := range []string{MethodVQ, MethodPrior} {
		var hashes []string
		for _, procs := range []int{1, 2} {
			runtime.GOMAXPROCS(procs)
			b, err := backend.Open("simd")
			if err != nil {
				t.Fatal(err)
			}
			s, err := newSession(b, tinyConfig(name), barSet())
			if err != nil {
				t.Fatal(err)
			}
			steps(t, s, 8)
			hashes = append(hashes, run.StateHash(stateOf(t, s)))
			s.Close()
		}
		if hashes[0] != hashes[1] {
			t.Errorf("%s: one and two processors end with different states", name)
		}
	}
}

// An update that is not finite changes nothing and is counted; five in a row end the training with the state kept.
func TestNotFinite(t *testing.T) {
	for name, path := range map[string]string{MethodVQ: "/decoder/out/bias", MethodGD: "/decoder/out/bias", MethodPrior: "/prior/out/bias"} {
		c := tinyConfig(name)
		c.Sleep.Probability = 0 // dreams of a broken model are black or white, but finite
		s := tinySession(t, c)
		steps(t, s, 4) // the next two are E-updates, those after them M-updates
		v := s.store.GetVariable(em.Theta + path)
		broken := slices.Repeat([]float32{float32(math.Inf(1))}, v.Shape().Size())
		if err := v.SetValue(tensors.FromFlatDataAndDimensions(broken, v.Shape().Dimensions...)); err != nil {
			t.Fatal(err)
		}
		before := map[string]string{}
		for path, a := range stateOf(t, s).Arrays {
			before[path] = string(a.Data)
		}
		var err error
		bad := 0
		for range 30 {
			if _, err = s.Step(); err != nil {
				break
			}
			bad++
		}
		if !errors.Is(err, run.ErrGaveUp) || bad < 4 {
			t.Fatalf("%s: %v after %d bad updates", name, err, bad)
		}
		for path, a := range stateOf(t, s).Arrays {
			if before[path] != string(a.Data) {
				t.Errorf("%s: a bad update changed %s", name, path)
			}
		}
	}
}

// The published counters: updates, and the learning rates of every update.
func TestPublishedSchedule(t *testing.T) {
	const perEpoch = 60_000 / 128
	if perEpoch != 468 {
		t.Fatal(perEpoch)
	}
	for _, c := range []struct {
		method       string
		codes, steps int
		reduced      uint64 // the first update with a lower rate
	}{
		{MethodGFN, 8, 234_000, 399 * 468}, {MethodGD, 4, 117_000, 179 * 468}, {MethodPrior, 10, 187_200, 299 * 468},
		{MethodVQ, 4, 23_868, 25 * 468}, {MethodVQ, 8, 23_868, 25 * 468}, {MethodVQ, 10, 37_908, 50 * 468},
	} {
		conf := PaperConfig()
		conf.Method, conf.Model.Codes = c.method, c.codes
		if err := conf.Validate(); err != nil {
			t.Fatal(err)
		}
		if got := conf.Epochs * perEpoch; got != c.steps {
			t.Errorf("%s, K = %d: %d updates, want %d", c.method, c.codes, got, c.steps)
		}
		if c.method == MethodVQ {
			o := conf.theta(conf.dropAt(perEpoch))
			for at, want := range map[uint64]float32{0: 2e-4, c.reduced - 1: 2e-4, c.reduced: 5e-5, uint64(c.steps) - 1: 5e-5} {
				near(t, fmt.Sprintf("%s: rate of update %d", c.method, at), float64(o.Rates(at)[0]), float64(want), 1e-10)
			}
			continue
		}
		spec := conf.Spec(Paper(c.codes), nil, perEpoch)
		for at, want := range map[uint64]float64{0: 2e-4, c.reduced - 1: 2e-4, c.reduced: 5e-5, uint64(c.steps) - 1: 5e-5} {
			rates := spec.Wake.Optimizer.Rates(at)
			near(t, fmt.Sprintf("%s: rate of update %d", c.method, at), float64(rates[0]), want, 1e-10)
			near(t, "rate of zeta", float64(rates[1]), 0.1, 1e-8)
			near(t, "rate of the decoder", float64(spec.MStep.Optimizer.Rates(at)[0]), 2e-4, 1e-10)
		}
		if spec.Sleep.Weight != 10.0/16 || spec.Sleep.Probability != 0.3 || !spec.Sleep.Apart || spec.Sleep.Batch != 128 {
			t.Errorf("%s: sleep %+v", c.method, spec.Sleep)
		}
		_, greedy := spec.MStep.Latents.(em.Greedy)
		if greedy != (c.method != MethodGFN) || spec.Gate != em.Gate(em.Turns{Length: 400}) {
			t.Errorf("%s: latents %#v, gate %#v", c.method, spec.MStep.Latents, spec.Gate)
		}
	}
}

// The decoder's rate falls, if it does, at the first M-update of the epoch, by turns of 20 (90 iterations, of which 50 are M-updates) and
// with an M-update in each iteration.
func TestDecoderRate(t *testing.T) {
	c := QuickConfig()
	c.Optim.DropOn, c.Optim.Smooth, c.Optim.Theta.Rate, c.Optim.Theta.Drop = 3, false, 0.5, 0.25
	for turn, made := range map[int]uint64{20: 50, 0: 90} {
		c.Gate.Turn = turn
		for at, want := range map[uint64]float64{0: 0.5, made - 1: 0.5, made: 0.125} {
			rates := c.Spec(tiny(2), nil, 45).MStep.Optimizer.Rates(at)
			near(t, fmt.Sprintf("rate of M-update %d", at), float64(rates[0]), want, 1e-9)
		}
	}
}

// Without turns each minibatch serves both kinds of updates, in programs of their own or in one.
func TestUpdatesOfBothKinds(t *testing.T) {
	apart := tinyConfig(MethodGD)
	apart.Gate.Turn = 0
	for name, c := range map[string]Config{"apart": apart, "best": methods()["best"]} {
		c.Eval.Every = 1
		s := tinySession(t, c)
		for i, log := range steps(t, s, 3) {
			for _, key := range []string{"e/loss", "m/loss"} {
				if v, ok := log[key]; !ok || !(v > 0) {
					t.Errorf("%s: update %d: %s is %v", name, i, key, v)
				}
			}
		}
		if st := s.loop.State(); st.Iteration != 3 || st.M != 3 {
			t.Errorf("%s: %d E-updates and %d M-updates in 3 iterations", name, st.Iteration, st.M)
		}
	}
}

// Latents of M-steps are moved as configured.
func TestMoves(t *testing.T) {
	c := tinyConfig(MethodGD)
	c.Moves.Count = 3
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	if m := c.Spec(tiny(2), nil, 1).MStep; m.Moves != 3 || m.Latents != em.Latents(em.Greedy{Probability: 1}) {
		t.Errorf("%d moves, latents %#v", m.Moves, m.Latents)
	}
}

// E-steps explore as configured; losses hardly tell, since untrained policies are nearly uniform anyway.
func TestExploration(t *testing.T) {
	c := methods()["mixed"]
	if w := c.Spec(tiny(2), nil, 1).Wake; w.Explore != (em.Explore{Beta: em.Constant(0.8), Epsilon: em.Constant(0.1)}) {
		t.Errorf("%+v", w.Explore)
	}
}

// The first losses are frozen: a change that moves them says why. Instruction sets round differently, hence the tolerance.
func TestGoldenLosses(t *testing.T) {
	for method, want := range map[string][]float64{
		MethodVQ:    {0.70718, 1.38366, 0.79887, 0.70505},
		MethodGFN:   {0.55749, 77.70290, 75.83667, 0.55484}, // M, E, E, M
		MethodGD:    {0.55748, 77.69687, 75.83569, 0.55484},
		MethodPrior: {1.66038, 97.87714, 96.51557, 1.69013},
		"mixed":     {0.55748, 80.35939, 77.68973, 0.55493},
		"compared":  {0.46745, 0.000616, 0.001156, 0.46479},
		"best":      {0.46678, 0.46757, 0.46440, 0.45726}, // M-updates, one with each E-update
		"all means": {0.47709, 0.46603, 0.46017, 0.45119},
		"chains":    {0.55751, 0.55655, 0.55384, 0.54947},
	} {
		c := methods()[method]
		c.Eval.Every = 1 // notes every update
		for i, log := range steps(t, tinySession(t, c), 4) {
			got := math.NaN()
			for _, key := range []string{"loss", "e/loss", "m/loss"} {
				if v, ok := log[key]; ok {
					got = v
				}
			}
			near(t, fmt.Sprintf("%s: loss %d", method, i), got, want[i], 1e-4*want[i]+2e-6) // the second for variances of large numbers
		}
	}
}

// Measured on validation images, a training leaves them out, and test images too.
func TestValidation(t *testing.T) {
	set := barSet()
	for _, own := range []bool{false, true} {
		if own {
			set.Valid = bars("valid", 7)
		}
		c := tinyConfig(MethodGD)
		c.Eval.On = onValidation
		s, err := newSession(open(t), c, set)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		train, valid := 44, set.Train.Slice(44, 52)
		if own {
			train, valid = 52, set.Valid
		}
		if s.train.Len() != train || !slices.Equal(s.test.Packed(), valid.Packed()) {
			t.Errorf("%d images to train on, %d to measure", s.train.Len(), s.test.Len())
		}
		r, err := s.Evaluate()
		if err != nil || r.(*Result).On != "validation" || r.(*Result).Images != valid.Len() {
			t.Errorf("%v: %+v", err, r)
		}
	}
}

func TestBadSessions(t *testing.T) {
	b := open(t)
	for name, c := range map[string]struct {
		change func(*Config, *mnist.Set)
		want   string
	}{
		"batch": {func(c *Config, _ *mnist.Set) { c.Batch = 53 }, "52 training images are fewer than a batch of 53"},
		"grid": {func(c *Config, _ *mnist.Set) { c.Model.Rows = 9 },
			"a grid of 9x2 codes does not fit an image of 8x8 pixels"},
		"no test": {func(_ *Config, s *mnist.Set) { s.Test = mnist.Images{} }, "no test images"},
	} {
		config, set := tinyConfig(MethodGD), barSet()
		c.change(&config, set)
		_, err := newSession(b, config, set)
		var input *badinput.Error
		if !errors.As(err, &input) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
}

// Every preset passes its own checks, with each method.
func TestPresets(t *testing.T) {
	for name, preset := range presets {
		for _, method := range Methods() {
			c := preset()
			c.Method = method
			if err := errors.Join(config.Check(&c), config.Resolve(&c)); err != nil {
				t.Errorf("%s, %s: %v", name, method, err)
			}
		}
	}
}

// A run that was made before there were all keys is read as it was made: with what is published.
func TestBefore(t *testing.T) {
	for method, norm := range map[string]string{MethodVQ: normBatch, MethodGD: normNone} {
		old := QuickConfig()
		old.Method = method
		text, err := config.Encode(&old)
		if err != nil {
			t.Fatal(err)
		}
		var lines []string
		for line := range strings.Lines(text) {
			key, _, _ := strings.Cut(line, " = ")
			if !slices.Contains([]string{
				"norm", "code_width", "bias", "network", "width", "layers", "order", "memory", "steps", "persist", "smooth", "clip", "on",
				"pixels", "data_seed",
			}, strings.TrimSpace(key)) {
				lines = append(lines, line)
			}
		}
		path := filepath.Join(t.TempDir(), "run.toml")
		if err := os.WriteFile(path, []byte(strings.Join(lines, "")), 0o666); err != nil {
			t.Fatal(err)
		}
		c := run.Before(Task{}).(*Config)
		if err := config.Resolve(c, config.File(path)); err != nil {
			t.Fatal(err)
		}
		want := PaperConfig()
		if c.size(mnist.Size{}).Norm != norm || c.Model.CodeWidth != 1 || c.Model.Bias || c.Policy.Network != want.Policy.Network ||
			c.Policy.Order != want.Policy.Order || c.Moves != want.Moves || c.Wake.Memory != 0 || c.Optim.Smooth ||
			c.Pixels != want.Pixels || c.Eval.On != onTest || c.Batch != old.Batch {
			t.Errorf("%s: %+v", method, c)
		}
	}
}

// The configuration of a run is one of another method, too: with the decoder that is published for that one, unless
// somebody has asked for another.
func TestNormOfOtherMethod(t *testing.T) {
	for asked, want := range map[string]string{normMethod: normBatch, normNone: normNone} {
		gfn := PaperConfig()
		if err := config.Resolve(&gfn, config.Set{"method=gfn", "model.norm=" + asked}); err != nil {
			t.Fatal(err)
		}
		text, err := config.Encode(&gfn)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "run.toml")
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		var vq Config
		if err := config.Resolve(&vq, config.File(path), config.Set{"method=vq"}); err != nil {
			t.Fatal(err)
		}
		images := mnist.Size{Height: 28, Width: 28}
		if was, got := gfn.size(images).Norm, vq.size(images).Norm; was != normNone || got != want {
			t.Errorf("norm = %s: %s, then %s, want %s", asked, was, got, want)
		}
	}
}

func TestBadConfig(t *testing.T) {
	for want, set := range map[string]config.Set{
		`method = "vqvae" is not one of vq gfn gfn-gd gfn-gd-prior`:   {"method=vqvae"},
		"model.codes = 1 is not between 2 and 256":                    {"model.codes=1"},
		`which needs policy.log_z = "image" or "none"`:                {"wake.epsilon=0.1"},
		"wake.beta = 0.5 explore":                                     {"wake.beta=0.5"},
		"wake.memory = 2 learns off the policy":                       {"wake.memory=2"},
		"moves.persist = true lets moves go on":                       {"moves.persist=true"},
		`mstep.latents = "weighted" weighs the latents`:               {"mstep.latents=weighted"},
		"policy.width = 6 is no multiple of 4":                        {"policy.network=attention", "policy.width=6"},
		"policy.floor is of the published network":                    {"policy.network=attention", "policy.floor=1e-9"},
		"model.bias = true adds nothing":                              {"model.norm=batch", "model.bias=true"},
		`model.norm = "layer" is not one of`:                          {"model.norm=layer"},
		"optim.drop_on = 4 is after the last of 3 epochs":             {"epochs=3", "optim.drop_on=4"},
		"mstep.greedy_probability = 2 is not between":                 {"mstep.greedy_probability=2"},
		`policy.log_z = "both" is not one of`:                         {"policy.log_z=both"},
		"policy.floor = NaN is not between":                           {"policy.floor=nan"},
		`key "k" is now "model.codes"`:                                {"k=8"},
		`key "moves" is now "moves.count"`:                            {"moves=8"},
		`key "best_of_wake" is now "mstep.latents" ("best" for true)`: {"best_of_wake=true"},
		`key "vq_reduced_lr" is now "optim.theta.drop" (a factor of`:  {"vq_reduced_lr=5e-5"},
	} {
		c := PaperConfig()
		if err := config.Resolve(&c, set); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	for _, change := range []func(*Config){
		func(c *Config) { c.Gate.Turn = 20 }, func(c *Config) { c.Moves.Count = 1 },
		func(c *Config) { c.MStep.GreedyProbability = 0.5 }, func(c *Config) { c.Wake.Samples, c.Policy.LogZ = 1, logZImage },
	} {
		c := methods()["best"]
		if err := c.Validate(); err != nil {
			t.Fatal(err)
		}
		change(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), `mstep.latents = "best" takes`) {
			t.Errorf("%+v: error %v", c, err)
		}
	}
	c := PaperConfig()
	c.Wake.Epsilon, c.Wake.Beta, c.Policy.LogZ, c.Data = 0.1, 0.5, logZImage, "some/folder"
	if err := c.Validate(); err != nil || !filepath.IsAbs(c.Data) || c.Epochs != 500 || c.Optim.DropOn != 400 {
		t.Errorf("%v: %+v", err, c)
	}
	c.Epochs, c.Optim.DropOn = 7, 0
	if err := c.Validate(); err != nil || c.Epochs != 7 || c.Optim.DropOn != 0 {
		t.Errorf("%v: %+v", err, c)
	}
}

// A run's folder has a report with all figures, and its model can be loaded without the data.
// A state knows the size of its images, whose sides differ here.
func TestLoadedSize(t *testing.T) {
	size := mnist.Size{Height: 6, Width: 10}
	images := mnist.NewImages(size, make([]byte, 8*60))
	c := tinyConfig(MethodVQ)
	s, err := newSession(open(t), c, &mnist.Set{Name: "blank", Size: size, Train: images, Test: images})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	steps(t, s, 1)
	codec, err := c.codec(s.backend, stateOf(t, s))
	if err != nil {
		t.Fatal(err)
	}
	defer codec.Close()
	if codec.Height != size.Height || codec.Width != size.Width {
		t.Errorf("images of %dx%d, want %dx%d", codec.Height, codec.Width, size.Height, size.Width)
	}
}

func TestReportAndLoad(t *testing.T) {
	for name, c := range methods() {
		if name == MethodGFN || name == MethodGD || name == "compared" || name == "best" || name == "chains" {
			continue // others do what they do
		}
		if name == "mixed" {
			c.Eval.On = onValidation
		}
		if err := c.Validate(); err != nil {
			t.Fatal(err)
		}
		s := tinySession(t, c)
		text, err := config.Encode(&c)
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		r, err := run.Create(dir, run.Options{Task: "vae", Config: text, Data: s.Data()})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Drive(t.Context(), s, 0, nil); err != nil {
			t.Fatal(err)
		}
		result, err := s.Evaluate()
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Report(r, r.Dir(), result); err != nil {
			t.Fatal(err)
		}
		for _, file := range []string{"report.html", "encoding.png", "reconstructions.png", "samples.svg", "usage.png", "bound.png"} {
			if info, err := os.Stat(filepath.Join(dir, file)); err != nil || info.Size() == 0 {
				t.Errorf("%s: %s: %v", name, file, err)
			}
		}
		page, err := os.ReadFile(filepath.Join(dir, "report.html"))
		if err != nil {
			t.Fatal(err)
		}
		other := map[string]string{onTest: onValidation, onValidation: onTest}[c.Eval.On]
		if !strings.Contains(string(page), "on at most 256 "+c.Eval.On+" images") || strings.Contains(string(page), other+" images") {
			t.Errorf("%s, measured on %s: the report speaks of %s images, or not of what its curve is of", name, c.Eval.On, other)
		}
		codec, warnings, err := Load(s.backend, r)
		if err != nil || len(warnings) > 0 {
			t.Fatal(warnings, err)
		}
		defer codec.Close()
		want, err := s.codec.Encode(s.test, true, 1)
		if err != nil {
			t.Fatal(err)
		}
		got, err := codec.Encode(s.test, true, 1)
		if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: a loaded model encodes otherwise: %v", name, err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}
