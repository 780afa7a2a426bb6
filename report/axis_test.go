package report

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/plot/vg"
)

func TestTicks(t *testing.T) {
	for _, c := range []struct {
		s    scale
		n    int
		want string
	}{
		{scale{lo: 0, hi: 1}, 5, "0 0.2 0.4 0.6 0.8 1.0"},
		{scale{lo: -3.2, hi: 3.2}, 7, "−3 −2 −1 0 1 2 3"},
		{scale{lo: 0.1, hi: 0.3}, 2, "0.1 0.2 0.3"},
		{scale{lo: -0.3, hi: 0.6}, 3, "0 0.5"},
		{scale{lo: 0, hi: 30000}, 6, "0 5k 10k 15k 20k 25k 30k"},
		{scale{lo: 0, hi: 2.4e6}, 5, "0 0.5M 1.0M 1.5M 2.0M"},
		{scale{lo: 100000, hi: 100010}, 5, "100000 100002 100004 100006 100008 100010"},
		{scale{lo: 0, hi: 3e-5}, 3, "0 1e−05 2e−05 3e−05"},
		{scale{lo: -0.5, hi: 2.5, names: []string{"a", "b", "c"}}, 9, "a b c"},
		{scale{lo: -0.5, hi: 4.5, names: []string{"a", "b", "c", "d", "e"}}, 3, "a c e"},
		{scale{lo: 0.05, hi: 200, log: true}, 6, "0.1 1 10 100"},
		{scale{lo: 1, hi: 30, log: true}, 6, "1 2 5 10 20"},
		{scale{lo: 2, hi: 3, log: true}, 5, "2.0 2.2 2.4 2.6 2.8 3.0"},
		{scale{lo: 1e-8, hi: 1e6, log: true}, 5, "1e−6 0.001 1 1000 1e6"},
		{scale{lo: 5e3, hi: 9e5, log: true}, 5, "10k 100k"},
	} {
		var labels []string
		last := math.Inf(-1)
		for _, tick := range c.s.ticks(c.n) {
			if tick.value <= last {
				t.Errorf("%+v: %g after %g", c.s, tick.value, last)
			}
			last = tick.value
			if at := c.s.at(tick.value); at < -1e-6 || at > 1+1e-6 {
				t.Errorf("%+v: tick %s lies outside", c.s, tick.label)
			}
			labels = append(labels, tick.label)
		}
		if got := strings.Join(labels, " "); got != c.want {
			t.Errorf("%+v: %s, want %s", c.s, got, c.want)
		}
	}
}

func TestViridis(t *testing.T) {
	for k, want := range []uint32{0x440154, 0x31688e, 0x35b779, 0xfde725} {
		got, want := classColor(k, 4), rgb(want)
		for _, d := range []int{int(got.R) - int(want.R), int(got.G) - int(want.G), int(got.B) - int(want.B)} {
			if d < -2 || d > 2 {
				t.Errorf("class %d has %v, viridis %v", k, got, want)
			}
		}
	}
	if viridis(-1) != viridis(0) || viridis(2) != viridis(1) {
		t.Error("values outside [0, 1] are not clamped")
	}
}

// A thinned polyline has the same first and last point and the same reach in every column.
func TestThin(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		pts := make([]vg.Point, r.IntN(50))
		for i := range pts {
			pts[i] = vg.Point{X: vg.Length(r.IntN(3*i+1)) / 16, Y: vg.Length(r.IntN(9))}
		}
		kept := thin(pts)
		if len(pts) > 0 && (kept[0] != pts[0] || kept[len(kept)-1] != pts[len(pts)-1]) {
			t.Fatalf("%v became %v", pts, kept)
		}
		if diff := cmp.Diff(reach(pts), reach(kept)); diff != "" {
			t.Fatalf("%v became %v: %s", pts, kept, diff)
		}
	}
}

func reach(pts []vg.Point) map[float64][2]vg.Length {
	m := map[float64][2]vg.Length{}
	for _, p := range pts {
		x := math.Floor(4 * float64(p.X))
		r, ok := m[x]
		if !ok {
			r = [2]vg.Length{p.Y, p.Y}
		}
		m[x] = [2]vg.Length{min(r[0], p.Y), max(r[1], p.Y)}
	}
	return m
}
