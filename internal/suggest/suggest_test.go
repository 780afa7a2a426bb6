package suggest

import (
	"testing"

	"pgregory.net/rapid"
)

func TestDistanceByHand(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"kitten", "sitting", 3}, {"go", "go", 0}, {"flaw", "lawn", 2}, {"größe", "große", 1}} {
		if got := Distance(c.a, c.b); got != c.want {
			t.Errorf("Distance(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

// The distance obeys its recurrence, computed the slow way.
func TestDistance(t *testing.T) {
	var slow func(a, b string) int
	slow = func(a, b string) int {
		if a == "" || b == "" {
			return len(a) + len(b)
		}
		replace := slow(a[1:], b[1:])
		if a[0] != b[0] {
			replace++
		}
		return min(replace, slow(a[1:], b)+1, slow(a, b[1:])+1)
	}
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`[abc]{0,5}`)
		a, b := word.Draw(t, "a"), word.Draw(t, "b")
		if got, want := Distance(a, b), slow(a, b); got != want {
			t.Errorf("distance(%q, %q) = %d, want %d", a, b, got, want)
		}
	})
}

func TestNearest(t *testing.T) {
	known := []string{"exact", "meanfield", "gfn"}
	for name, want := range map[string]string{"exakt": "exact", "meanfeild": "meanfield", "gnf": "gfn", "zebra": ""} {
		if got, ok := Nearest(name, known); got != want || ok != (want != "") {
			t.Errorf("Nearest(%q) = %q, %v, want %q", name, got, ok, want)
		}
	}
}
