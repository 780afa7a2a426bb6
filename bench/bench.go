// Package bench measures speed. A workload is one training step of a kind that matters; what is reported is its median
// time, to be compared as a ratio with another implementation measured on the same idle machine.
package bench

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"time"

	"github.com/gomlx/compute"
)

// Measurement is the time of one workload.
type Measurement struct {
	Workload string  `json:"workload"`
	MedianMS float64 `json:"median_ms"`
	MinMS    float64 `json:"min_ms"`
	Reps     int     `json:"reps"`
	Threads  int     `json:"threads"`
}

// Options are what workloads can be told.
type Options struct {
	For    time.Duration // how long steps are repeated, about
	Inside InsideSize
}

// workload prepares a step on a backend.
type workload func(b compute.Backend, o Options) (step func() error, err error)

var workloads = map[string]workload{
	"inside":              func(b compute.Backend, o Options) (func() error, error) { return insideStep(b, o.Inside, false) },
	"inside-grad":         func(b compute.Backend, o Options) (func() error, error) { return insideStep(b, o.Inside, true) },
	"mixture":             fixed(mixtureStep),
	"mlp":                 fixed(mlpStep),
	"transformer":         fixed(transformerStep),
	"transformer-forward": fixed(transformerForward),
	"vae-e":               fixed(vaeE),
	"vae-m":               fixed(vaeM),
}

// fixed is a workload without options.
func fixed(f func(compute.Backend) (func() error, error)) workload {
	return func(b compute.Backend, _ Options) (func() error, error) { return f(b) }
}

// Workloads lists the names that Run knows.
func Workloads() []string { return slices.Sorted(maps.Keys(workloads)) }

// Names lists all that can be measured.
func Names() []string { return append(Workloads(), "hypergrid", "grammar", "grammar-scaling", "vae") }

// Run measures a workload: a few steps to warm up, then steps for about the time that the options say, at least five.
func Run(b compute.Backend, name string, o Options) (Measurement, error) {
	step, err := prepare(b, name, o)
	if err != nil {
		return Measurement{}, err
	}
	return measure(name, step, o.For)
}

// prepare returns the step of a workload.
func prepare(b compute.Backend, name string, o Options) (func() error, error) {
	w, ok := workloads[name]
	if !ok {
		return nil, fmt.Errorf("unknown workload %q", name)
	}
	step, err := w(b, o)
	if err != nil {
		return nil, fmt.Errorf("workload %s: %w", name, err)
	}
	return step, nil
}

// once is a measurement of something that ran once.
func once(name string, seconds float64) Measurement {
	return Measurement{Workload: name, MedianMS: 1e3 * seconds, MinMS: 1e3 * seconds, Reps: 1, Threads: runtime.GOMAXPROCS(0)}
}

func measure(name string, step func() error, about time.Duration) (Measurement, error) {
	var times []time.Duration
	const warmup, least = 3, 5
	for begin := time.Now(); len(times) < warmup+least || time.Since(begin) < about; {
		t0 := time.Now()
		if err := step(); err != nil {
			return Measurement{}, fmt.Errorf("workload %s: %w", name, err)
		}
		times = append(times, time.Since(t0))
	}
	times = times[warmup:]
	slices.Sort(times)
	ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	return Measurement{
		Workload: name, MedianMS: ms(times[len(times)/2]), MinMS: ms(times[0]),
		Reps: len(times), Threads: runtime.GOMAXPROCS(0),
	}, nil
}
