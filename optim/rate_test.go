package optim

import (
	"math"
	"slices"
	"testing"
)

func TestRate(t *testing.T) {
	r := Rate{Base: 2, Warmup: 4, Drops: []Drop{{Step: 6, Factor: 0.5}, {Step: 8, Factor: 0.1}}}
	want := []float64{0, 0.5, 1, 1.5, 2, 2, 1, 1, 0.1, 0.1}
	for step, w := range want {
		if got := r.At(uint64(step)); !(math.Abs(got-w) <= 1e-15) {
			t.Errorf("rate of update %d is %g, want %g", step, got, w)
		}
	}
	if got := (Rate{Base: 3}).At(0); got != 3 {
		t.Errorf("without warm-up the rate of update 0 is %g, want 3", got)
	}
	if got := (Rate{Base: 3}).At(math.MaxUint64); got != 3 {
		t.Errorf("the rate of the last update is %g, want 3", got)
	}
	if got := (Rate{Base: 1, Warmup: 4, Drops: []Drop{{Step: 1, Factor: 0.5}}}).At(2); got != 0.25 {
		t.Errorf("a drop during warm-up gives %g, want 0.25", got)
	}
}

func TestRates(t *testing.T) {
	o := Optimizer{Groups: []Group{{Rate: Rate{Base: 0.1}}, {Rate: Rate{Base: 8, Warmup: 2}}, {}}}
	for step, want := range [][]float32{{0.1, 0, 0}, {0.1, 4, 0}, {0.1, 8, 0}} {
		if got := o.Rates(uint64(step)); !slices.Equal(got, want) {
			t.Errorf("rates of update %d are %v, want %v", step, got, want)
		}
	}
}

func TestFall(t *testing.T) {
	r := Rate{Base: 2, Fall: Fall{From: 10, To: 30, End: 0.01}}
	for step, want := range map[uint64]float64{0: 2, 10: 2, 20: 0.2, 30: 0.02, 1000: 0.02} {
		if got := r.At(step); !(math.Abs(got-want) <= 1e-12) {
			t.Errorf("rate %g at %d, want %g", got, step, want)
		}
	}
	if got := (Rate{Base: 2}).At(5); got != 2 {
		t.Errorf("without a fall the rate is %g", got)
	}
}

func TestPower(t *testing.T) {
	r := Rate{Of: Power(0.5, 3)}
	for step, want := range map[uint64]float64{0: 0.5, 5: 1. / 3, 96: 0.1} {
		if got := r.At(step); !(math.Abs(got-want) <= 1e-15) {
			t.Errorf("rate %g at %d, want %g", got, step, want)
		}
	}
	if got := Power(0.6, 0)(0); got != 1 {
		t.Errorf("without an offset the first rate is %g", got)
	}
}
