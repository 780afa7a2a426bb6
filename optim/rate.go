package optim

// Rate is a learning rate over time: a linear warm-up, then a constant with drops.
type Rate struct {
	// Base is the rate after warm-up.
	Base float64
	// Warmup is the number of updates over which the rate rises from 0; update 0 then has rate 0.
	Warmup uint64
	// Drops multiply the rate from their step on.
	Drops []Drop
}

// Drop multiplies a rate by Factor from Step on.
type Drop struct {
	Step   uint64
	Factor float64
}

// At returns the rate of update number step, counted from 0.
func (r Rate) At(step uint64) float64 {
	rate := r.Base
	if step < r.Warmup {
		rate *= float64(step) / float64(r.Warmup)
	}
	for _, d := range r.Drops {
		if step >= d.Step {
			rate *= d.Factor
		}
	}
	return rate
}
