package gfn_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/gfn/envs"
	"github.com/gfnem/gfnem/internal/testkit"
	"github.com/gfnem/gfnem/rng"
)

// chains draws n objects from a distribution and returns their states, as the inputs of a program.
func (p *problem) chains(r *rand.Rand, target []float64, n int) (objects []int, states []*tensors.Tensor) {
	for range n {
		u, k := r.Float64(), 0
		for k < len(target)-1 && u >= target[k] {
			u -= target[k]
			k++
		}
		objects = append(objects, k)
	}
	for _, all := range p.dag.ObjectStates() {
		dims := append([]int{}, all.Shape().Dimensions...)
		values := tensors.MustCopyFlatData[int32](all)
		width := len(values) / dims[0]
		var rows []int32
		for _, k := range objects {
			rows = append(rows, values[k*width:(k+1)*width]...)
		}
		dims[0] = n
		states = append(states, tensors.FromFlatDataAndDimensions(rows, dims...))
	}
	return objects, states
}

// number returns which object each state is.
func (p *problem) number(x gfn.Batch, s gfn.State) *Node { return p.lookup("number", x, s, 1) }

func (p *problem) numberObjects() {
	values := make([]float64, p.dag.Len())
	for i, s := range p.dag.Objects {
		values[s] = float64(i)
	}
	p.set("number/flow", values)
}

const (
	moveRows    = 5000
	moveBatches = 20
)

var kernels = []struct {
	name          string
	most          int
	beta, epsilon float64
	greedy        bool
	only          string // the environment it is tried on; all if empty
}{
	{"policy", 0, -1, -1, false, ""},
	{"tempered", 0, 0.5, 0.2, false, ""},
	{"at most two steps", 2, 0.5, -1, false, "subset"},
	{"greedy", 0, -1, -1, true, "grid"},
}

var moveEnvs = []struct {
	name string
	env  gfn.Env
}{
	{"grid", envs.Hypergrid{Side: 3, Dims: 2}},
	{"subset", envs.Subset{Items: 5, Size: 3}},
	{"sequence", envs.Sequence{Sizes: []int{2, 3, 2}}},
}

// chained is a move of chains, and one whose acceptance is left to the host.
type chained[T any] struct {
	Before, Object, LogR, Reward, Accepted T
	Apart                                  struct{ Object, Reward, Accepted T }
	Behaviour, Policy                      moveScores[T] // of Apart
}

// moveScores are the log-probabilities of the way down and of the way up.
type moveScores[T any] struct{ DownF, DownB, UpF, UpB T }

