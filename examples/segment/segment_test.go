package main

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gomlx/compute"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gomlx/gomlx/support/xslices"

	"github.com/gfnem/gfnem/backend"
	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/gfn/envtest"
	"github.com/gfnem/gfnem/lvm/lvmtest"
	"github.com/gfnem/gfnem/nn"
)

// small is a model whose segmentations can be listed.
func small() Words {
	return Words{NewLexicon(sentences("abab", "bab", "abbab"), 6, 3, 2)}
}

func sentences(spaced ...string) []Sentence { return xslices.Map(spaced, without) }

func open(t *testing.T) compute.Backend {
	t.Helper()
	b, err := backend.Open("")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestLaws(t *testing.T) {
	m := small()
	envtest.Run(t, m.Env(), m.Observe(sentences("a", "bab", "abcab")...))
	lvmtest.Run(t, m, m.Env())
}

// The dynamic program adds up what enumeration lists, and its gradient is how probable words are.
func TestLogLikelihood(t *testing.T) {
	b, m := open(t), small()
	store := nn.NewStore(3)
	x := []string{"a", "ab", "abab", "babzb", "cxabba"}
	exec := model.MustNewExec(b, store, func(root *model.Scope, x *Node) []*Node {
		logP, words := m.LogLikelihood(root.Store().Scope(em.Theta), x)
		return []*Node{logP, Gradient(ReduceAllSum(logP), words)[0]}
	})
	out := exec.MustCall(m.Observe(sentences(x...)...))
	logP, words := tensors.MustCopyFlatData[float32](out[0]), tensors.MustCopyFlatData[float32](out[1])
	exact := em.Classical{Model: m, Env: m.Env()}
	for i, s := range x {
		d, err := gfn.Enumerate(b, m.Env(), []*tensors.Tensor{m.Observe(without(s))}, 1000)
		if err != nil {
			t.Fatal(err)
		}
		all, err := exact.Posteriors(b, store, m.Observe(without(s)))
		if err != nil {
			t.Fatal(err)
		}
		n := len(d.Objects)
		if got, want := float64(logP[i]), all[0].LogP; math.Abs(got-want) > 1e-5*math.Abs(want) || len(all[0].P) != n {
			t.Errorf("log p(%s) is %.6f, and of %d segmentations %.6f", s, got, n, want)
		}
		cuts := tensors.MustCopyFlatData[int32](all[0].Z[0])
		want := make([]float64, m.Max*m.Longest)
		for k, p := range all[0].P {
			begin := 0
			for end := range s {
				if end == len(s)-1 || cuts[k*(m.Max-1)+end] == 1 {
					want[begin*m.Longest+end-begin] += p
					begin = end + 1
				}
			}
		}
		for j, p := range want {
			if got := float64(words[i*len(want)+j]); math.Abs(got-p) > 1e-5 {
				t.Errorf("%s: the word of %d letters at %d has probability %.6f, by enumeration %.6f",
					s, j%m.Longest+1, j/m.Longest, got, p)
			}
		}
	}
}

// forgetful leaves out that words fill the sentence exactly.
type forgetful struct{ Words }

func (m forgetful) LogJoint(theta *model.Scope, x gfn.Batch, z gfn.State) *Node {
	fill := m.tables(theta, x[0].Graph()).fill
	return Add(m.Words.LogJoint(theta, x, z), Gather(fill, InsertAxes(length(x[0]), 1)))
}

// The laws find a model that is not normalised.
func TestForgetful(t *testing.T) {
	m := small()
	if broken := lvmtest.Check(open(t), forgetful{m}, m.Env()); len(broken) == 0 {
		t.Error("no law is broken by a model without Z(n)")
	}
}

// A short training by either method makes held-out sentences more probable, by about as much, and finds words. The same
// seed gives the same bits.
func TestTraining(t *testing.T) {
	b := open(t)
	train := func() (exact, gflownet []state) {
		e, err := newExperiment(b, "", 1, 40)
		if err != nil {
			t.Fatal(err)
		}
		e.train, e.test = e.train[:1000], e.test[:200]
		r, err := e.run()
		if err != nil {
			t.Fatal(err)
		}
		return r.exact, r.gflownet
	}
	exact, gflownet := train()
	start, a, b1 := exact[0], last(exact), last(gflownet)
	t.Logf("at the start %+v, by exact EM %+v, by GFlowNet-EM %+v", start, a, b1)
	if a.logP < start.logP+5 || math.Abs(b1.logP-a.logP) > 1 || min(a.f1, b1.f1, b1.f1ByQ) < 0.8 || b1.kl < 0 {
		t.Errorf("from %+v, exact EM comes to %+v, and GFlowNet-EM to %+v", start, a, b1)
	}
	if _, again := train(); last(again) != b1 {
		t.Errorf("the same training ends at %+v and at %+v", b1, last(again))
	}
}

func TestF1(t *testing.T) {
	s := sentences("a bc d", "ab c")
	end := func(i, t int) bool { return t == 0 } // one of two, of three true ones
	if got := f1(s, end); math.Abs(got-2*1./(2+3)) > 1e-9 {
		t.Errorf("F1 is %g", got)
	}
	if got := f1(sentences("ab"), end); !math.IsNaN(got) {
		t.Errorf("F1 is %g where no word ends are known", got)
	}
}

func TestRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sentences")
	lines := strings.Repeat("The cat sat\n", 150) + "don't\n\n" + strings.Repeat("a", 21) + "\n"
	if err := os.WriteFile(path, []byte(lines), 0o666); err != nil {
		t.Fatal(err)
	}
	c, said, err := read(path, 20)
	if err != nil {
		t.Fatal(err)
	}
	want := "150 sentences; skipped 1 with anything but letters from a to z, and 1 of more than 20 letters"
	if said != want || len(c.train) != 120 || len(c.test) != 30 || c.test[0].String() != "the cat sat" {
		t.Errorf("%d and %d sentences such as %q: %s", len(c.train), len(c.test), c.test[0], said)
	}
	if _, _, err := read(path, 5); err == nil {
		t.Error("a file whose sentences are all too long is no error")
	}
}
