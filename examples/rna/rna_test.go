package main

import (
	"math"
	"slices"
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

// What a candidate adds to log p(x,z) is what the policy reads of the model, whatever else is chosen.
func TestOdds(t *testing.T) {
	b := open(t)
	m := RNA{Folding{N: 24, K: 160, Shortest: 1, Longest: 2}, uniform(20, 24)}
	store := truth(4, 2)
	p, err := lvm.Draw(b, store.Scope(em.Theta), m, rng.Key(4, "test"), 200)
	if err != nil {
		t.Fatal(err)
	}
	exec := model.MustNewExec(b, store, func(root *model.Scope, in []*Node) []*Node {
		theta, q := root.Store().Scope(em.Theta), policy{m}
		x, z := sequencesOf(in), structureOf(in[3:])
		of := m.Of(z.Chosen, z.Code)
		t := q.tables(theta, z.Code.Graph())
		odds, _ := q.odds(t, count(x.Bases), q.bases(t, x), structureOf(of))
		return []*Node{odds, m.LogJoint(theta, in[:3], of)}
	})
	ask := func(chosen []int32) (odds, joint []float32) {
		z := tensors.FromFlatDataAndDimensions(chosen, 200, m.K)
		out := exec.MustCall(p.X[0], p.X[1], p.X[2], z, z, p.X[1], p.X[1])
		return tensors.MustCopyFlatData[float32](out[0]), tensors.MustCopyFlatData[float32](out[1])
	}
	full := tensors.MustCopyFlatData[int32](structureOf(p.Z).Chosen)
	_, with := ask(full)
	compared, most := 0, 0
	for drop := range 3 { // of the helices of each structure
		less, which := slices.Clone(full), make([]int, 200)
		for i := range which {
			var in []int
			for k := i * m.K; k < (i+1)*m.K; k++ {
				if full[k] == 1 {
					in = append(in, k)
				}
			}
			if which[i] = -1; len(in) > drop {
				which[i], most = in[drop], max(most, len(in))
				less[in[drop]] = 0
			}
		}
		odds, without := ask(less)
		for i, k := range which {
			if k < 0 {
				continue
			}
			if compared++; math.Abs(float64(odds[k]-(with[i]-without[i]))) > 1e-3 {
				t.Errorf("sequence %d: helix %d adds %.4f, and the policy reads %.4f", i, k%m.K, with[i]-without[i], odds[k])
			}
		}
	}
	if compared < 300 || most < 3 {
		t.Errorf("%d helices were compared, of at most %d in a structure", compared, most)
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
