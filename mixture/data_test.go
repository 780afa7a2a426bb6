package mixture

import (
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/gfnem/gfnem/rng"
)

// falseAlarm is how often, over seeds, a statistical test of this package may fail on right code. Seeds are fixed: a
// failure always means that the numbers drawn have changed.
const falseAlarm = 1e-4

// Pairs are uniform and the residuals x - mu_i - o_j standard normal times sigma, by chi-square statistics.
func TestSample(t *testing.T) {
	const n = 40000
	p := Problem{}
	d := p.Sample(n, rng.New(1, "test"))
	centres := p.Centres(p.TrueMeans())

	observed, expect := make([]float64, 16), slices.Repeat([]float64{n / 16.0}, 16)
	copied := make([]float64, 16) // the same, had the petal copied the supercluster one time in twenty
	var squares, cross float64
	for k, z := range d.Z {
		observed[z.I*4+z.J]++
		if k%20 == 0 {
			copied[z.I*4+z.I]++
		} else {
			copied[z.I*4+z.J]++
		}
		e := d.X[k].Sub(centres[z.I*4+z.J])
		squares += (e[0]*e[0] + e[1]*e[1]) / (0.25 * 0.25)
		cross += e[0] * e[1] / (0.25 * 0.25)
	}
	checkChiSquare(t, "frequencies of the pairs", stat.ChiSquare(observed, expect), 15)
	checkChiSquare(t, "sum of squared residuals", squares, 2*n)
	if z := cross / math.Sqrt(n); math.Abs(z) > distuv.UnitNormal.Quantile(1-falseAlarm/2) {
		t.Errorf("correlation of the coordinates: z = %g", z)
	}

	if v := stat.ChiSquare(copied, expect); v < chiSquareBound(15) {
		t.Errorf("dependent choices pass, chi-square %g", v)
	}
}

func chiSquareBound(dof float64) float64 { return distuv.ChiSquared{K: dof}.Quantile(1 - falseAlarm/2) }

// checkChiSquare fails if v is in either tail of its distribution.
func checkChiSquare(t *testing.T, what string, v, dof float64) {
	t.Helper()
	if lo, hi := (distuv.ChiSquared{K: dof}).Quantile(falseAlarm/2), chiSquareBound(dof); v < lo || v > hi {
		t.Errorf("%s: chi-square %g outside [%g, %g]", what, v, lo, hi)
	}
}

func TestStart(t *testing.T) {
	d := Problem{}.Sample(3, rng.New(1, "test"))
	repeated := false
	for k := range uint64(50) {
		mu := Start(d.X, 4, rng.New(2, "test", k))
		for i, m := range mu {
			if !slices.Contains(d.X, m) {
				t.Fatalf("initial mean %v is not a point", m)
			}
			repeated = repeated || slices.Contains(mu[:i], m)
		}
	}
	if !repeated {
		t.Error("four of three points without a repetition")
	}
}
