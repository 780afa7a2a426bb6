package optim

import "math"

// Rate is a learning rate over time: a linear warm-up, then a constant with drops or a smooth fall; or any function.
type Rate struct {
	// Base is the rate after warm-up. Without one an update cannot be built, unless MayBeZero says that 0 is meant.
	Base      float64
	MayBeZero bool
	// Warmup is the number of updates over which the rate rises from 0; update 0 then has rate 0.
	Warmup uint64
	// Drops multiply the rate from their step on.
	Drops []Drop
	// Fall lowers the rate gradually.
	Fall Fall
	// Of, if not nil, is the rate, and all else is zero.
	Of RateFunc
}

// RateFunc is a rate as a function of the number of the update, from 0, and of nothing else, so that resuming needs only
// counters. Its values are finite and not negative. Rate.At is one.
type RateFunc func(step uint64) float64

// Power is (step + 1 + offset)^-exponent. For averages over noise, exponents from above 0.5 to 1 make it vanish (Robbins
// and Monro, 1951).
func Power(exponent, offset float64) RateFunc {
	return func(step uint64) float64 { return math.Pow(float64(step)+1+offset, -exponent) }
}

// Fall multiplies a rate by a factor that goes from 1 at update From to End at update To, exponentially, and stays there. The
// zero value changes nothing.
type Fall struct {
	From, To uint64
	End      float64
}

func (f Fall) at(step uint64) float64 {
	if f.To <= f.From || step <= f.From {
		return 1
	}
	return math.Pow(f.End, float64(min(step, f.To)-f.From)/float64(f.To-f.From))
}

// Drop multiplies a rate by Factor from Step on.
type Drop struct {
	Step   uint64
	Factor float64
}

// At returns the rate of update number step, counted from 0.
func (r Rate) At(step uint64) float64 {
	if r.Of != nil {
		return r.Of(step)
	}
	rate := r.Base
	if step < r.Warmup {
		rate *= float64(step) / float64(r.Warmup)
	}
	for _, d := range r.Drops {
		if step >= d.Step {
			rate *= d.Factor
		}
	}
	return rate * r.Fall.at(step)
}
