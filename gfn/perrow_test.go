package gfn_test

import (
	"fmt"
	"math"
	"testing"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/gfn/envs"
	"github.com/gfnem/gfnem/internal/testkit"
	"github.com/gfnem/gfnem/rng"
)

// transitions returns the probability of every object after one move from every object, by summing over all numbers of
// steps, all ways back and all ways forth. Ways says how many of the numbers lead over a path of n steps.
func (p *problem) transitions(t gfn.Table, most int, ways func(n int, initial bool) int) [][]float64 {
	d := p.dag
	parents, children := make([][]int, d.Len()), make([][]int, d.Len()) // edges
	for i, e := range d.Edges {
		parents[e.To], children[e.From] = append(parents[e.To], i), append(children[e.From], i)
	}
	number := map[int]int{}
	for k, s := range d.Objects {
		number[s] = k
	}
	matrix := make([][]float64, len(d.Objects))
	for from, z := range d.Objects {
		matrix[from] = make([]float64, len(d.Objects))
		// forth follows all ways from s, where a way of n steps ended that had the sums down of log P_F and log P_B.
		var forth func(s, n, l int, initial bool, weight, downF, downB, upF, upB float64)
		forth = func(s, n, l int, initial bool, weight, downF, downB, upF, upB float64) {
			if len(children[s]) > 0 {
				for _, i := range children[s] {
					forth(d.Edges[i].To, n, l+1, initial, weight, downF, downB, upF+t.LogPF[i], upB+t.LogPB[i])
				}
				return
			}
			to, accept := number[s], 0.0
			if l <= most {
				ratio := float64(ways(l, initial)) / float64(ways(n, initial))
				accept = min(1, ratio*math.Exp(p.logR[to]-p.logR[from]+downF-downB-upF+upB))
			}
			w := weight * math.Exp(upF)
			matrix[from][to] += w * accept
			matrix[from][from] += w * (1 - accept)
		}
		var back func(s, n int, downF, downB float64)
		back = func(s, n int, downF, downB float64) {
			initial := len(parents[s]) == 0
			count := 1 // of K with which the way back ends here
			if initial {
				count = most - n + 1
			}
			if n > 0 {
				forth(s, n, 0, initial, math.Exp(downB)*float64(count)/float64(most), downF, downB, 0, 0)
			}
			if n < most {
				for _, i := range parents[s] {
					back(d.Edges[i].From, n+1, downF+t.LogPF[i], downB+t.LogPB[i])
				}
			}
		}
		back(z, 0, 0, 0)
	}
	return matrix
}

// tempered is what a behaviour makes of a table of logits.
func (p *problem) tempered(beta, epsilon float64) gfn.Table {
	t := p.current()
	mix := func(log []float64, group func(i int) int) []float64 {
		size := map[int]float64{}
		for i := range log {
			size[group(i)]++
			log[i] *= beta
		}
		out := normaliseBy(log, group)
		for i, l := range out {
			out[i] = math.Log((1-epsilon)*math.Exp(l) + epsilon/size[group(i)])
		}
		return out
	}
	return gfn.Table{
		LogPF: mix(t.LogPF, func(i int) int { return p.dag.Edges[i].From }),
		LogPB: mix(t.LogPB, func(i int) int { return p.dag.Edges[i].To }),
	}
}

// leaves is how far a matrix takes chains from their target, in total variation.
func leaves(matrix [][]float64, target []float64) float64 {
	after := make([]float64, len(target))
	for from, row := range matrix {
		for to, p := range row {
			after[to] += target[from] * p
		}
	}
	return gfn.TotalVariation(after, target)
}

// went is what the moves of a batch led to.
type went[T any] struct{ To, Accepted T }

