// Package lvmtest checks that a model keeps the laws of lvm.Model, and those of lvm.Maximizer, lvm.Exponential and
// lvm.Tabler if it is one:
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
//
// Five laws are statistical. They are tested on 65,536 pairs (x,z) of Sample, and a model that keeps them is reported with
// probability FalseAlarm at most. They look at:
//
//   - the gradient of LogJoint, whose expectation is zero: whatever depends on variables. Presumed is that nothing that a
//     variable governs is rarer than about one in a thousand; an expected gradient below 0.002 is overlooked;
//   - how much batches differ, which says whether rows are independent;
//   - moves of z by gfn.BackForth, with LogJoint as reward and a uniform policy, that are to leave the distribution of
//     (x,z) as it is (Geweke's test): log p(x,z), every entry of z and their sum. A forgotten term like 2|z| is found so;
//   - log p(z|x), by enumeration of up to 1,024 latents: a LogJoint that is 1.05 times the true one thinks itself surer of
//     z than it is;
//   - how often pairs occur again, if x are whole numbers and few enough: also terms that do not depend on z.
//
// The log says what was seen, and what could not be tested. Overlooked is what changes little: a factor of 1.05, say, where x
// are no whole numbers and latents too many to list, unless moves are often accepted, or where z follows from x.
func Run(t *testing.T, m lvm.Model, env gfn.Env) {
	t.Helper()
	b, err := backend.Open("")
	if err != nil {
		t.Fatal(err)
	}
	defer b.Finalize()
	t.Logf("lvmtest: seed %d", Seed)
	c := check(b, m, env, Seed)
	for _, n := range c.Seen {
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
	c := checker(b, m, env, seed)
	defer c.Close()
	if c.Check() {
		c.Maximum()
	}
	return c
}

func checker(b compute.Backend, m lvm.Model, env gfn.Env, seed uint64) *modellaws.Checker {
	return &modellaws.Checker{
		Set: program.NewSet(b, nn.NewStore(seed)), Model: m, Env: env, Theta: "/theta", Seed: seed,
	}
}
