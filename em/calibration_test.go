package em

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/internal/testkit"
	"github.com/gfnem/gfnem/rng"
)

// present is the number of causes.
var present = Statistic{"causes", func(_ *model.Scope, _ gfn.Batch, z gfn.State) *Node {
	return ReduceSum(ConvertDType(z[0], dtypes.Float64), 1)
}}

// Calibration accepts the exact posterior, and rejects one that is factorised. That has the right marginals, so that entries
// of z tell nothing, but what causes have to do with each other does. False alarms: 5e-5 of the exact one, 1e-6 of each of 8
// entries.
func TestCalibrate(t *testing.T) {
	for _, factorised := range []bool{false, true} {
		c, err := newIdeal(t, factorised).Calibrate(Calibrate{Statistics: []Statistic{present}, Alarm: 5e-5})
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		if err := c.Print(&text); err != nil {
			t.Fatal(err)
		}
		t.Log(text.String())
		if c.OK() == factorised || strings.Contains(text.String(), "is not that of the model") != factorised {
			t.Errorf("factorised %v: p = %g", factorised, c.P())
		}
		for _, r := range c.Ranks {
			total := 0
			for _, n := range r.Counts {
				total += n
			}
			if total != 1000 || len(r.Counts) != 16 {
				t.Errorf("%s has %d ranks in %d bins", r.Name, total, len(r.Counts))
			}
			if strings.HasPrefix(r.Name, "z[") && r.P < 1e-6 {
				t.Errorf("factorised %v: the marginal of %s is right, and p = %g", factorised, r.Name, r.P)
			}
		}
		dir := t.TempDir()
		if err := c.Picture().Save(dir, "calibration"); err != nil {
			t.Error(err)
		}
	}
}

// A posterior that calls every cause a bit too probable is seen in the entries of z; in the first one most, since the last
// ones are explained away.
func TestCalibrateEntries(t *testing.T) {
	p := newIdeal(t, false)
	p.g.Policy = tilted{p.g.Policy.(ideal)}
	c, err := p.Calibrate(Calibrate{Pairs: 3000})
	if err != nil {
		t.Fatal(err)
	}
	if first := c.Ranks[1]; c.OK() || first.Name != "z[0]" || first.P*float64(len(c.Ranks)) > c.Alarm || !(first.Mean < 0.48) {
		t.Errorf("%+v", first)
	}
}

type tilted struct{ ideal }

func (p tilted) Heads(phi *model.Scope, u gfn.Batch, s gfn.State, k int) gfn.Heads {
	h := p.ideal.Heads(phi, u, s, k)
	h.Forward = Add(h.Forward, ConvertDType(Iota(h.Forward.Graph(), h.Forward.Shape(), 1), dtypes.Float64)) // odds times e
	return h
}

// The p of uneven is right for any number of ranks: among uniform counts it is below 0.01 at most that often. Of 2,000, more
// than 42 are below with a probability of 5e-6, if 20 are expected.
func TestUneven(t *testing.T) {
	r := rng.New(testkit.Seed(t), "uneven")
	for _, total := range []int{30, 1000} {
		below := 0
		for range 2000 {
			counts := make([]int, 8)
			for range total {
				counts[r.IntN(8)]++
			}
			if uneven(counts) < 0.01 {
				below++
			}
		}
		t.Logf("%d of 2000 below 0.01, of %d ranks", below, total)
		if below > 42 {
			t.Errorf("%d of 2000 uniform counts of %d are below 0.01", below, total)
		}
	}
	even := make([]int, 16)
	for i := range even {
		even[i] = 60
	}
	if p := uneven(even); p != 1 {
		t.Errorf("p of even counts is %g", p)
	}
	for name, counts := range map[string][]int{
		"one bar": {160, 60, 60, 60, 60, 60, 60, 60}, "a slope": {90, 84, 76, 68, 60, 52, 44, 36},
		"both ends": {110, 70, 50, 40, 40, 50, 70, 110}, "the middle": {20, 50, 80, 90, 90, 80, 50, 20},
	} {
		if p := uneven(counts); !(p < 1e-4) {
			t.Errorf("%s: p is %g", name, p)
		}
	}
	// Against sums of binomial probabilities.
	for _, k := range []int{0, 3, 10, 17, 20} {
		less, more := 0.0, 0.0
		for i := range 21 {
			a, _ := math.Lgamma(21)
			b, _ := math.Lgamma(float64(i) + 1)
			c, _ := math.Lgamma(float64(20-i) + 1)
			v := math.Exp(a - b - c + float64(i)*math.Log(0.3) + float64(20-i)*math.Log(0.7))
			if i <= k {
				less += v
			}
			if i >= k {
				more += v
			}
		}
		if d := math.Abs(atMost(k, 20, 0.3)-less) + math.Abs(atLeast(k, 20, 0.3)-more); !(d < 1e-12) {
			t.Errorf("tails of %d of 20 are off by %g", k, d)
		}
	}
	low, high := band(1000, 16, 1e-4)
	for n, inside := range map[float64]bool{low: true, high: true, low - 1: false, high + 1: false} {
		if p := tail(int(n), 1000, 1.0/16) * float64(intervals(16)); (p >= 1e-4) != inside {
			t.Errorf("a bar of %g has p = %g; the band is %g to %g", n, p, low, high)
		}
	}
}

func TestCalibrateChecks(t *testing.T) {
	p := newIdeal(t, false)
	for want, c := range map[string]Calibrate{
		"62 samples have 63 ranks, which 16 bins": {Samples: 62},
		"-1 pairs":                {Pairs: -1},
		"false alarms of 1":       {Alarm: 1},
		`statistic "a" lacks`:     {Statistics: []Statistic{{Name: "a"}}},
		"Statistic b is (Float64": {Statistics: []Statistic{{"b", func(_ *model.Scope, x gfn.Batch, _ gfn.State) *Node { return x[0] }}}},
		"undefined is not a number": {Statistics: []Statistic{{"undefined", func(theta *model.Scope, x gfn.Batch, z gfn.State) *Node {
			return Log(AddScalar(Neg(present.Of(theta, x, z)), 1))
		}}}},
	} {
		if _, err := p.Calibrate(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	a, err := p.Calibrate(Calibrate{Pairs: 50})
	if err != nil {
		t.Fatal(err)
	}
	b, err := p.Calibrate(Calibrate{Pairs: 50})
	if err != nil {
		t.Fatal(err)
	}
	var first, second bytes.Buffer
	a.Print(&first)
	b.Print(&second)
	if first.String() != second.String() {
		t.Error("two equal calls differ")
	}
}
