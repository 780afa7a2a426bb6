package em

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/internal/program"
)

// candidates are latents of some observations, [B*M,...] and [B,M].
type candidates[T any] struct {
	Z            []T
	LogR, Usable T
	K            int
}

type choice[T any] struct{ Chosen, Count T }

// slowBest chooses one after the other: [B][at most k] numbers.
func slowBest(keys []string, logR []float32, usable []int32, m, k int) (out [][]int) {
	for from := 0; from < len(keys); from += m {
		var order, chosen []int
		for i := range m {
			order = append(order, i)
		}
		slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(logR[from+j], logR[from+i]) })
		for _, i := range order {
			same := func(j int) bool { return keys[from+j] == keys[from+i] }
			if usable[from+i] == 1 && len(chosen) < k && !slices.ContainsFunc(chosen, same) {
				chosen = append(chosen, i)
			}
		}
		out = append(out, chosen)
	}
	return out
}

// The best distinct latents are those that a slow search finds, also among equal ones, equal rewards and unusable ones.
func TestBestDistinct(t *testing.T) {
	const seed = 21
	t.Logf("seed %d", seed)
	bothBackends(t, func(t *testing.T, b compute.Backend) {
		p := program.NewSet(b, nil)
		defer p.Close()
		run := program.New[candidates[*tensors.Tensor], choice[*tensors.Tensor]](p, "best", func(
			in candidates[*graph.Node],
		) (out choice[*graph.Node]) {
			out.Chosen, out.Count = bestDistinct(in.Z, in.LogR, graph.GreaterThan(in.Usable, graph.ZerosLike(in.Usable)), in.K)
			return out
		})
		r := rand.New(rand.NewPCG(seed, 0))
		for range 40 {
			const n = 6
			m, k := 1+r.IntN(7), 1+r.IntN(4)
			var pairs [][]int32
			var flags []bool
			var keys []string
			var logR []float32
			var usable []int32
			rewards := make(map[string]float32)
			for range n * m {
				pair, flag := []int32{int32(r.IntN(2)), int32(r.IntN(2))}, r.IntN(2) == 0
				key := string(rune(pair[0])) + string(rune(pair[1]))
				if flag {
					key += "!"
				}
				if _, ok := rewards[key]; !ok {
					rewards[key] = float32(r.IntN(5) - 2) // equal ones have equal rewards, and so have some others
				}
				pairs, flags, keys, logR = append(pairs, pair), append(flags, flag), append(keys, key), append(logR, rewards[key])
				if r.IntN(4) == 0 { // what is not usable may have any reward
					logR[len(logR)-1] = []float32{9, float32(math.Inf(-1)), float32(math.NaN())}[r.IntN(3)]
					usable = append(usable, 0)
				} else {
					usable = append(usable, 1)
				}
			}
			out, err := run.Call(candidates[*tensors.Tensor]{
				Z:    []*tensors.Tensor{tensors.FromValue(pairs), tensors.FromValue(flags)},
				LogR: tensors.FromFlatDataAndDimensions(logR, n, m), Usable: tensors.FromFlatDataAndDimensions(usable, n, m), K: k,
			})
			if err != nil {
				t.Fatal(err)
			}
			chosen, count := tensors.MustCopyFlatData[int32](out.Chosen), tensors.MustCopyFlatData[int32](out.Count)
			for i, want := range slowBest(keys, logR, usable, m, k) {
				var have []int
				for _, c := range chosen[i*k : i*k+int(count[i])] {
					have = append(have, int(c))
				}
				if at := i * m; !slices.Equal(have, want) {
					t.Fatalf("of %q with rewards %v, usable %v: %v, want %v",
						keys[at:at+m], logR[at:at+m], usable[at:at+m], have, want)
				}
			}
		}
	})
}

