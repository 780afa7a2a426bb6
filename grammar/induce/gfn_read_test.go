package induce

import (
	"errors"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/config"
	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/grammar/parse"
	"github.com/gfnem/gfnem/run"
	"github.com/gfnem/gfnem/treebank"
)

// savedGFN trains a small GFlowNet a little and saves it in a folder.
func savedGFN(t *testing.T, c Config) (*Session, *run.Run) {
	t.Helper()
	s := tinySession(t, c)
	steps(t, s, 3)
	text, err := config.Encode(&c)
	if err != nil {
		t.Fatal(err)
	}
	r, err := run.Create(t.TempDir()+"/run", run.Options{Task: "grammar", Config: text})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	save(t, s, r)
	return s, r
}

// TestReadGFlowNet compares the network of a run with the one that was saved.
func TestReadGFlowNet(t *testing.T) {
	t.Run(Labelled, func(t *testing.T) { testReadGFlowNet(t, tinyGFN(7, grammar.NCFG), 1e-12) })
	c := tinyGFN(7, grammar.NCFG)
	c.Policy.Trees = Shapes
	// Its embeddings depend on the grammar, whose tables are read in double precision.
	t.Run(Shapes, func(t *testing.T) { testReadGFlowNet(t, c, 1e-4) })
}

func testReadGFlowNet(t *testing.T, c Config, within float64) {
	s, r := savedGFN(t, c)
	again, err := run.Read(r.Dir())
	if err != nil {
		t.Fatal(err)
	}
	g, p, warnings, err := ReadGFlowNet(s.set.Backend, again)
	if err != nil || warnings != nil {
		t.Fatal(warnings, err)
	}
	defer p.Close()
	if !slices.Equal(g.Words, s.Words) || g.Kind != grammar.NCFG || p.Longest() != 5 {
		t.Errorf("%d words, kind %s, sentences of %d words", len(g.Words), g.Kind, p.Longest())
	}
	test, err := s.data.Split(treebank.Test)
	if err != nil {
		t.Fatal(err)
	}
	for _, how := range []parse.Decode{parse.GFNSample, parse.GFNMBR} {
		want, err := s.Network.Parse(test.Sentences, how, 5)
		if err != nil {
			t.Fatal(err)
		}
		got, err := p.Parse(test.Sentences, how, 5)
		if err != nil {
			t.Fatal(err)
		}
		for i := range got {
			a, b := got[i], want[i]
			far := func(x, y float64) bool { return !(math.Abs(x-y) <= within) && !(math.IsNaN(x) && math.IsNaN(y)) }
			if a.Tree.Shape() != b.Tree.Shape() || far(a.LogForward, b.LogForward) || far(a.LogBack, b.LogBack) || far(a.Spans, b.Spans) {
				t.Errorf("%s, sentence %d: %+v, want %+v", how, i, a, b)
			}
		}
	}
}

// TestReadGFlowNetRefuses covers runs that hold no GFlowNet, or a broken one.
func TestReadGFlowNetRefuses(t *testing.T) {
	s, r := savedRun(t, grammar.CFG)
	save(t, s, r)
	_, _, _, err := ReadGFlowNet(s.set.Backend, r)
	var input *badinput.Error
	if want := "was trained by method marginal and has no GFlowNet"; !errors.As(err, &input) || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %q", err, want)
	}

	s, _ = savedGFN(t, tinyGFN(7, grammar.CFG))
	const bias = "/phi/flow/value/readout/bias"
	state := stateOf(t, s)
	for _, c := range []struct {
		want   string
		words  int
		change func(arrays map[string]run.Array)
	}{
		{"missing " + bias, 0, func(a map[string]run.Array) { delete(a, bias) }},
		{"unknown " + bias + "ed", 0, func(a map[string]run.Array) { a[bias+"ed"] = a[bias]; delete(a, bias) }},
		{"/phi/encoder/tokens is F32 [14 8] in the checkpoint and F32 [15 8]", 1, func(map[string]run.Array) {}},
		{bias + " is F64 [1] in the checkpoint and F32 [1]", 0, func(a map[string]run.Array) { a[bias] = widen(a[bias]) }},
		{"not finite", 0, func(a map[string]run.Array) {
			a[bias] = run.Array{DType: "F32", Shape: a[bias].Shape, Data: slices.Repeat([]byte{0xff}, len(a[bias].Data))}
		}},
	} {
		changed := run.State{Arrays: maps.Clone(state.Arrays), Extra: state.Extra}
		c.change(changed.Arrays)
		g := grammar.New(grammar.CFG, numberedNames("N", 3), numberedNames("T", 4), numberedNames("w", len(s.Words)+c.words))
		p, err := s.readNetwork(s.set.Backend, changed, g)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("error %v, want one line with %q", err, c.want)
		}
		if p != nil {
			p.Close()
		}
	}
}
