// Package envtest checks that an environment keeps the laws of gfn.Env:
//
//	func TestForest(t *testing.T) { envtest.Run(t, forest.New(6, 3)) }
package envtest

import (
	"testing"

	"github.com/gomlx/compute"
	_ "github.com/gomlx/compute/gobackend" // the backend of Run
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/internal/envlaws"
)

// seed of the random walks.
const seed = 1

// Run fails t for every law that env breaks. The observations x share a batch axis, and each row is tried that has another
// initial state than those before; environments that ignore x need none.
//
// All states are checked if there are at most 5000, else those on random walks, forward and back.
func Run(t *testing.T, env gfn.Env, x ...*tensors.Tensor) {
	t.Helper()
	// One operation at a time: in parallel, large matrix products can take all workers and wait for more forever.
	b, err := compute.NewWithConfig("go:ops_sequential")
	if err != nil {
		t.Fatalf("envtest: open backend: %v", err)
	}
	defer b.Finalize()
	own := make([]*tensors.Tensor, len(x)) // the caller's may be on another backend, or go there
	for i := range x {
		if own[i], err = x[i].LocalClone(); err != nil {
			t.Fatalf("envtest: copy tensor %d of x: %v", i, err)
		}
	}
	c := check(b, env, own)
	if c.Walked > 0 {
		t.Logf("envtest: more than %d states: %d random walks, seed %d", envlaws.Limit, envlaws.Walks, seed)
	}
	for _, v := range c.Lines() {
		t.Errorf("envtest: broken law: %s", v)
	}
}

// Check returns the laws that env breaks, one line each, with an example.
func Check(b compute.Backend, env gfn.Env, x ...*tensors.Tensor) []string {
	return check(b, env, x).Lines()
}

func check(b compute.Backend, env gfn.Env, x []*tensors.Tensor) *envlaws.Checker {
	c := &envlaws.Checker{Backend: b, Env: env, Seed: seed}
	c.Check(x)
	return c
}