// TestStationary draws chains from the exact target, moves each once with a policy that is far from the answer, and
// checks that they still follow the target.
//
// Then it takes the kernel apart. Given a reward beyond any doubt, it accepts whatever could have been undone, and the
// acceptance is left to the test: with the right ratio the target is kept again, while leaving out a term, or accepting
// what cannot be undone, or forgetting that the moves were tempered, does not keep it.
func TestStationary(t *testing.T) {
	for _, e := range moveEnvs {
		for _, k := range kernels {
			if k.only != "" && k.only != e.name {
				continue
			}
			t.Run(e.name+", "+k.name, func(t *testing.T) {
				t.Parallel()
				seed := testkit.Seed(t)
				p := newProblem(t, e.env, seed)
				p.randomise(seed)
				p.numberObjects()
				target := gfn.Normalise(p.logR)
				kernel := func(g *Graph) gfn.BackForth {
					how := behaviour(g, k.beta, k.epsilon)
					how.Greedy = k.greedy
					return gfn.BackForth{MaxSteps: k.most, How: how}
				}
				run := compile[chained[*tensors.Tensor], []*tensors.Tensor](t, p, func(
					x gfn.Batch, r *rng.Stream, z gfn.State,
				) (out chained[*Node]) {
					net, bf, again := p.net(), kernel(x[0].Graph()), *r
					logR := p.reward(x, z)
					m := bf.Apply(net, r, x, z, logR, p.reward)
					sure := func(x gfn.Batch, s gfn.State) *Node { return AddScalar(ZerosLike(p.reward(x, s)), 1e6) }
					apart := bf.Apply(net, &again, x, z, logR, sure) // the same move
					out.Before, out.Object, out.LogR, out.Reward = logR, p.number(x, m.State), m.LogR, p.reward(x, m.State)
					out.Accepted = m.Accepted
					out.Apart.Object, out.Apart.Reward = p.number(x, apart.Proposal), p.reward(x, apart.Proposal)
					out.Apart.Accepted = apart.Accepted
					scores := func(how gfn.Behaviour) moveScores[*Node] {
						down, up := net.Score(apart.Down, how), net.Score(apart.Up, how)
						return moveScores[*Node]{
							ReduceSum(down.LogPF, 1), ReduceSum(down.LogPB, 1), ReduceSum(up.LogPF, 1), ReduceSum(up.LogPB, 1),
						}
					}
					out.Behaviour, out.Policy = scores(bf.How), scores(gfn.Behaviour{})
					return out
				})
				host := rng.New(seed, "chains")
				// Whether each way to accept keeps the target. P_B is 1 in a sequence, whose paths are all of one length.
				twins := []struct {
					name  string
					keeps bool
					log   func(reward, downF, downB, upF, upB float64) float64
					blind bool // to what cannot be undone
					plain bool // uses the policy's probabilities, not the behaviour's
				}{
					{"right", true, func(r, df, db, uf, ub float64) float64 { return r + df - db - uf + ub }, false, false},
					{"without P_B", e.name == "sequence", func(r, df, db, uf, ub float64) float64 { return r + df - uf }, false, false},
					{"without P_F", false, func(r, df, db, uf, ub float64) float64 { return r - db + ub }, false, false},
					{"without R", false, func(r, df, db, uf, ub float64) float64 { return df - db - uf + ub }, false, false},
					{"blind", e.name != "grid", func(r, df, db, uf, ub float64) float64 { return r + df - db - uf + ub }, true, false},
					{"untempered", k.beta < 0, func(r, df, db, uf, ub float64) float64 { return r + df - db - uf + ub }, false, true},
				}
				counts := make([]int, len(target))
				apart := make([][]int, len(twins))
				for i := range apart {
					apart[i] = make([]int, len(target))
				}
				accepted, moved := 0.0, 0
				for b := range moveBatches {
					from, states := p.chains(host, target, moveRows)
					out := numbers[chained[[]float64]](run(moveRows, rng.Key(seed, "move", uint64(b)), states))
					if d := farthest(out.LogR, out.Reward); d != 0 {
						t.Fatalf("LogR of the chains is off by %g", d)
					}
					accepted += mean(out.Accepted) / moveBatches
					for r := range from {
						to := int(out.Object[r])
						counts[to]++
						if to != from[r] {
							moved++
						}
						coin := math.Log(host.Float64())
						for i, w := range twins {
							s := out.Behaviour
							if w.plain {
								s = out.Policy
							}
							to := from[r]
							ratio := w.log(out.Apart.Reward[r]-out.Before[r], s.DownF[r], s.DownB[r], s.UpF[r], s.UpB[r])
							if (w.blind || out.Apart.Accepted[r] != 0) && coin <= ratio {
								to = int(out.Apart.Object[r])
							}
							apart[i][to]++
						}
					}
				}
				if q := chi2(counts, target); q < alpha {
					t.Errorf("the kernel does not keep the target: p-value %g", q)
				}
				t.Logf("accepted %.2f, moved %.2f", accepted, float64(moved)/moveRows/moveBatches)
				if k.greedy {
					return // one proposal per state: too few moves to tell the twins apart
				}
				if accepted < 0.02 || moved < moveRows*moveBatches/50 {
					t.Errorf("%g accepted, %d moved: too few to tell", accepted, moved)
				}
				for i, w := range twins {
					if q := chi2(apart[i], target); (q >= alpha) != w.keeps {
						t.Errorf("acceptance %s: p-value %g", w.name, q)
					}
				}
			})
		}
	}
}

// acceptances are those of a move, those with a reward beyond any doubt, and the lengths of both ways.
type acceptances[T any] struct{ Accepted, Sure, Down, Up T }