// A memory holds, for each observation, the best distinct latents of those that it held and those that wake has
// drawn, by the rewards of the model as it is. A skipped update changes nothing, nor does one on other observations.
func TestMemoryTwin(t *testing.T) {
	const seed, k = 22, 2
	t.Logf("seed %d", seed)
	bothBackends(t, func(t *testing.T, b compute.Backend) {
		m := newToy(3, dtypes.Float32)
		numbers, err := Batches(4, 3, m.observations())
		if err != nil {
			t.Fatal(err)
		}
		spec := seen(toySpec(m))
		spec.Wake.Memory = Memory{Latents: k, Data: m.observations(), Rows: numbers}
		spec.Data = func(step uint64) []*tensors.Tensor {
			extra := make([]float32, 3)
			if step == 6 {
				extra[1] = float32(math.NaN())
			}
			return []*tensors.Tensor{m.rows(numbers(step)...), tensors.FromValue(extra)}
		}
		l := newLearner(t, b, spec)
		r := rand.New(rand.NewPCG(seed, 0))
		twin := make([][][2]int32, m.observations())
		var batch []int
		var logP [][]float64
		l.E = watched{l.E, func(_, z []*tensors.Tensor, ok bool) {
			if !ok {
				return
			}
			for i, latent := range z[0].Value().([][]int32) {
				x := batch[i]
				all := append(slices.Clone(twin[x]), [2]int32(latent))
				slices.SortStableFunc(all, func(u, v [2]int32) int {
					return cmp.Compare(logP[x][v[0]+2*v[1]], logP[x][u[0]+2*u[1]])
				})
				all = slices.Compact(all)
				twin[x] = all[:min(k, len(all))]
			}
		}}
		forgotten := 0
		for step := range 60 {
			if step%5 == 4 { // the model moves
				emit := make([]float64, len(m.emit))
				for i := range emit {
					emit[i] = 2 * r.NormFloat64()
				}
				setVariable(t, l.Store(), Theta+"/emit", floats(m.dtype, emit, m.latents(), m.bits))
			}
			before := slices.Clone(twin)
			batch, logP = slices.Clone(numbers(uint64(step))), m.learned(t, l.Store())
			if rep := steps(t, l, 1); rep.Wake.OK == (step == 6) {
				t.Errorf("step %d: %+v", step, rep.Wake)
			}
			table := l.Store().GetVariable(Kept + "/memory/z0").MustValue().Value().([][][]int32)
			filled := l.Store().GetVariable(Kept + "/memory/filled").MustValue().Value().([]int32)
			for x, want := range twin {
				var have [][2]int32
				for _, z := range table[x][:filled[x]] {
					have = append(have, [2]int32(z))
				}
				if !slices.Equal(have, want) {
					t.Fatalf("step %d, observation %d: %v, want %v", step, x, have, want)
				}
				if len(before[x]) == k && !slices.Equal(before[x], want) {
					forgotten++
				}
			}
		}
		if forgotten < 5 {
			t.Errorf("a full memory has changed %d times only", forgotten)
		}
	})
}

// Remembered latents of another observation, which begin in another initial state, are an error that names the numbers.
func TestMisplaced(t *testing.T) {
	m, b := words{}, newBackend(t)
	for _, wrong := range []bool{false, true} {
		x := m.all()
		count := x[0].Shape().Dim(0)
		in := func(step uint64) []int { // each in its place, or the other way round from the second batch on
			var out []int
			for i := range count {
				if wrong && step > 0 {
					i = count - 1 - i
				}
				out = append(out, i)
			}
			return out
		}
		l := newLearner(t, b, Spec{
			Model: m, Env: m.env(), Policy: reader{}, Data: Full(x...), Seed: 5, Gate: Never,
			Wake: Wake{Objective: gfn.DB{}, Memory: Memory{Latents: 2, Data: count, Rows: in}},
		})
		steps(t, l, 1)
		_, err := l.Step()
		if !wrong && err != nil {
			t.Error(err)
		}
		if wrong && (err == nil ||
			!strings.Contains(err.Error(), "Wake.Memory.Rows numbers observations otherwise than before")) {
			t.Errorf("error %v", err)
		}
	}
}

// A latent that the model has come to think impossible is not learned from and is forgotten, and training goes on.
func TestForgetsImpossible(t *testing.T) {
	b := newBackend(t)
	m := newToy(3, dtypes.Float32)
	spec := toySpec(m)
	spec.Wake.Samples, spec.Gate = 1, never
	spec.Wake.Memory = Memory{Latents: 6, Data: m.observations()}
	spec.Wake.Explore.Epsilon = Constant(1) // draws everything
	l := newLearner(t, b, spec)
	steps(t, l, 40)
	if filled := l.Store().GetVariable(Kept + "/memory/filled").MustValue().Value().([]int32); slices.Min(filled) < 6 {
		t.Fatalf("remembered are %v latents", filled)
	}
	// Latent (0,0), number 0, becomes impossible, and the policy does not draw it.
	spec.Wake.Reward = func(theta *model.Scope, x gfn.Batch, z gfn.State) *graph.Node {
		logP, none := m.LogJoint(theta, x, z), graph.ReduceSum(graph.Abs(z[0]), 1)
		return graph.Where(graph.IsZero(none), graph.AddScalar(logP, math.Inf(-1)), logP)
	}
	_, states := tablePolicy{m}.radix()
	away := make([]float64, m.observations()*states*3)
	for x := range m.observations() {
		away[tablePolicy{m}.row(x, []int{0})*3] = -50
	}
	setVariable(t, l.Store(), Phi+"/logits", floats(m.dtype, away, m.observations()*states, 3))
	spec.Wake.Explore.Epsilon = Linear{}
	l = resume(t, b, spec, l)
	r := steps(t, l, 1)
	if bad := r.Wake.Scores.Impossible + r.Wake.Scores.Undefined; !r.Wake.OK || math.IsInf(r.Wake.Loss, 0) || bad > 0 {
		t.Errorf("an update beside an impossible latent: %+v", r.Wake)
	}
	filled := l.Store().GetVariable(Kept + "/memory/filled").MustValue().Value().([]int32)
	if slices.Min(filled) != 5 || slices.Max(filled) != 5 {
		t.Errorf("remembered are %v latents, want 5 of each", filled)
	}
}
