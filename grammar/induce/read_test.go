package induce

import (
	"encoding/json"
	"errors"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/gfnem/gfnem/backend"
	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/config"
	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/grammar/parse"
	"github.com/gfnem/gfnem/run"
	"github.com/gfnem/gfnem/treebank"
)

// savedRun trains a small grammar for a few updates and saves it in a folder.
func savedRun(t *testing.T, kind grammar.Kind) (*Session, *run.Run) {
	t.Helper()
	b, err := backend.Open("simd")
	if err != nil {
		t.Fatal(err)
	}
	c := QuickConfig()
	c.Model.Grammar, c.Model.Nonterminals, c.Model.Preterminals, c.Model.Width, c.Batch, c.Bucket, c.MaxLength = string(kind), 3, 4, 8, 8, 8, 8
	c.Eval.Every, c.Model.ParentScale = 0, 1
	if kind == grammar.NCFG {
		c.Model.Init = grammar.Xavier
	}
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	s, err := Task{}.Start(b, &c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	for range 5 {
		if _, err := s.Step(); err != nil {
			t.Fatal(err)
		}
	}
	text, err := config.Encode(&c)
	if err != nil {
		t.Fatal(err)
	}
	r, err := run.Create(t.TempDir()+"/run", run.Options{Task: "grammar", Config: text})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return s, r
}

func save(t *testing.T, s *Session, r *run.Run) {
	t.Helper()
	state, err := s.State()
	if err != nil {
		t.Fatal(err)
	}
	state.Step = s.made()
	if err := r.Save(state); err != nil {
		t.Fatal(err)
	}
}

func reread(t *testing.T, r *run.Run, engine string) *grammar.Grammar {
	t.Helper()
	b, err := backend.Open(engine)
	if err != nil {
		t.Fatal(err)
	}
	again, err := run.Read(r.Dir())
	if err != nil {
		t.Fatal(err)
	}
	g, warnings, err := ReadGrammar(b, again)
	if err != nil || warnings != nil {
		t.Fatal(warnings, err)
	}
	return g
}

// TestReadGrammar compares the table of a run with the network that was saved.
func TestReadGrammar(t *testing.T) {
	for _, kind := range []grammar.Kind{grammar.CFG, grammar.NCFG} {
		s, r := savedRun(t, kind)
		save(t, s, r)
		g := reread(t, r, "simd")
		if g.Kind != kind || g.Nonterminals[2] != "NT-3" || g.Preterminals[0] != "T-1" || !slices.Equal(g.Words, s.Words) {
			t.Errorf("%s: names %v %v, %d words", kind, g.Nonterminals, g.Preterminals, len(g.Words))
		}
		test, err := s.data.Split(treebank.Test)
		if err != nil {
			t.Fatal(err)
		}
		sentences := test.Sentences[:20]
		want, err := s.Exact.LogLikelihoods(sentences)
		if err != nil {
			t.Fatal(err)
		}
		p := parse.NewExact(s.set.Backend, g)
		defer p.Close()
		got, err := p.LogLikelihoods(sentences)
		if err != nil {
			t.Fatal(err)
		}
		for i := range got {
			// The session computes in single precision: some ten operations a word, each of relative error 6e-8.
			if d := math.Abs(got[i] - want[i]); !(d < 1e-5*math.Abs(want[i])) {
				t.Errorf("%s: sentence %d has log p %v by the table, %v by the session", kind, i, got[i], want[i])
			}
		}
		checkSame(t, g, reread(t, r, "go"))
	}
}

// checkSame compares tables computed by two backends to the last digits but a few of double precision.
func checkSame(t *testing.T, a, b *grammar.Grammar) {
	t.Helper()
	for i, table := range [][]float64{a.Root, a.Rules, a.Emit} {
		other := [][]float64{b.Root, b.Rules, b.Emit}[i]
		for k, p := range table {
			if !(math.Abs(p-other[k]) <= 1e-13) {
				t.Fatalf("table %d, entry %d: %v and %v", i, k, p, other[k])
			}
		}
	}
}

// TestReadGrammarRefuses covers runs that hold no grammar.
func TestReadGrammarRefuses(t *testing.T) {
	s, r := savedRun(t, grammar.CFG)
	check := func(want string, err error) {
		t.Helper()
		var input *badinput.Error
		if !errors.As(err, &input) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("error %q, want one line with %q", err, want)
		}
	}
	_, _, err := ReadGrammar(s.set.Backend, r)
	check("has no checkpoint yet", err)

	other, err := run.Create(t.TempDir()+"/mixture", run.Options{Task: "mixture"})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	_, _, err = ReadGrammar(s.set.Backend, other)
	check(`is a run of the task "mixture"`, err)

	state, err := s.State()
	if err != nil {
		t.Fatal(err)
	}
	withWords := func(list string) json.RawMessage {
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(state.Extra, &fields); err != nil {
			t.Fatal(err)
		}
		fields["words"] = json.RawMessage(list)
		extra, err := json.Marshal(fields)
		if err != nil {
			t.Fatal(err)
		}
		return extra
	}
	for _, c := range []struct {
		want   string
		change func(s *run.State)
	}{
		{"counters of the checkpoint cannot be read", func(s *run.State) { s.Extra = json.RawMessage(`[]`) }},
		{"missing loop, prior_skipped", func(s *run.State) { s.Extra = json.RawMessage(`{"words": ["a", "b"]}`) }},
		{"is F32 [147] in the checkpoint and F32 [5]", func(s *run.State) { s.Extra = withWords(`["a", "b"]`) }},
		{`"a", number 1, occurs twice`, func(s *run.State) { s.Extra = withWords(`["a", "a"]`) }},
		{"missing /theta/symbols: ", func(s *run.State) { delete(s.Arrays, "/theta/symbols") }},
		{"missing /theta/symbols; unknown /theta/cymbals: ", func(s *run.State) {
			s.Arrays["/theta/cymbals"] = s.Arrays["/theta/symbols"]
			delete(s.Arrays, "/theta/symbols")
		}},
		{"/theta/symbols is I32 [8 8] in the checkpoint", func(s *run.State) {
			a := s.Arrays["/theta/symbols"]
			a.DType = "I32"
			s.Arrays["/theta/symbols"] = a
		}},
		{"not finite", func(s *run.State) {
			a := s.Arrays["/theta/symbols"]
			a.Data = slices.Repeat([]byte{0xff}, len(a.Data))
			s.Arrays["/theta/symbols"] = a
		}},
	} {
		changed := run.State{Arrays: maps.Clone(state.Arrays), Extra: state.Extra}
		c.change(&changed)
		_, err := s.Config.table(s.set.Backend, changed)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %q", err, c.want)
		}
	}
}
