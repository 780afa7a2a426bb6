package mixture

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

// near compares floats up to an absolute tolerance.
func near(tolerance float64) cmp.Option { return cmpopts.EquateApprox(0, tolerance) }

func TestPaperGeometry(t *testing.T) {
	var p Problem
	const h, r = 0.70710678, 1.41421356
	if d := cmp.Diff([]Point{{h, h}, {-h, h}, {-h, -h}, {h, -h}}, p.Offsets(), near(1e-8)); d != "" {
		t.Errorf("offsets (-want +got):\n%s", d)
	}
	if d := cmp.Diff(Means{{-r, -r}, {r, r}, {r, -r}, {-r, r}}, p.TrueMeans(), near(1e-8)); d != "" {
		t.Errorf("true means (-want +got):\n%s", d)
	}

	var grid []Point
	for _, a := range []float64{-2.1213, -0.7071, 0.7071, 2.1213} {
		for _, b := range []float64{-2.1213, -0.7071, 0.7071, 2.1213} {
			grid = append(grid, Point{a, b})
		}
	}
	centres := p.Centres(p.TrueMeans())
	if got, want := centres[2*4+1], (Point{r - h, -r + h}); cmp.Diff(want, got, near(1e-7)) != "" {
		t.Errorf("centre (2, 1) = %v, want %v", got, want)
	}
	slices.SortFunc(centres, func(a, b Point) int { // rounded: equal coordinates differ in their last bits
		return slices.Compare([]float64{math.Round(a[0]), a[1]}, []float64{math.Round(b[0]), b[1]})
	})
	if d := cmp.Diff(grid, centres, near(1e-4)); d != "" {
		t.Errorf("centres are not the 4x4 grid (-want +got):\n%s", d)
	}
}

// Every number of superclusters keeps the paper's distance between neighbours, every number of petals its radius.
func TestAnyGeometry(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Problem{Super: rapid.IntRange(1, 12).Draw(t, "super"), Petals: rapid.IntRange(1, 12).Draw(t, "petals")}
		mu, o := p.TrueMeans(), p.Offsets()
		if len(mu) != p.Super || len(o) != p.Petals || len(p.Centres(mu)) != p.Super*p.Petals {
			t.Fatalf("%d means, %d offsets, %d centres", len(mu), len(o), len(p.Centres(mu)))
		}
		for _, oj := range o {
			if r := math.Hypot(oj[0], oj[1]); math.Abs(r-1) > 1e-12 {
				t.Errorf("offset of length %g", r)
			}
		}
		for i := range mu {
			nearest := math.Inf(1)
			for k := range mu {
				if d := mu[i].Sub(mu[k]); k != i {
					nearest = min(nearest, math.Hypot(d[0], d[1]))
				}
			}
			if p.Super > 1 && math.Abs(nearest-2*math.Sqrt2) > 1e-12 {
				t.Errorf("mean %d has its neighbour at %g", i, nearest)
			}
		}
	})
}
