package main

import (
	"math"
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
		if got, want := float64(logP[i]), all[0].LogP; math.Abs(got-want) > 1e-5*math.Abs(want) || len(all[0].P) != len(d.Objects) {
			t.Errorf("log p(%s) is %.6f, and of %d segmentations %.6f", s, got, len(d.Objects), want)
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
				t.Errorf("%s: the word of %d letters at %d has probability %.6f, by enumeration %.6f", s, j%m.Longest+1, j/m.Longest, got, p)
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
