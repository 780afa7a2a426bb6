package main

import (
	"slices"
	"testing"

	"github.com/gfnem/gfnem/backend"
	"github.com/gfnem/gfnem/gfn"
)

// With anything that is kept, q comes nearer to the posteriors.
func TestKept(t *testing.T) {
	b, err := backend.Open("")
	if err != nil {
		t.Fatal(err)
	}
	d := newKeptData(b, 1, 10)
	for _, s := range []setting{
		{objective: gfn.TB{}, samples: 2, replay: true, memory: true},
		{objective: gfn.VarGrad{}, samples: 2, sleep: 1, memory: true},
	} {
		c := d.learn(b, s, 300, 100)
		if first, last := c.tv[0], c.tv[len(c.tv)-1]; !(last < 0.8*first) {
			t.Errorf("%+v: total variations %v", s, c.tv)
		}
	}
}

func TestReached(t *testing.T) {
	c := curve{20, []float64{0.4, 0.1, 0.2, 0.05}}
	for tv, want := range map[float64]int{0.3: 40, 0.1: 40, 0.05: 80, 0.01: 0} {
		if got := c.reaches(tv); got != want {
			t.Errorf("reaches %g after %d updates, want %d", tv, got, want)
		}
	}
	other := curve{20, []float64{0.4, 0.2, 0.2, 0.2}}
	short := curve{20, []float64{0.4, 0}}
	if got := mean("both", []curve{c, short}); !slices.Equal(got.X, []float64{20, 40}) || !slices.Equal(got.Y, []float64{0.4, 0.05}) {
		t.Errorf("the mean is %+v", got)
	}
	for tv, want := range map[float64]string{0.4: "20 ± 0", 0.1: "40, +1", 0.01: "–"} {
		if got := whenReached([]curve{c, other}, tv).String(); got != want {
			t.Errorf("%g: %q, want %q", tv, got, want)
		}
	}
}
