package induce

import (
	"maps"
	"math"
	"strings"
	"testing"

	"github.com/gfnem/gfnem/config"
	"github.com/gfnem/gfnem/run"
	"github.com/gfnem/gfnem/run/runtest"
	"github.com/gfnem/gfnem/treebank"
)

// Of several starts the one with the greatest validation likelihood is gone on with, as if it had been the only one,
// wherever the training was stopped and continued.
func TestRestarts(t *testing.T) {
	c := tinyConfig(Marginal)
	c.Restarts, c.RestartUpdates, c.Updates, c.Eval.Every = 3, 4, 9, 3
	stops := []int{2, 4, 7, 8, 12, 13}
	runtest.Job(t, func() run.Job { return tinySession(t, c) }, runtest.Options{Stops: stops})
	seen := map[int]bool{}
	for c.Seed = range 4 {
		seen[checkRestarts(t, c)] = true
	}
	if len(seen) != 3 {
		t.Errorf("the starts %v are chosen, want each of three at some seed", seen)
	}
}

// checkRestarts compares a training of three starts with trainings of one, and returns which is chosen.
func checkRestarts(t *testing.T, c Config) int {
	t.Helper()
	whole := tinySession(t, c)
	if _, total := whole.Progress(); total != 2*4+9 {
		t.Errorf("%d steps are expected", total)
	}
	steps(t, whole, 2*4+9)
	if !whole.Done() || whole.made() != 9 || whole.best.Step < 12 {
		t.Errorf("it stands at step %d after %d updates, and was best at step %d", whole.at(), whole.made(), whole.best.Step)
	}
	alone := c
	alone.Restarts = 1
	best, chosen := math.Inf(1), 0
	var want *Session
	for k := range 3 {
		s := tinySession(t, alone)
		if k > 0 {
			if err := s.begin(k); err != nil {
				t.Fatal(err)
			}
		}
		steps(t, s, 4)
		if nats := validNats(t, s.Exact, s); nats < best {
			best, chosen, want = nats, k+1, s
		}
	}
	if start, of, ok := whole.Chosen(); start != chosen || of != 3 || !ok {
		t.Errorf("seed %d: start %d of %d is chosen, want %d", c.Seed, start, of, chosen)
	}
	steps(t, want, 5)
	got := stateOf(t, whole).Arrays
	for path, a := range stateOf(t, want).Arrays {
		if (strings.HasPrefix(path, "/theta") || strings.HasPrefix(path, "/optim")) && string(a.Data) != string(got[path].Data) {
			t.Errorf("seed %d: %s is not as if start %d had been the only one", c.Seed, path, chosen)
		}
	}
	if whole.loop.State() != want.loop.State() {
		t.Errorf("seed %d: it stands at %+v, want %+v", c.Seed, whole.loop.State(), want.loop.State())
	}
	return chosen
}

// So do starts of a GFlowNet, whose iterations are more than its updates, and of its prior.
func TestRestartsOfGFN(t *testing.T) {
	c := gfnMethods()["ncfg with a prior"]
	c.Restarts, c.RestartUpdates, c.Updates, c.MaxIterations, c.Eval.Select = 2, 2, 4, 0, Last
	whole := runtest.Job(t, func() run.Job { return tinySession(t, c) }, runtest.Options{Stops: []int{4, 5, 7}}).(*Session)
	if _, _, ok := whole.Chosen(); !ok || whole.made() != 4 || whole.at() < 3+2+4 {
		t.Errorf("it ends at step %d after %d updates", whole.at(), whole.made())
	}
}

// Starts need validation sentences, and grammars that learn; states of other numbers of them are refused.
func TestRestartsRefuse(t *testing.T) {
	for want, change := range map[string]func(*Config){
		"restarts = 2 compares grammars":                    func(c *Config) { c.Restarts, c.MaxIterations = 2, 5 },
		"restart_updates = 11 is more than updates = 10":    func(c *Config) { c.Restarts, c.RestartUpdates, c.Updates = 2, 11, 10 },
		"restarts = 0 is not between 1":                     func(c *Config) { c.Restarts = 0 },
		`fixed = "small" needs method = "gfn"`:              func(c *Config) { c.Fixed = small },
		"restarts = 3 compares grammars after updates of t": func(c *Config) { c.Restarts, c.Fixed, c.Method = 3, small, GFN },
	} {
		c := QuickConfig()
		change(&c)
		if err := config.Resolve(&c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
	c := tinyConfig(Marginal)
	c.Restarts, c.Updates = 2, 40
	if err := c.Validate(); err != nil || c.RestartUpdates != 4 {
		t.Errorf("%d updates of a start, error %v", c.RestartUpdates, err)
	}
	d := tinyData(t)
	d.Splits = []treebank.Split{d.Splits[0], d.Splits[2]}
	if _, err := NewSession(simd(), c, d); err == nil || !strings.Contains(err.Error(), "restarts = 2 needs validation sentences") {
		t.Errorf("error %v", err)
	}
	state := stateOf(t, tinySession(t, c))
	alone := c
	alone.Restarts = 1
	if err := tinySession(t, alone).Restore(state); err == nil || !strings.Contains(err.Error(), "another number of restarts") {
		t.Errorf("error %v", err)
	}
	s := tinySession(t, c)
	for _, bad := range []string{`"now":3`, `"now":-1`, `"chosen":2`, `"spent":99999999999999999999`} {
		other := state
		other.Arrays = maps.Clone(state.Arrays)
		field, _, _ := strings.Cut(bad, ":")
		other.Extra = []byte(strings.Replace(string(state.Extra), field+":0", bad, 1))
		if err := s.Restore(other); err == nil {
			t.Errorf("a state with %s is restored", bad)
		}
	}
}
