package forest

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/internal/program"
	"github.com/gfnem/gfnem/internal/testkit"
)

// replay turns histories into trajectories of the plain environment.
func replay(env Env, x gfn.Batch, h History) gfn.Trajectory {
	s := h.steps(env.Steps())
	f := Start(env.Words, h.Length)
	// What is closed from the start is closed bottom-up.
	order := NewPlan(h.Trees, h.live())
	for step := range env.Steps() {
		gap := Squeeze(SliceAxis(order.gap, 1, AxisElem(step)), 1)
		there := LogicalAnd(rows(h.live(), gap), Equal(rows(h.When, gap), Neg(OnesLike(gap))))
		f = f.Merge(gap, rows(h.Trees.Label, gap), there)
	}
	tr := gfn.Trajectory{X: x, States: []gfn.State{f.State()}}
	for t := range env.Steps() {
		of := func(x *Node) *Node { return Squeeze(SliceAxis(x, 1, AxisElem(t)), 1) }
		valid, gap, label := of(s.valid), of(s.gap), of(s.label)
		f = f.Merge(gap, label, valid)
		tr.Action = append(tr.Action, Add(MulScalar(gap, env.Labels), label))
		tr.Back, tr.Valid = append(tr.Back, gap), append(tr.Valid, valid)
		tr.States = append(tr.States, f.State())
	}
	return tr
}

// TestScore compares the fast evaluation of paths, one line of trees without padding, with the plain one, values and
// gradients: a path from bare words, one that was undone in part, and the one made instead, all at once; with
// embeddings of trees made step by step and in loops.
func TestScore(t *testing.T) {
	seed := testkit.Seed(t)
	for what, back := range map[string]int32{"1": 1, "2": 2, "4": 4, "7": 7, "shapes of a CFG, 3": 3, "shapes of a Non-CFG, 5": 5} {
		t.Run(what, func(t *testing.T) {
			r := newRig(t, seed, dtypes.Float64, 5, 2, 7, 3, 7)
			switch {
			case strings.Contains(what, "Non-CFG"):
				r.sumOut(randomTables(seed, grammar.NCFG, r.Labels, r.Preterminals, r.Words))
			case strings.Contains(what, "CFG"):
				r.sumOut(randomTables(seed, grammar.CFG, r.Labels, r.Preterminals, r.Words))
			}
			wake, move := r.walk(t, seed, back, plain)
			env := r.Env(r.n)
			build := func(fast, rolled bool) func(in walked[Sentences, Walk]) scoredAll[*Node, gfn.Scores] {
				return func(in walked[Sentences, Walk]) scoredAll[*Node, gfn.Scores] {
					made := histories(in)
					var scores []gfn.Scores
					if fast {
						var all []Histories
						for _, h := range made {
							all = append(all, Histories{h, r.n - 1})
						}
						net := r.Network
						net.Rolled = rolled
						for _, s := range net.Score(r.scope(), 5*3*r.n*r.n/2, all...) {
							scores = append(scores, s.Scores)
						}
					} else {
						net := gfn.Net{Env: env, Policy: Policy{r.Network}, Scope: r.scope()}
						for _, h := range made {
							scores = append(scores, net.Score(replay(env, in.Sentences.Batch(), h), gfn.Behaviour{}))
						}
					}
					g := in.Sentences.Words.Graph()
					total := ScalarZero(g, r.DType)
					for i, s := range scores {
						valid := made[i].steps(env.Steps()).valid
						scores[i].Flow = Where(valid, s.Flow, ZerosLike(s.Flow))
						for j, v := range program.Nodes(scores[i]) {
							weight := Sin(MulScalar(IotaFull(g, v.Shape()), float64(3*i+j+1)))
							total = Add(total, ReduceAllSum(Mul(v, weight)))
						}
					}
					var vars []*Node
					for v := range r.store.RootScope().IterVariables() {
						vars = append(vars, v.NodeValue(g))
					}
					return scoredAll[*Node, gfn.Scores]{scores[0], scores[1], scores[2], Gradient(total, vars...)}
				}
			}
			score := func(fast, rolled bool) scoredAll[*tensors.Tensor, scoreTensors] {
				return call[scoredAll[*tensors.Tensor, scoreTensors]](t, r, build(fast, rolled), r.walked(wake, move))
			}
			want := score(false, false)
			for _, rolled := range []bool{false, true} {
				got := score(true, rolled)
				how := fmt.Sprintf("rolled: %v,", rolled)
				same(t, how+" wake", got.Wake, want.Wake, 1e-9)
				same(t, how+" undone", got.Undone, want.Undone, 1e-9)
				same(t, how+" made", got.Made, want.Made, 1e-9)
				i := 0
				for v := range r.store.RootScope().IterVariables() {
					near(t, how+" gradient of "+v.Path(), got.Gradients[i], want.Gradients[i], 1e-9)
					i++
				}
			}
		})
	}
}

// scoredAll is what the network says of wake and of the two halves of a move, and gradients by variable.
type scoredAll[T, S any] struct {
	Wake, Undone, Made S
	Gradients          []T
}

// TestNoRoom: paths that do not fit on the line are not scored wrongly.
func TestNoRoom(t *testing.T) {
	seed := testkit.Seed(t)
	r := newRig(t, seed, dtypes.Float64, 7, 7)
	wake := r.wake(t, seed, plain)
	for _, c := range []struct {
		size int
		nan  bool
	}{{2 * 27, false}, {48, true}} { // 6 steps have 27 trees; lines are whole blocks of 8
		out := call[scoreTensors](t, r, func(in walked[Sentences, Walk]) gfn.Scores {
			return r.Score(r.scope(), c.size, Histories{in.Wake.Built(in.Sentences.Words), r.n - 1})[0].Scores
		}, r.walked(wake, WalkTensors{}))
		for i, v := range float64s(t, out.LogPF) {
			if got := math.IsNaN(v); got != c.nan {
				t.Errorf("on a line of %d places, log P_F of step %d is not a number: %v, want %v", c.size, i, got, c.nan)
			}
		}
	}
}