// TestPerRow checks the kernel in which the way back draws its own K, where paths differ in length, with a policy that is
// far from the answer. Its transition matrix, by enumeration, keeps the target exactly. Without the numbers of K that lead
// over the two paths, or as if only one K led to the initial state, it does not. And moves have the probabilities of
// this matrix, and not those of the wrong one.
func TestPerRow(t *testing.T) {
	right := func(most int) func(int, bool) int {
		return func(n int, initial bool) int {
			if initial {
				return most - n + 1
			}
			return 1
		}
	}
	for _, c := range []struct {
		env           gfn.Env
		most          int
		beta, epsilon float64
	}{
		{envs.Hypergrid{Side: 3, Dims: 2}, 0, 1, 0},
		{envs.Hypergrid{Side: 3, Dims: 2}, 3, 0.5, 0.2},
		{envs.Set{Items: 3}, 0, 1, 0},
		{envs.Tokens{Values: 2, Most: 2}, 0, 1, 0},
	} {
		t.Run(fmt.Sprintf("%T, at most %d", c.env, c.most), func(t *testing.T) {
			t.Parallel()
			seed := testkit.Seed(t)
			p := newProblem(t, c.env, seed)
			p.randomise(seed)
			p.numberObjects()
			target := gfn.Normalise(p.logR)
			most := c.most
			if most == 0 {
				most = c.env.Steps()
			}
			table := p.tempered(c.beta, c.epsilon)
			exact := p.transitions(table, most, right(most))
			wrong := p.transitions(table, most, func(int, bool) int { return 1 })
			if d := leaves(exact, target); !(d < 1e-12) {
				t.Errorf("the matrix leaves the target by %g", d)
			}
			if d := leaves(wrong, target); d < 1e-3 {
				t.Errorf("without the numbers of K the matrix leaves the target by %g alone", d)
			}

			const each, batches = 600, 20
			var objects []int32
			for z := range target {
				for range each {
					objects = append(objects, int32(z))
				}
			}
			run := compile[went[*tensors.Tensor], []*tensors.Tensor](t, p, func(x gfn.Batch, r *rng.Stream, z gfn.State) went[*Node] {
				bf := gfn.BackForth{MaxSteps: c.most, PerRow: true, How: behaviour(x[0].Graph(), c.beta, c.epsilon)}
				m := bf.Apply(p.net(), r, x, z, p.reward(x, z), p.reward)
				return went[*Node]{p.number(x, m.State), m.Accepted}
			})
			counts, accepted := make([]int, len(target)*len(target)), 0.0
			var states []*tensors.Tensor
			for _, all := range p.dag.ObjectStates() {
				states = append(states, repeated(all, each))
			}
			for b := range uint64(batches) {
				out := numbers[went[[]float64]](run(len(objects), rng.Key(seed, "per row", b), states))
				accepted += mean(out.Accepted) / batches
				for r, to := range out.To {
					counts[int(objects[r])*len(target)+int(to)]++
				}
			}
			flat := func(matrix [][]float64) (p []float64) {
				for _, row := range matrix {
					for _, v := range row {
						p = append(p, v/float64(len(matrix)))
					}
				}
				return p
			}
			t.Logf("accepted %.2f", accepted)
			if q := chi2(counts, flat(exact)); q < alpha {
				t.Errorf("moves have other probabilities: p-value %g", q)
			}
			if q := chi2(counts, flat(wrong)); q >= alpha {
				t.Errorf("moves have the probabilities of the wrong matrix, too: p-value %g", q)
			}
		})
	}
}

// repeated repeats every row of a tensor of int32 k times.
func repeated(all *tensors.Tensor, k int) *tensors.Tensor {
	dims := append([]int{}, all.Shape().Dimensions...)
	values := tensors.MustCopyFlatData[int32](all)
	width := len(values) / dims[0]
	var rows []int32
	for i := range dims[0] {
		for range k {
			rows = append(rows, values[i*width:(i+1)*width]...)
		}
	}
	dims[0] *= k
	return tensors.FromFlatDataAndDimensions(rows, dims...)
}

// TestPerRowSteps checks that the numbers of steps of two rows are uniform and independent of each other.
func TestPerRowSteps(t *testing.T) {
	seed := testkit.Seed(t)
	p := newProblem(t, envs.Subset{Items: 5, Size: 3}, seed)
	for _, perRow := range []bool{true, false} {
		run := compile[stepsOf[*tensors.Tensor], []*tensors.Tensor](t, p, func(x gfn.Batch, r *rng.Stream, z gfn.State) stepsOf[*Node] {
			m := gfn.BackForth{PerRow: perRow}.Apply(p.net(), r, x, z, p.reward(x, z), p.reward)
			return stepsOf[*Node]{m.Down.Length(), m.Up.Length()}
		})
		_, states := p.chains(rng.New(seed, "steps"), gfn.Normalise(p.logR), 2)
		counts, want := make([]int, 9), make([]float64, 9)
		for i := range want {
			want[i] = 1.0 / 9
		}
		for i := range uint64(1000) {
			out := numbers[stepsOf[[]float64]](run(2, rng.Key(seed, "steps", i), states))
			counts[3*(int(out.Down[0])-1)+int(out.Down[1])-1]++
		}
		if q := chi2(counts, want); (q >= alpha) != perRow {
			t.Errorf("per row %t: pairs of steps %v, p-value %g", perRow, counts, q)
		}
	}
}

// TestPerRowAccepts compares how often moves of both kinds are accepted with the exact answer, where paths differ in
// length: with one K for both directions most proposals cannot be undone.
func TestPerRowAccepts(t *testing.T) {
	seed := testkit.Seed(t)
	for _, env := range []gfn.Env{envs.Hypergrid{Side: 4, Dims: 2}, envs.Set{Items: 4}} {
		p := newProblem(t, env, seed)
		run := compile[went[*tensors.Tensor], []*tensors.Tensor](t, p, func(x gfn.Batch, r *rng.Stream, z gfn.State) went[*Node] {
			logR := p.reward(x, z)
			same := gfn.BackForth{}.Apply(p.net(), r, x, z, logR, p.reward)
			own := gfn.BackForth{PerRow: true}.Apply(p.net(), r, x, z, logR, p.reward)
			return went[*Node]{same.Accepted, own.Accepted}
		})
		const rows, batches = 50, 200 // many batches, each of which has one K
		host := rng.New(seed, "accepts")
		same, own := 0.0, 0.0
		for b := range uint64(batches) {
			_, states := p.chains(host, gfn.Normalise(p.logR), rows)
			out := numbers[went[[]float64]](run(rows, rng.Key(seed, "accepts", b), states))
			same, own = same+mean(out.To)/batches, own+mean(out.Accepted)/batches
		}
		t.Logf("%T: accepted %.3f with one K, %.3f with K for each row", env, same, own)
		if own <= same { // over seeds 1 to 8 the difference was at least 6 standard errors
			t.Errorf("%T: accepted %.3f with one K, %.3f with K for each row", env, same, own)
		}
	}
}
