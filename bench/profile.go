package bench

import (
	"fmt"
	"time"

	"github.com/gomlx/compute"

	"github.com/gfnem/gfnem/engine"
)

// Profile measures a workload on the simd backend, and what its steps cost, the most expensive first. Figures of a step
// are per run of the workload.
func Profile(b compute.Backend, name string, o Options) (Measurement, []engine.Cost, error) {
	step, err := prepare(b, name, o)
	if err != nil {
		return Measurement{}, nil, err
	}
	if err := step(); err != nil { // compiles, and runs what is done once
		return Measurement{}, nil, fmt.Errorf("workload %s: %w", name, err)
	}
	p, err := engine.Profile(b)
	if err != nil {
		return Measurement{}, nil, err
	}
	runs := 0
	counted := func() error {
		runs++
		return step()
	}
	m, err := measure(name, counted, o.For)
	if err != nil {
		return Measurement{}, nil, err
	}
	costs := p.Costs()
	for i := range costs {
		c := &costs[i]
		c.Time /= time.Duration(runs)
		c.Flops /= float64(runs)
		c.Bytes /= float64(runs)
	}
	return m, costs, nil
}
