package forest

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/engine"
	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/internal/testkit"
)

// shared is a backend for tests that use tensors of one rig with another.
var shared = sync.OnceValue(func() compute.Backend {
	b, err := engine.New("")
	if err != nil {
		panic(err)
	}
	return b
})

// tinyRig is a small network for the tiny grammar's sentences.
func tinyRig(t testing.TB, seed uint64, sentences ...[]int32) *rig {
	t.Helper()
	var lengths []int32
	for _, s := range sentences {
		lengths = append(lengths, int32(len(s)))
	}
	r := newRig(t, seed, dtypes.Float64, lengths...)
	r.b, r.Words, r.Labels, r.Preterminals = shared(), 3, 2, 2
	flat := make([]int32, len(sentences)*r.n)
	for i, s := range sentences {
		copy(flat[i*r.n:], s)
	}
	r.words = tensors.FromFlatDataAndDimensions(flat, len(sentences), r.n)
	return r
}

// change gives the network's variables other values.
func (r *rig) change(t testing.TB, f func(path string, x []float64)) {
	t.Helper()
	r.weights(r.scope(), NewGraph(r.b, "weights")) // makes the variables
	for v := range r.store.RootScope().IterVariables() {
		x := float64s(t, v.MustValue())
		f(v.Path(), x)
		if err := v.SetValue(tensors.FromFlatDataAndDimensions(x, v.Shape().Dimensions...)); err != nil {
			t.Fatal(err)
		}
	}
}

// flat makes the network say nothing: uniform policies, and flows of zero.
func (r *rig) flat(t testing.TB) {
	t.Helper()
	r.change(t, func(path string, x []float64) {
		if strings.Contains(path, "/readout/") {
			clear(x)
		}
	})
}

// rewarded scores histories and gives them their rewards.
func (r *rig) rewarded(g *grammar.Grammar, h History) gfn.Path {
	q := potentials(g, h)
	nodes, logR := q.ScoreTrees(h.Trees).Nodes, q.LogTree(h.Trees)
	most := h.When.Shape().Dim(1)
	return r.Score(r.scope(), 1000, Histories{h, most})[0].Rewarded(g.Kind, nodes, logR)
}

func checkNumber(t testing.TB, what string, got, want, within float64) {
	t.Helper()
	if !(math.Abs(got-want) <= within) {
		t.Errorf("%s is %.10f, want %.10f", what, got, want)
	}
}

// eight is the precision of reference numbers that have eight decimals.
const eight = 0.51e-8

type lossesOf[T any] struct{ SubTB, HalfSubTB, TB, LogR, LogPB T }

// TestReferenceLosses checks losses of two given paths under uniform policies and flows of zero, scored by the network
// itself in one padded batch.
func TestReferenceLosses(t *testing.T) {
	t.Parallel()
	paths := []hostPath{
		{words: []int32{0, 1, 2}, steps: []closing{{1, 1}, {0, 0}}},            // A[0 B[1 2]]
		{words: []int32{2, 0, 1, 1}, steps: []closing{{0, 0}, {2, 1}, {1, 1}}}, // B[A[2 0] B[1 1]]
	}
	r := tinyRig(t, 1, paths[0].words, paths[1].words)
	r.flat(t)
	// By path: SubTB with lambda 1 and 0.5, TB, log p(x,z). NaN where there is no reference.
	for kind, want := range map[grammar.Kind][2][4]float64{
		grammar.CFG:  {{15.95251036, 12.90340443, 31.19804000, -7.66496211}, {26.51414129, math.NaN(), math.NaN(), -11.42282318}},
		grammar.NCFG: {{28.99595458, 28.08650742, 33.54319039, -7.87108987}, {math.NaN(), math.NaN(), math.NaN(), -12.55193099}},
	} {
		out := call[lossesOf[*tensors.Tensor]](t, r, func(h History) lossesOf[*Node] {
			p := r.rewarded(tinyGrammar(kind), h)
			return lossesOf[*Node]{gfn.SubTB{}.Loss(p), gfn.SubTB{Lambda: 0.5}.Loss(p), gfn.TB{}.Loss(p), p.LogR, p.LogPB}
		}, pack(5, paths))
		numbers := []*tensors.Tensor{out.SubTB, out.HalfSubTB, out.TB, out.LogR}
		for b := range paths {
			for i, what := range []string{"SubTB", "SubTB with lambda 0.5", "TB", "log p(x,z)"} {
				if !math.IsNaN(want[b][i]) {
					checkNumber(t, fmt.Sprintf("%s, path %d: %s", kind, b, what), float64s(t, numbers[i])[b], want[b][i], eight)
				}
			}
		}
		for i, want := range []float64{0, 0, 0, 0, 0, -math.Ln2, 0, 0} {
			checkNumber(t, fmt.Sprintf("log P_B %d", i), float64s(t, out.LogPB)[i], want, 1e-12)
		}
	}
}

type rewardsOf[T any] struct{ Partial, LogR, Terminal, Valid T }

// TestPartialRewards compares the partial rewards of sampled paths of many lengths with those of their forests on the
// host. At the last state they lack the rule of ROOT and, where the parent matters, the top.
func TestPartialRewards(t *testing.T) {
	t.Parallel()
	seed := testkit.Seed(t)
	r := tinyRig(t, seed, []int32{0, 1, 2, 0, 1}, []int32{2, 1}, []int32{2, 0, 1, 1}, []int32{0, 1, 2}, []int32{1, 1, 0, 2, 2}, []int32{0, 0, 0, 1})
	wake := r.wake(t, seed, plain)
	paths := pathsOf(r, wake)
	for _, kind := range []grammar.Kind{grammar.CFG, grammar.NCFG} {
		g := tinyGrammar(kind)
		out := call[rewardsOf[*tensors.Tensor]](t, r, func(in walked[Sentences, Walk]) rewardsOf[*Node] {
			p := r.rewarded(g, in.Wake.Built(in.Sentences.Words))
			number := func(x *Node) *Node { return ConvertDType(x, dtypes.Float64) }
			return rewardsOf[*Node]{p.Partial, p.LogR, number(p.Terminal), number(p.Valid)}
		}, r.walked(wake, WalkTensors{}))
		partial, logR := float64s(t, out.Partial), float64s(t, out.LogR)
		terminal, valid := float64s(t, out.Terminal), float64s(t, out.Valid)
		for b, p := range paths {
			states := forests(len(p.words), p.steps)
			last := len(p.steps)
			for at := range r.n {
				what := fmt.Sprintf("%s, sentence %d, state %d", kind, b, at)
				checkNumber(t, what+": partial reward", partial[b*r.n+at], partialReward(g, p.words, states[min(at, last)]), 1e-12)
				checkNumber(t, what+": terminal", terminal[b*r.n+at], oneIf(at >= last), 0)
				if at < r.n-1 {
					checkNumber(t, what+": valid", valid[b*(r.n-1)+at], oneIf(at < last), 0)
				}
			}
			z := states[last][0]
			rest := math.Log(g.Root[z.label])
			if kind == grammar.NCFG {
				rest += nodeScore(g, p.words, z, nil)
			}
			checkNumber(t, fmt.Sprintf("%s, sentence %d: log p(x,z)", kind, b), partial[b*r.n+last]+rest, logR[b], 1e-12)
			checkNumber(t, fmt.Sprintf("%s, sentence %d: log p(x,z) on the host", kind, b), logR[b], logJoint(g, p.words, z), 1e-12)
		}
	}
}

func oneIf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
