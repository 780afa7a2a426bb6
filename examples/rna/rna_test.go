package main

import (
	"math"
	"testing"

	"github.com/gomlx/compute"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/backend"
	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/gfn/envtest"
	"github.com/gfnem/gfnem/lvm"
	"github.com/gfnem/gfnem/lvm/lvmtest"
	"github.com/gfnem/gfnem/nn"
	"github.com/gfnem/gfnem/rng"
)

// small is a model of sequences of 8 and 10 bases.
func small(knots bool) RNA {
	m := RNA{Folding: Folding{N: 10, K: 40, Shortest: 1, Longest: 3, Knots: knots}, Lengths: make([]float32, 11)}
	for n := range m.Lengths {
		m.Lengths[n] = never
	}
	m.Lengths[8], m.Lengths[10] = float32(math.Log(0.25)), float32(math.Log(0.75))
	return m
}

func open(t *testing.T) compute.Backend {
	t.Helper()
	b, err := backend.Open("")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// drawn are pairs of a model whose variables start with a seed.
func drawn(t *testing.T, b compute.Backend, m RNA, seed uint64, n int) (*model.Store, lvm.Pairs) {
	t.Helper()
	store := nn.NewStore(seed)
	p, err := lvm.Draw(b, store.Scope(em.Theta), m, rng.Key(seed, "test"), n)
	if err != nil {
		t.Fatal(err)
	}
	return store, p
}

func TestLaws(t *testing.T) {
	b := open(t)
	for _, knots := range []bool{false, true} {
		m := small(knots)
		_, p := drawn(t, b, m, 1, 3)
		envtest.Run(t, m.Folding, p.X...)
		lvmtest.Run(t, m, m.Folding)
	}
}

// The dynamic program adds up what enumeration lists.
func TestInside(t *testing.T) {
	b, m := open(t), small(false)
	store, p := drawn(t, b, m, 3, 12)
	all, err := em.Classical{Model: m, Env: m.Folding}.Posteriors(b, store, p.X...)
	if err != nil {
		t.Fatal(err)
	}
	exec := model.MustNewExec(b, store, func(root *model.Scope, bases *Node) *Node {
		logP, _ := m.Inside(root.Store().Scope(em.Theta), bases)
		return logP
	})
	got := tensors.MustCopyFlatData[float64](exec.MustCall(p.X[0])[0])
	most := 0
	for i, l := range all {
		most = max(most, len(l.P))
		if math.Abs(l.LogP-got[i]) > 1e-4 {
			t.Errorf("log p(x) of sequence %d with %d structures is %.6f, and by dynamic programming %.6f", i, len(l.P), l.LogP, got[i])
		}
	}
	if most < 20 {
		t.Errorf("no sequence has more than %d structures", most)
	}
}
