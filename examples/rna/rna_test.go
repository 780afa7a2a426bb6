package main

import (
	"math"
	"testing"

	"github.com/gomlx/compute"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"gonum.org/v1/gonum/stat"

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

// codes are the numbers of candidates.
func codes(x []*tensors.Tensor) []int32 { return tensors.MustCopyFlatData[int32](sequencesOf(x).Code) }

// The dynamic program adds up what enumeration lists: log p(x), and the probabilities of pairs.
func TestExact(t *testing.T) {
	b, m := open(t), small(false)
	store := truth(3, 1) // at which structures are probable
	p, err := lvm.Draw(b, store.Scope(em.Theta), m, rng.Key(3, "test"), 12)
	if err != nil {
		t.Fatal(err)
	}
	all, err := em.Classical{Model: m, Env: m.Folding}.Posteriors(b, store, p.X...)
	if err != nil {
		t.Fatal(err)
	}
	logP, marginals, err := m.exactly(b, store, p.X)
	if err != nil {
		t.Fatal(err)
	}
	most, sure := 0, 0.0
	for i, l := range all {
		most = max(most, len(l.P))
		if math.Abs(l.LogP-logP[i]) > 1e-4 { // LogJoint has float32
			t.Errorf("log p(x) of sequence %d with %d structures is %.6f, and by dynamic programming %.6f", i, len(l.P), l.LogP, logP[i])
		}
		want := make(pairs, m.N*m.N)
		for k, z := range m.drawn(l.Z) {
			for j, in := range z {
				want[j] += in * l.P[k]
			}
		}
		for j, v := range want {
			if sure = max(sure, v); math.Abs(v-marginals[i][j]) > 1e-4 {
				t.Errorf("sequence %d: bases %d and %d pair with probability %.6f, and by dynamic programming %.6f", i, j/m.N, j%m.N, v,
					marginals[i][j])
			}
		}
	}
	if most < 10 || sure < 0.1 {
		t.Errorf("no sequence has more than %d structures, and no pair a probability above %g", most, sure)
	}
}

// Alone, a candidate adds to log p(x,z) what the policy reads of the model.
func TestOdds(t *testing.T) {
	b, m := open(t), small(false)
	store := truth(4, 1)
	p, err := lvm.Draw(b, store.Scope(em.Theta), m, rng.Key(4, "test"), 12)
	if err != nil {
		t.Fatal(err)
	}
	got := model.MustNewExec(b, store, func(root *model.Scope, x []*Node) []*Node {
		theta, in, q := root.Store().Scope(em.Theta), sequencesOf(x), policy{m}
		t := q.tables(theta, in.Bases.Graph())
		alone, _ := q.odds(t, count(in.Bases), q.alone(t, in.Bases, in.Code), structureOf(m.Initial(x)))
		none := m.LogJoint(theta, x, m.Of(ZerosLike(in.Code), in.Code))
		var joint []*Node
		for k := range m.K {
			hit := Equal(Iota(none.Graph(), in.Code.Shape(), 1), Scalar(none.Graph(), integer, k))
			joint = append(joint, Sub(m.LogJoint(theta, x, m.Of(ConvertDType(hit, integer), in.Code)), none))
		}
		return []*Node{alone, Stack(joint, 1)}
	}).MustCall(p.X[0], p.X[1], p.X[2])
	alone, joint := tensors.MustCopyFlatData[float32](got[0]), tensors.MustCopyFlatData[float32](got[1])
	n := 0
	for i, code := range codes(p.X) {
		if code >= 0 {
			if n++; math.Abs(float64(alone[i]-joint[i])) > 1e-3 {
				t.Errorf("candidate %d of sequence %d adds %.4f, and the policy reads %.4f", i%m.K, i/m.K, joint[i], alone[i])
			}
		}
	}
	if n < 20 {
		t.Errorf("there are %d candidates", n)
	}
}

// A short training brings q nearer to the exact posterior, while the model comes nearer to the data.
func TestTraining(t *testing.T) {
	b, m := open(t), small(false)
	d, err := options{seed: 5, train: 32}.made(b, m, 2)
	if err != nil {
		t.Fatal(err)
	}
	s := defaults(5, 60)
	s.First = 60
	store := nn.NewStore(s.Seed)
	l, err := em.New(b, store, s.spec(m, em.Full(d.train.X...)))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	look := func() (distance, logP float64) {
		v, err := m.variation(b, store, take(d.test.X, 0, 10))
		if err != nil {
			t.Fatal(err)
		}
		exact, _, err := m.exactly(b, store, d.train.X)
		if err != nil {
			t.Fatal(err)
		}
		return stat.Mean(v.distance, nil), stat.Mean(exact, nil)
	}
	far, start := look()
	if err := l.Train(t.Context(), func(at em.State) bool { return at.M == s.Updates }, nil); err != nil {
		t.Fatal(err)
	}
	near, end := look()
	t.Logf("total variation %.3f, then %.3f; log p(x) %.2f, then %.2f", far, near, start, end)
	if near > 0.04 || far < 2*near {
		t.Errorf("total variation of q from the posterior was %.3f, and is %.3f", far, near)
	}
	if end < start+0.5 {
		t.Errorf("log p(x) went from %.2f to %.2f", start, end)
	}
}
