// Package bench measures speed. What is reported of a workload is its median time, to be compared as a ratio with
// another implementation measured on the same idle machine.
package bench

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/gomlx/compute"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/config"
	"github.com/gfnem/gfnem/engine"
	"github.com/gfnem/gfnem/internal/crash"
	"github.com/gfnem/gfnem/report"
	"github.com/gfnem/gfnem/vae"
)

// Entry is a workload: a step, or a series of measurements.
type Entry struct {
	Name, Help string
	step       repeated
	series     series
	Draw       func(all []Result) report.Figure // nil if results make no figure
}

// series measures several things, and calls each with every result as soon as it is there. The name of a result need
// only tell it from others of the workload.
type series func(b compute.Backend, o Options, each func(Result) error) error

// Workloads are all that can be measured.
var Workloads = []Entry{
	{"inside", "log p(x) under a PCFG, each sentence with its own rules", insideStep(false), nil, nil},
	{"inside-grad", "the same with the gradient to all potentials", insideStep(true), nil, nil},
	{"mixture", "E-update of the mixture, 4000 points", mixtureStep, nil, nil},
	{"mlp", "update of a 2-128-128-16 classifier, 1024 points", mlpStep, nil, nil},
	{"transformer", "update of 2 layers of width 512, 32 sentences of 20 words", transformerStep, nil, nil},
	{"transformer-forward", "the same network without gradients", transformerForward, nil, nil},
	{"vae-e", "encoder update of a discrete VAE, 128 images", vaeUpdate(vae.MethodGFN, eAlone), nil, nil},
	{"vae-m", "its decoder update", vaeM, nil, nil},
	{"hypergrid", "updates until an objective has learned the 8x8 hypergrid", nil, hypergrid, nil},
	{"grammar", "iterations of GFlowNet-EM for grammars, and the programs in them", nil, iterations, nil},
	{"grammar-scaling", "trees by a GFlowNet and exact inference, by words and symbols", nil, scaling, drawScaling},
	{"vae", "updates of discrete VAEs and their likelihood, at the paper's size", nil, vaeUpdates, nil},
}

// Options are what workloads can be told; their tags declare them for the command line.
type Options struct {
	For          time.Duration `help:"How long to repeat a step." default:"5s"`
	Profile      bool          `help:"Print what each operation, or group of fused ones, costs (backend simd)."`
	Nonterminals int           `name:"nt" help:"Nonterminals of inside." default:"30" of:"inside inside-grad"`
	Preterminals int           `name:"pt" help:"Preterminals of inside." default:"60" of:"inside inside-grad"`
	Words        int           `name:"n" help:"Words of a sentence of inside." default:"20" of:"inside inside-grad"`
	Sentences    int           `name:"batch" help:"Sentences of inside and grammar-scaling." default:"32" of:"inside inside-grad grammar-scaling"`
	Seed         uint64        `help:"Seed of hypergrid." of:"hypergrid"`
	Preset       string        `help:"Configuration of grammar: paper or quick." default:"paper" of:"grammar"`
	Set          config.Set    `help:"Change a key of grammar's configuration; may be repeated." placeholder:"KEY=VALUE" of:"grammar"`
	Vocabulary   int           `name:"words" help:"Vocabulary of grammar." default:"9672" of:"grammar"`
}

// unread says which option was given that none of the workloads reads.
func (o Options) unread(names []string) error {
	for f, v := range reflect.ValueOf(o).Fields() {
		readers := strings.Fields(f.Tag.Get("of"))
		usual := fmt.Sprint(v.Interface()) == f.Tag.Get("default") || v.IsZero() && f.Tag.Get("default") == ""
		read := slices.ContainsFunc(names, func(n string) bool { return slices.Contains(readers, n) })
		if len(readers) == 0 || usual || read {
			continue
		}
		flag := cmp.Or(f.Tag.Get("name"), strings.ToLower(f.Name))
		return badinput.Errorf("--%s is an option of %s, not of %s", flag, strings.Join(readers, ", "), strings.Join(names, ", "))
	}
	return nil
}

// Check says what is wrong with options for a workload.
func (e Entry) Check(o Options) error {
	if o.Profile && e.step == nil {
		return badinput.Errorf("--profile shows the steps of a workload, and %s is none", e.Name)
	}
	for _, f := range []struct {
		flag              string
		value, from, most int
	}{
		{"nt", o.Nonterminals, 1, 1 << 20}, {"pt", o.Preterminals, 1, 1 << 20}, {"n", o.Words, 2, 1000},
		{"batch", o.Sentences, 1, 1 << 30}, {"words", o.Vocabulary, 1, 10_000_000},
	} {
		if f.value < f.from || f.value > f.most {
			return badinput.Errorf("--%s %d is not between %d and %d", f.flag, f.value, f.from, f.most)
		}
	}
	if o.For < 0 {
		return badinput.Errorf("--for %s: a duration cannot be negative", o.For)
	}
	if o.Seed > math.MaxInt64 {
		return badinput.Errorf("--seed %d is too large: at most %d", o.Seed, math.MaxInt64)
	}
	return nil
}

