package em

import (
	"math"
	"testing"
)

func TestLinear(t *testing.T) {
	for _, c := range []struct {
		l    Linear
		step uint64
		want float64
	}{
		{Linear{From: 6, To: 3, Over: 10_000}, 0, 6},
		{Linear{From: 6, To: 3, Over: 10_000}, 1, 5.9997},
		{Linear{From: 6, To: 3, Over: 10_000}, 5000, 4.5},
		{Linear{From: 6, To: 3, Over: 10_000}, 9999, 3.0003},
		{Linear{From: 6, To: 3, Over: 10_000}, 10_000, 3},
		{Linear{From: 6, To: 3, Over: 10_000}, math.MaxUint64, 3},
		{Linear{From: -1, To: 1, Over: 2}, 1, 0},
		{Linear{From: 5, To: 7}, 0, 7},
		{Linear{}, 3, 0},
		{Constant(0.25), 0, 0.25},
		{Constant(0.25), math.MaxUint64, 0.25},
	} {
		if got := c.l.At(c.step); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%+v at %d is %g, want %g", c.l, c.step, got, c.want)
		}
	}
}
