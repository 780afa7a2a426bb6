package induce

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"strings"
	"testing"

	"github.com/gfnem/gfnem/config"
	"github.com/gfnem/gfnem/grammar/parse"
	"github.com/gfnem/gfnem/run"
	"github.com/gfnem/gfnem/run/runtest"
	"github.com/gfnem/gfnem/treebank"
)

// wild is a training whose rate is so high that it soon gets worse.
func wild() Config {
	c := tinyConfig(Marginal)
	c.Updates, c.Eval.Every, c.Eval.Patience, c.Optim.Theta.Rate, c.Optim.Theta.End = 300, 2, 3, 0.15, 1
	return c
}

// validNats is −log p(x) of the validation sentences, by word, with the grammar as it is.
func validNats(t *testing.T, p *parse.Exact, s *Session) float64 {
	t.Helper()
	valid, err := s.data.Split(treebank.Valid)
	if err != nil {
		t.Fatal(err)
	}
	logX, err := p.LogLikelihoods(valid.Sentences)
	if err != nil {
		t.Fatal(err)
	}
	return parse.NatsPerWord(logX, valid.Sentences)
}

// Patience ends a training, the same wherever it was stopped and continued. What counts then is the state with the
// greatest validation likelihood that was logged.
func TestPatience(t *testing.T) {
	c := wild()
	best, at := math.Inf(1), uint64(0)
	s := tinySession(t, c)
	for !s.Done() {
		tick, err := s.Step()
		if err != nil {
			t.Fatal(err)
		}
		if nats, ok := tick.Log["valid/nll_per_word"]; ok && nats < best {
			best, at = nats, tick.Step
		}
		if s.Done() && tick.Total != tick.Step {
			t.Errorf("it ends at step %d of %d", tick.Step, tick.Total)
		}
	}
	if s.at() >= 300 || s.at() != at+3*2 || s.best.Selection != (run.Selection{Step: at, Score: -best, Since: 3}) {
		t.Fatalf("it ends at step %d, best at %d, and says %+v", s.at(), at, s.best.Selection)
	}
	if want := fmt.Sprintf("eval.patience = 3 ended the training after %d of 300 updates", s.at()); s.Short() != want {
		t.Errorf("it says %q, want %q", s.Short(), want)
	}
	now := validNats(t, s.Exact, s)
	var then float64
	if err := s.AtBest(func() error { then = validNats(t, s.Exact, s); return nil }); err != nil {
		t.Fatal(err)
	}
	if then != best || !(now > best) {
		t.Errorf("%v nats at the best state, %v at the last, want %v and more", then, now, best)
	}
	if again := validNats(t, s.Exact, s); again != now {
		t.Errorf("%v nats after that, want %v", again, now)
	}
	stops := []int{int(at) - 1, int(at), int(at) + 1, int(s.at()) - 1}
	whole := runtest.Job(t, func() run.Job { return tinySession(t, c) }, runtest.Options{Stops: stops}).(*Session)
	if run.StateHash(stateOf(t, whole)) != run.StateHash(stateOf(t, s)) {
		t.Error("another state at the end")
	}
}

// The folder of a run parses with the best grammar, and exports it.
func TestReadBest(t *testing.T) {
	c := wild()
	c.Data = "synthetic"
	if err := config.Resolve(&c); err != nil {
		t.Fatal(err)
	}
	s := tinySession(t, c)
	for !s.Done() {
		steps(t, s, 1)
	}
	text, err := config.Encode(&c)
	if err != nil {
		t.Fatal(err)
	}
	r, err := run.Create(t.TempDir()+"/run", run.Options{Task: "grammar", Config: text})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	save(t, s, r)
	p := parse.NewExact(simd(), reread(t, r, "simd"))
	defer p.Close()
	// The session computes in single precision.
	if got, want := validNats(t, p, s), -s.best.Score; !(math.Abs(got-want) <= 1e-5*want) {
		t.Errorf("%v nats, want %v of the best state; of the last, %v", got, want, validNats(t, s.Exact, s))
	}
	exported, err := s.Parameters()
	if err != nil {
		t.Fatal(err)
	}
	state := stateOf(t, s)
	for path, a := range exported {
		if string(a.Data) != string(state.Arrays["/best"+path].Data) {
			t.Errorf("%s is exported from another state", path)
		}
	}
}

// A run of an earlier version, which kept the last state alone, goes on as one that has not been measured. A state
// without its selection that has copies is no such run.
func TestOlderRuns(t *testing.T) {
	c := wild()
	c.Eval.Patience = 0
	s := tinySession(t, c)
	steps(t, s, 5)
	state := stateOf(t, s)
	old := run.State{Step: state.Step, Arrays: run.Below(state.Arrays, "/theta", "/optim")}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(state.Extra, &fields); err != nil {
		t.Fatal(err)
	}
	delete(fields, "selection")
	var err error
	if old.Extra, err = json.Marshal(fields); err != nil {
		t.Fatal(err)
	}
	again := tinySession(t, c)
	if err := again.Restore(old); err != nil {
		t.Fatal(err)
	}
	if got := again.Standing(); got.State != "last" || got.Step != 5 {
		t.Errorf("it is evaluated as %+v", got)
	}
	steps(t, again, 1)
	if got := again.Standing(); got.State != "best" || got.Step != 6 {
		t.Errorf("after one more update it is evaluated as %+v", got)
	}
	half := old
	half.Arrays = maps.Clone(state.Arrays)
	if err := tinySession(t, c).Restore(half); err == nil || !strings.Contains(err.Error(), "missing selection") {
		t.Errorf("copies without a selection: error %v", err)
	}
	c.Eval.Select = Last
	if err := tinySession(t, c).Restore(state); err == nil || !strings.Contains(err.Error(), `eval.select = "best"`) {
		t.Errorf("a training that keeps the last state restores the best one: error %v", err)
	}
}

// Patience without validation sentences would never end.
func TestPatienceNeedsData(t *testing.T) {
	d := tinyData(t)
	d.Splits = []treebank.Split{d.Splits[0], d.Splits[2]}
	c := wild()
	if _, err := NewSession(simd(), c, d); err == nil || !strings.Contains(err.Error(), "eval.patience = 3 needs validation sentences") {
		t.Errorf("error %v", err)
	}
	c.Eval.Patience = 0
	s, err := NewSession(simd(), c, d)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	steps(t, s, 4)
	if got := s.Standing(); got.State != "last" {
		t.Errorf("without validation sentences it is evaluated as %+v", got)
	}
}
