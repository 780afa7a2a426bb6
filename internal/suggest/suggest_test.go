package suggest

import "testing"

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"kitten", "sitting", 3}, {"go", "go", 0}, {"flaw", "lawn", 2}, {"größe", "große", 1}} {
		if got := Distance(c.a, c.b); got != c.want {
			t.Errorf("Distance(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

func TestNearest(t *testing.T) {
	known := []string{"exact", "meanfield", "gfn"}
	for name, want := range map[string]string{"exakt": "exact", "meanfeild": "meanfield", "gnf": "gfn", "zebra": ""} {
		if got, ok := Nearest(name, known); got != want || ok != (want != "") {
			t.Errorf("Nearest(%q) = %q, %v, want %q", name, got, ok, want)
		}
	}
}