// Sizes lists the flags that the memory of a workload grows with, the steepest first.
func (e Entry) Sizes() []string {
	switch e.Name {
	case "inside", "inside-grad":
		return []string{"--nt", "--pt", "--n", "--batch"}
	case "grammar":
		return []string{"--set model.nonterminals", "--set policy.width", "--set batch", "--words"}
	case "grammar-scaling":
		return []string{"--batch"}
	}
	return nil
}

// Run measures, and calls each with every result as soon as it is there. Results have the name of the entry before
// their own.
func (e Entry) Run(b compute.Backend, o Options, each func(Result) error) (err error) {
	defer crash.Recover(&err)
	measure := e.series
	if e.step != nil {
		measure = e.step.measure
	}
	err = measure(b, o, func(r Result) error {
		r.Workload = strings.TrimSpace(e.Name + " " + r.Workload)
		return each(r)
	})
	if err != nil && !errors.As(err, new(*badinput.Error)) {
		err = fmt.Errorf("workload %s: %w", e.Name, err)
	}
	return err
}

// Result is one measurement.
type Result struct {
	Workload string  `json:"workload"`
	MedianMS float64 `json:"median_ms"`
	MinMS    float64 `json:"min_ms"`
	Reps     int     `json:"reps"`
	Threads  int     `json:"threads"`
	// FirstS is how long the repetitions before took, in which programs are compiled.
	FirstS float64 `json:"first_s,omitempty"`
	// Values are other numbers: sizes, and what came out.
	Values map[string]float64 `json:"values,omitempty"`
	// PartsMS are the medians of programs in repetitions of their own, in which each is waited for.
	PartsMS map[string]float64 `json:"parts_ms,omitempty"`
	// Costs are those of a repetition's steps, if they are asked for, the most expensive first.
	Costs []engine.Cost `json:"-"`
}

// summary is the result of some times.
func summary(times []time.Duration) Result {
	ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	times = slices.Sorted(slices.Values(times))
	return Result{MedianMS: ms(times[len(times)/2]), MinMS: ms(times[0]), Reps: len(times), Threads: runtime.GOMAXPROCS(0)}
}

// pace is how many repetitions there are before those that are measured, and how many of these at least.
type pace struct{ warmup, least int }

// ofSteps is the pace of steps that are always the same.
var ofSteps = pace{3, 5}

// measure repeats a step, which says what it took, for about some time.
func (p pace) measure(about time.Duration, step func() (time.Duration, error)) (Result, error) {
	begin := time.Now()
	for range p.warmup {
		if _, err := step(); err != nil {
			return Result{}, err
		}
	}
	first := time.Since(begin)
	var times []time.Duration
	for begin = time.Now(); len(times) < p.least || time.Since(begin) < about; {
		took, err := step()
		if err != nil {
			return Result{}, err
		}
		times = append(times, took)
	}
	r := summary(times)
	r.FirstS = first.Seconds()
	return r, nil
}

// repeated is a workload of one step, which it prepares.
type repeated func(b compute.Backend, o Options) (prepared, error)

// prepared is a step, and what releases all that it holds.
type prepared struct {
	step    func() error
	release func()
}

// learning is the step of a learner or a session, if there is one.
func learning[T any](l interface {
	Step() (T, error)
	Close()
}, err error) (prepared, error) {
	if err != nil {
		return prepared{}, err
	}
	return prepared{func() error {
		_, err := l.Step()
		return err
	}, l.Close}, nil
}

// measure is the only result.
func (w repeated) measure(b compute.Backend, o Options, each func(Result) error) error {
	p, err := w(b, o)
	if err != nil {
		return err
	}
	defer p.release()
	var profiler *engine.Profiler
	if o.Profile {
		if err := p.step(); err != nil { // compiles, and runs what is done once
			return err
		}
		if profiler, err = engine.Profile(b); err != nil {
			return badinput.Errorf("%w", err)
		}
	}
	r, err := ofSteps.measure(o.For, func() (time.Duration, error) {
		begin := time.Now()
		err := p.step()
		return time.Since(begin), err
	})
	if err != nil {
		return err
	}
	if profiler != nil {
		r.Costs = profiler.Costs()
		runs := r.Reps + ofSteps.warmup
		for i := range r.Costs {
			c := &r.Costs[i]
			c.Time /= time.Duration(runs)
			c.Flops /= float64(runs)
			c.Bytes /= float64(runs)
		}
	}
	return each(r)
}

// variants are steps that are measured one after the other.
type variants []variant

type variant struct {
	name   string
	values map[string]float64 // of its result
	step   repeated
}

// measure is a series.
func (all variants) measure(b compute.Backend, o Options, each func(Result) error) error {
	for _, v := range all {
		if err := v.step.measure(b, o, func(r Result) error {
			r.Workload, r.Values = v.name, v.values
			return each(r)
		}); err != nil {
			return fmt.Errorf("%s: %w", v.name, err)
		}
	}
	return nil
}
