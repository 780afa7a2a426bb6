// Package lvmtest checks that a model keeps the laws of lvm.Model, and those of lvm.Maximizer and lvm.Tabler if it is
// one:
//
//	func TestModel(t *testing.T) { lvmtest.Run(t, noisyOR{}, envs.Uniform(10, 2)) }
package lvmtest

import (
	"testing"

	"github.com/gomlx/compute"

	"github.com/gfnem/gfnem/backend"
	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/internal/modellaws"
	"github.com/gfnem/gfnem/internal/program"
	"github.com/gfnem/gfnem/lvm"
	"github.com/gfnem/gfnem/nn"
)

// Seed is that of the variables and of all samples.
const Seed = 1

// FalseAlarm bounds the probability, over seeds, that a model which keeps the laws is found to break one.
const FalseAlarm = modellaws.FalseAlarm

// Run fails t for every law that the model breaks at the values that its variables start with in nn.NewStore(Seed). The
// latents of the model are terminal states of env.
func Run(t *testing.T, m lvm.Model, env gfn.Env) {
	t.Helper()
	b, err := backend.Open("")
	if err != nil {
		t.Fatal(err)
	}
	defer b.Finalize()
	t.Logf("lvmtest: seed %d", Seed)
	c := check(b, m, env, Seed)
	for _, n := range c.Notes {
		t.Logf("lvmtest: %s", n)
	}
	for _, v := range c.Lines() {
		t.Errorf("lvmtest: broken law: %s", v)
	}
}

// Check returns the laws that the model breaks, one line each, with an example.
func Check(b compute.Backend, m lvm.Model, env gfn.Env) []string {
	return check(b, m, env, Seed).Lines()
}

func check(b compute.Backend, m lvm.Model, env gfn.Env, seed uint64) *modellaws.Checker {
	c := &modellaws.Checker{
		Set: program.NewSet(b, nn.NewStore(seed)), Model: m, Env: env, Theta: "/theta", Seed: seed,
	}
	defer c.Close()
	if c.Check() {
		c.Maximum()
	}
	return c
}
