package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// A figure has a panel for the known structure and for each method, and is of the first sequence with a pseudoknot.
func TestFigure(t *testing.T) {
	plain, err := newStrand("plain", "GGGGAAAACCCC", "((((....))))")
	if err != nil {
		t.Fatal(err)
	}
	knot, err := newStrand("knot", "GGGAAACCCAAACCCAAAGGG", "(((...[[[...)))...]]]")
	if err != nil {
		t.Fatal(err)
	}
	d := dataset{model: RNA{Folding: Folding{N: 24}}, test: observed{Strands: []strand{plain, knot, plain}}}
	if got := d.figured(); got != 1 {
		t.Fatalf("the figure is of sequence %d", got)
	}
	guess := plain.pairs(24)
	guess[2*24+14-2] = 0.5
	name := filepath.Join(t.TempDir(), "arcs")
	if err := d.save(name, []panel{{"a guess", guess}}); err != nil {
		t.Fatal(err)
	}
	svg, err := os.ReadFile(name + ".svg")
	if err != nil {
		t.Fatal(err)
	}
	for what, want := range map[string]int{"known structure of knot": 1, "a guess": 1, "<path": 6 + 4 + 1} {
		if got := bytes.Count(svg, []byte(what)); got != want {
			t.Errorf("%q occurs %d times, not %d", what, got, want)
		}
	}
}
