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

// workloads prepare a step on a backend.
var workloads = map[string]func(compute.Backend) (step func() error, err error){
	"mixture":             mixtureStep,
	"mlp":                 mlpStep,
	"transformer":         transformerStep,
	"transformer-forward": transformerForward,
	"vae-e":               vaeE,
	"vae-m":               vaeM,
}

// Workloads lists the names that Run knows.
func Workloads() []string { return slices.Sorted(maps.Keys(workloads)) }

// Names lists all that can be measured.
func Names() []string { return append(Workloads(), "hypergrid") }

// Run measures a workload: a few steps to warm up, then steps for about the given time, at least five.
func Run(b compute.Backend, name string, about time.Duration) (Measurement, error) {
	prepare, ok := workloads[name]
	if !ok {
		return Measurement{}, fmt.Errorf("unknown workload %q", name)
	}
	step, err := prepare(b)
	if err != nil {
		return Measurement{}, fmt.Errorf("workload %s: %w", name, err)
	}
	return measure(name, step, about)
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
