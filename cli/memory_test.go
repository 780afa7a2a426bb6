package cli

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/cli/command"
	"github.com/gfnem/gfnem/config"
	"github.com/gfnem/gfnem/grammar/results"
	"github.com/gfnem/gfnem/internal/memory"
	"github.com/gfnem/gfnem/internal/self"
	"github.com/gfnem/gfnem/mixture"
	"github.com/gfnem/gfnem/run"
	"github.com/gfnem/gfnem/vae"
)

// What is named is far above the preset, the furthest first; keys that the method does not heed are not.
func TestLargeKeys(t *testing.T) {
	all := Program{Tasks: []run.Task{mixture.Task{}, results.Task{}, vae.Task{}}}
	for _, c := range []struct {
		task string
		set  config.Set
		want []string
	}{
		{"grammar", config.Set{"batch=1000", "model.nonterminals=40", "policy.width=4096"},
			[]string{"batch", "model.nonterminals"}},
		{"grammar", config.Set{"method=gfn", "batch=32", "policy.width=4096"}, []string{"policy.width", "batch"}},
		{"grammar", config.Set{"method=gfn", "wake.samples=40", "wake.replay=30"}, []string{"wake.replay", "wake.samples"}},
		{"mixture", config.Set{"points=10000000"}, []string{"points"}},
		{"mixture", nil, []string{"points", "model.super", "model.petals", "policy.hidden"}},
		{"vae", config.Set{"model.rows=8", "model.columns=4", "wake.samples=200", "batch=64", "model.codes=200"},
			[]string{"wake.samples", "model.rows", "model.codes", "batch"}},
	} {
		task, err := all.find(c.task)
		if err != nil {
			t.Fatal(err)
		}
		cfg := task.Config(task.Presets()[0])
		if err := config.Resolve(cfg, c.set); err != nil {
			t.Fatal(err)
		}
		if got := largeKeys(task, cfg); !slices.Equal(got, c.want) {
			t.Errorf("%s %v: %v, want %v", c.task, c.set, got, c.want)
		}
		for _, key := range cfg.(interface{ MemoryKeys() []string }).MemoryKeys() {
			if !slices.Contains(config.Keys(cfg), key) {
				t.Errorf("%s has no key %q", c.task, key)
			}
		}
	}
}

func TestRefusal(t *testing.T) {
	self.SetName("gfnem")
	command.TakesMemory("a", "b", "c")
	defer command.TakesMemory()
	cause := badinput.Errorf("%w", &memory.Error{What: "a table", Bytes: 3 << 30, Room: 1 << 29, Of: "this machine"})
	var out bytes.Buffer
	if code := complain(&out, fmt.Errorf("graph: compile: %w; what was saved is kept", cause)); code != ExitBadInput {
		t.Errorf("exit code %d", code)
	}
	want := "gfnem: a table needs 3.00 GiB of memory, and this machine leaves 512 MiB: lower a, b or c, or go on " +
		"regardless with --force-memory; what was saved is kept\n"
	if out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
	command.TakesMemory()
	out.Reset()
	complain(&out, &memory.Error{What: "it", Bytes: math.Inf(1), Of: "x"})
	want = "gfnem: it needs +Inf GiB of memory, and x leaves 0 MiB: go on regardless with --force-memory\n"
	if out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}