// TestPerfectAcceptance checks that with the exact answer every move that can be undone is accepted, which is every move
// where all paths have one length.
func TestPerfectAcceptance(t *testing.T) {
	for _, e := range moveEnvs {
		t.Run(e.name, func(t *testing.T) {
			seed := testkit.Seed(t)
			p := newProblem(t, e.env, seed)
			run := compile[acceptances[*tensors.Tensor], []*tensors.Tensor](t, p, func(
				x gfn.Batch, r *rng.Stream, z gfn.State,
			) acceptances[*Node] {
				again := *r // the same numbers twice
				logR := p.reward(x, z)
				sure := func(x gfn.Batch, s gfn.State) *Node { return AddScalar(ZerosLike(p.reward(x, s)), 1e6) }
				m := gfn.BackForth{}.Apply(p.net(), r, x, z, logR, p.reward)
				s := gfn.BackForth{}.Apply(p.net(), &again, x, z, logR, sure)
				return acceptances[*Node]{m.Accepted, s.Accepted, m.Down.Length(), m.Up.Length()}
			})
			host := rng.New(seed, "chains")
			lengths := map[[2]float64]int{}
			for b := range 20 {
				_, states := p.chains(host, gfn.Normalise(p.logR), 500)
				out := numbers[acceptances[[]float64]](run(500, rng.Key(seed, "perfect", uint64(b)), states))
				if d := farthest(out.Accepted, out.Sure); d != 0 {
					t.Errorf("batch %d: not all that can be undone is accepted", b)
				}
				if m := mean(out.Accepted); e.name != "grid" && m != 1 {
					t.Errorf("batch %d: %g accepted", b, m)
				}
				for r := range out.Down {
					lengths[[2]float64{out.Down[r], out.Up[r]}]++
				}
			}
			if e.name == "grid" && len(lengths) < 6 {
				t.Errorf("too few lengths: %v", lengths)
			}
		})
	}
}

// stepsOf are the lengths of the way down and of the way up.
type stepsOf[T any] struct{ Down, Up T }

// TestMoveSteps checks that the number of steps back is uniform from 1 to the bound, which is the number of steps of a
// trajectory if it is not given, or more.
func TestMoveSteps(t *testing.T) {
	seed := testkit.Seed(t)
	p := newProblem(t, envs.Subset{Items: 5, Size: 3}, seed)
	for _, c := range []struct{ most, bound int }{{0, 3}, {1, 1}, {2, 2}, {3, 3}, {9, 3}} {
		run := compile[stepsOf[*tensors.Tensor], []*tensors.Tensor](t, p, func(
			x gfn.Batch, r *rng.Stream, z gfn.State,
		) stepsOf[*Node] {
			m := gfn.BackForth{MaxSteps: c.most}.Apply(p.net(), r, x, z, p.reward(x, z), p.reward)
			return stepsOf[*Node]{m.Down.Length(), m.Up.Length()}
		})
		_, states := p.chains(rng.New(seed, "steps"), gfn.Normalise(p.logR), 2)
		counts, want := make([]int, 6), make([]float64, 6)
		for k := 1; k <= c.bound; k++ {
			want[k] = 1 / float64(c.bound)
		}
		for i := range uint64(500) {
			out := numbers[stepsOf[[]float64]](run(2, rng.Key(seed, "steps", i), states))
			all := slices.Concat(out.Down, out.Up)
			k := all[0]
			if len(all) != 4 || slices.ContainsFunc(all, func(v float64) bool { return v != k }) {
				t.Fatalf("lengths %v are not all the same", out)
			}
			counts[int(k)]++
		}
		if q := chi2(counts, want); q < alpha {
			t.Errorf("at most %d: %v, p-value %g", c.most, counts, q)
		}
	}
}

// movedOnce is the loss of trajectories, and log R after a move, as told and as it is.
type movedOnce[T any] struct{ Loss, LogR, Reward T }

// TestMoveDTypes checks that a policy in float32 moves chains whose rewards are float64.
func TestMoveDTypes(t *testing.T) {
	seed := testkit.Seed(t)
	env := envs.Hypergrid{Side: 5, Dims: 2}
	d := enumerate(t, env)
	policy := gfn.Tabular{DAG: d}
	p := &problem{env: env, dag: d, store: model.NewStore()}
	run := compile[movedOnce[*tensors.Tensor], none](t, p, func(x gfn.Batch, r *rng.Stream, _ none) movedOnce[*Node] {
		net := gfn.Net{Env: env, Policy: policy, Scope: p.store.Scope("policy")}
		tr := net.Rollout(r, x, nil, gfn.Behaviour{})
		logR := env.LogReward(x, tr.Last())
		loss := gfn.SubTB{}.Loss(net.Path(tr, net.Score(tr, gfn.Behaviour{}), logR, nil))
		m := gfn.BackForth{}.Apply(net, r, x, tr.Last(), logR, env.LogReward)
		if loss.DType() != dtypes.Float32 || m.LogR.DType() != dtypes.Float64 {
			panic(fmt.Errorf("dtypes %s and %s", loss.DType(), m.LogR.DType()))
		}
		return movedOnce[*Node]{loss, m.LogR, env.LogReward(x, m.State)}
	})
	out := numbers[movedOnce[[]float64]](run(64, rng.Key(seed, "dtypes"), none{}))
	if d := farthest(out.LogR, out.Reward); d != 0 || size(out.Loss) == 0 {
		t.Errorf("LogR is off by %g", d)
	}
}
