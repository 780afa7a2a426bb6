package induce

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/config"
	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/grammar/chain"
	"github.com/gfnem/gfnem/grammar/parse"
	"github.com/gfnem/gfnem/grammar/synthetic"
	"github.com/gfnem/gfnem/internal/testkit"
	"github.com/gfnem/gfnem/rng"
	"github.com/gfnem/gfnem/run"
	"github.com/gfnem/gfnem/run/runtest"
	"github.com/gfnem/gfnem/treebank"
)

// fixedConfig is a GFlowNet of a second for a grammar that stays as it is.
func fixedConfig(fixed string) Config {
	c := SmallConfig()
	c.Fixed, c.MaxLength, c.Updates, c.Batch, c.Eval.Every, c.Policy.Width, c.Policy.Layers = fixed, 4, 12, 8, 0, 16, 1
	c.Sleep.Leaves, c.Sleep.Steps = 5, 4
	return c
}

// started begins a training as the program does.
func started(t *testing.T, c Config) *Session {
	t.Helper()
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	s, err := Task{}.Start(simd(), &c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// A fixed grammar stays as it is while its GFlowNet learns; updates are iterations, and nothing else is there to be
// trained.
func TestFixedStays(t *testing.T) {
	s := started(t, fixedConfig(small))
	before := stateOf(t, s)
	var last run.Tick
	for !s.Done() {
		tick, err := s.Step()
		if err != nil {
			t.Fatal(err)
		}
		last = tick
	}
	after := stateOf(t, s)
	if s.loop.State().Iteration != 12 || s.made() != 12 || last.Step != 12 || last.Total != 12 || s.loop.State().M != 0 {
		t.Errorf("%d iterations, %d updates, tick %+v, state %+v", s.loop.State().Iteration, s.made(), last, s.loop.State())
	}
	if _, ok := s.metrics(em.Report{})["skipped"]; !ok {
		t.Error("skipped updates are not told")
	}
	moved := false
	for path, a := range after.Arrays {
		if strings.HasPrefix(path, em.Theta+"/") {
			t.Errorf("there is a variable %s", path)
		}
		if strings.HasPrefix(path, given+"/") && !slices.Equal(a.Data, before.Arrays[path].Data) {
			t.Errorf("%s has changed", path)
		}
		moved = moved || strings.HasPrefix(path, em.Phi+"/")
	}
	parameters, err := s.Parameters()
	if err != nil {
		t.Fatal(err)
	}
	for path := range parameters {
		if !strings.HasPrefix(path, em.Phi+"/") {
			t.Errorf("%s is trained", path)
		}
	}
	if !moved || len(after.Arrays[given+"/rules"].Data) != 4*3*7*7 {
		t.Errorf("variables of the GFlowNet: %t, rules %+v", moved, after.Arrays[given+"/rules"].Shape)
	}
}

// Stopped anywhere and continued, a training of a GFlowNet alone ends with the same bits.
func TestFixedResume(t *testing.T) {
	c := fixedConfig(small)
	whole := runtest.Job(t, func() run.Job { return started(t, c) }, runtest.Options{Stops: []int{5}}).(*Session)
	if whole.loop.State().Iteration != 12 {
		t.Errorf("%d iterations, want 12", whole.loop.State().Iteration)
	}
}

// Exact inference of a training, and the rewards of its GFlowNet, are those of the grammar that was given: one with
// rules that it does not have, too, both kinds.
func TestFixedInference(t *testing.T) {
	for _, name := range []string{small, "synthetic", "synthetic-ncfg"} {
		c := fixedConfig(name)
		c.Data, c.MaxLength, c.Bucket = name, 6, 6
		s := started(t, c)
		g, err := c.readFixed(simd())
		if err != nil {
			t.Fatal(err)
		}
		if got, want := string(s.Config.Model.Grammar), string(g.Kind); got != want || s.Model.Nonterminals != len(g.Nonterminals) || !slices.Equal(s.Words, g.Words) {
			t.Errorf("%s: a training of %s with %d nonterminals", name, got, s.Model.Nonterminals)
		}
		p := parse.NewExact(simd(), g)
		defer p.Close()
		some := s.data.Splits[1].Sentences[:20]
		want, err := p.LogLikelihoods(some)
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.Exact.LogLikelihoods(some)
		if err != nil {
			t.Fatal(err)
		}
		for i := range got {
			if !(math.Abs(got[i]-want[i]) <= 2e-4) { // of some twenty nats, in single precision
				t.Errorf("%s: log p(x) %v, want %v", name, got[i], want[i])
			}
		}
		// The synthetic sentences come with their log p(x), given that they are not too long.
		if name != small {
			for i, v := range synthetic.LogProbs(g, some) {
				if !(math.Abs(v-want[i]) <= 1e-9) {
					t.Errorf("%s: exact inference in graphs gives %v, on the host %v", name, want[i], v)
				}
			}
		}
		drawn, err := p.Parse(some, parse.Sample, 1)
		if err != nil {
			t.Fatal(err)
		}
		trees := parse.Trees(drawn)
		exact, err := p.LogTrees(some, trees)
		if err != nil {
			t.Fatal(err)
		}
		b := parse.Batches{Rows: len(some), Bucket: 6, Most: 6}.Pad(some)
		q, err := s.gfn.Potentials.Call(b.SentenceTensors)
		if err != nil {
			t.Fatal(err)
		}
		scores, err := chain.NewWeights(q, b.LengthOf)
		if err != nil {
			t.Fatal(err)
		}
		for i, z := range trees {
			if got := scores.LogTree(i, z); !(math.Abs(got-exact[i]) <= 2e-4) || exact[i] > drawn[i].LogP+1e-9 {
				t.Errorf("%s: the GFlowNet is rewarded by %v for %s, want %v", name, got, z.Shape(), exact[i])
			}
		}
	}
}

// A fixed grammar comes from a run or from a file; a run with a fixed grammar has that grammar, its names included,
// without its source.
func TestFixedFiles(t *testing.T) {
	s, r := savedRun(t, grammar.NCFG)
	save(t, s, r)
	learned, _, err := ReadGrammar(simd(), r)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "g.json")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(learned.Write(f), f.Close()); err != nil {
		t.Fatal(err)
	}
	for _, fixed := range []string{r.Dir(), file} {
		c := fixedConfig(fixed)
		c.Data, c.MaxLength = s.Config.Data, 8
		of := started(t, c)
		steps(t, of, 2)
		text, err := config.Encode(&c)
		if err != nil {
			t.Fatal(err)
		}
		made, err := run.Create(filepath.Join(t.TempDir(), "run"), run.Options{Task: "grammar", Config: text})
		if err != nil {
			t.Fatal(err)
		}
		defer made.Close()
		save(t, of, made)
		g, net, _, err := ReadGFlowNet(simd(), made)
		if err != nil {
			t.Fatal(err)
		}
		defer net.Close()
		if g.Kind != grammar.NCFG || !slices.Equal(g.Nonterminals, learned.Nonterminals) || !slices.Equal(g.Words, learned.Words) {
			t.Errorf("%s: a %s of %v", fixed, g.Kind, g.Nonterminals)
		}
		for i, p := range g.Rules {
			if !(math.Abs(p-learned.Rules[i]) <= 1e-6) {
				t.Fatalf("%s: rule %d has probability %v, want %v", fixed, i, p, learned.Rules[i])
			}
		}
		if _, err := net.Parse(of.data.Splits[1].Sentences[:3], parse.GFNSample, 1); err != nil {
			t.Error(err)
		}
		if of.Data()["grammar"] == "" || of.Data()["grammar"] != started(t, c).Data()["grammar"] {
			t.Errorf("the grammar's hash is %q", of.Data()["grammar"])
		}
	}
}

// Rules that a fixed grammar does not have are still not there when it is read from a checkpoint.
func TestFixedZeros(t *testing.T) {
	c := fixedConfig("synthetic")
	c.Data = "synthetic"
	s := started(t, c)
	want, err := c.readFixed(simd())
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.table(simd(), stateOf(t, s))
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range want.Rules {
		if (got.Rules[i] == 0) != (p == 0) || !(math.Abs(got.Rules[i]-p) <= 1e-6) {
			t.Fatalf("rule %d has probability %v, want %v", i, got.Rules[i], p)
		}
	}
}

// Words get the grammar's numbers; an unknown one is <unk>, or an error.
func TestTranslate(t *testing.T) {
	d := tinyData(t)
	seed := testkit.Seed(t)
	words := slices.Clone(d.Vocabulary.Words())
	rng.New(seed, "words").Shuffle(len(words), func(i, j int) { words[i], words[j] = words[j], words[i] })
	got, err := translate(d, words)
	if err != nil {
		t.Fatal(err)
	}
	for i, split := range got.Splits {
		for j, s := range split.Sentences {
			if got.Text(s) != d.Text(d.Splits[i].Sentences[j]) || len(s.Gold) != len(d.Splits[i].Sentences[j].Gold) {
				t.Fatalf("%q became %q", d.Text(d.Splits[i].Sentences[j]), got.Text(s))
			}
		}
	}
	few := []string{"the", "a", "cat", "dog", "saw", treebank.Unknown}
	if got, err = translate(d, few); err != nil {
		t.Fatal(err)
	}
	for j, s := range got.Splits[0].Sentences {
		if want := strings.ReplaceAll(d.Text(d.Splits[0].Sentences[j]), "bit", treebank.Unknown); got.Text(s) != want {
			t.Fatalf("%q, want %q", got.Text(s), want)
		}
	}
	var input *badinput.Error
	if _, err := translate(d, few[:5]); !errors.As(err, &input) || !strings.Contains(err.Error(), `does not know the word "bit"`) {
		t.Errorf("error %v", err)
	}
}

func TestFixedErrors(t *testing.T) {
	c := fixedConfig(small)
	c.Method = Marginal
	if err := c.Validate(); err == nil || !strings.Contains(err.Error(), `fixed = "small" needs method = "gfn"`) {
		t.Errorf("error %v", err)
	}
	bad := filepath.Join(t.TempDir(), "bad.json")
	if err := os.WriteFile(bad, []byte("{"), 0o666); err != nil {
		t.Fatal(err)
	}
	for fixed, want := range map[string]string{
		"/no/such/thing": "is neither a run nor a grammar file",
		t.TempDir():      "is not a run folder",
		bad:              "bad.json",
		"synthetic-cfg":  "is neither a run nor a grammar file",
		"synthetic":      `does not know the word "b" of the data`, // a is an English word
	} {
		c := fixedConfig(fixed)
		_, err := Task{}.Start(simd(), &c)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("fixed = %q: error %v, want one with %q", fixed, err, want)
		}
	}
}
