package forest

import (
	"fmt"
	"math"
	"testing"

	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/internal/testkit"
)

// replay turns paths into trajectories of the plain environment.
func replay(env Env, x gfn.Batch, p Path) gfn.Trajectory {
	s := p.steps(env.Steps())
	f := Start(env.Words, p.Length)
	// What is closed from the start is closed bottom-up.
	order := NewPlan(p.Trees, p.live())
	for step := range env.Steps() {
		gap := Squeeze(SliceAxis(order.gap, 1, AxisElem(step)), 1)
		there := LogicalAnd(at(p.live(), gap), Equal(at(p.When, gap), Neg(OnesLike(gap))))
		f = f.Merge(gap, at(p.Trees.Label, gap), there)
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

// TestScore compares the fast evaluation of paths, one line of trees without padding, with the plain one, values and gradients: a path
// from bare words, one that was undone in part, and the one made instead, all at once; with embeddings of trees made step by step and
// in loops.
func TestScore(t *testing.T) {
	seed := testkit.Seed(t)
	for _, back := range []int32{1, 2, 4, 7} {
		t.Run(fmt.Sprint(back), func(t *testing.T) {
			r := newRig(t, seed, dtypes.Float64, 5, 2, 7, 3, 7)
			wake, move := r.walk(t, seed, back, plain)
			env := Env{Words: r.n, Labels: r.Labels}
			program := func(fast, rolled bool) func(in []*Node) []*Node {
				return func(in []*Node) []*Node {
					words, length := in[0], in[1]
					k := len(wake)
					first, second := WalkOf(in[2:2+k]), WalkOf(in[2+k:])
					paths := []Path{first.Path(words), second.UndonePath(first.Forest, words), second.Path(words)}
					x := gfn.Batch{words, length}
					var scores []gfn.Scores
					if fast {
						var all []Batch
						for _, p := range paths {
							all = append(all, Batch{p, r.n - 1})
						}
						net := r.Network
						net.Rolled = rolled
						for _, s := range net.Score(r.scope(), 5*3*r.n*r.n/2, all...) {
							scores = append(scores, s.Scores)
						}
					} else {
						net := gfn.Net{Env: env, Policy: Policy{r.Network}, Scope: r.scope()}
						for _, p := range paths {
							scores = append(scores, net.Score(replay(env, x, p), gfn.Behaviour{}))
						}
					}
					var out []*Node
					total := ScalarZero(words.Graph(), r.DType)
					for i, s := range scores {
						valid := paths[i].steps(env.Steps()).valid
						flow := Where(valid, s.Flow, ZerosLike(s.Flow))
						out = append(out, s.LogPF, s.LogPB, flow)
						for j, v := range []*Node{s.LogPF, s.LogPB, flow} {
							weight := Sin(MulScalar(IotaFull(v.Graph(), v.Shape()), float64(3*i+j+1)))
							total = Add(total, ReduceAllSum(Mul(v, weight)))
						}
					}
					var vars []*Node
					for v := range r.store.RootScope().IterVariables() {
						vars = append(vars, v.NodeValue(words.Graph()))
					}
					return append(out, Gradient(total, vars...)...)
				}
			}
			args := append(append([]any{r.words, r.lengths}, anys(wake)...), anys(move)...)
			want := r.run(t, program(false, false), args...)
			var names []string
			for _, path := range []string{"wake", "undone", "made"} {
				names = append(names, path+" log P_F", path+" log P_B", path+" flow")
			}
			for v := range r.store.RootScope().IterVariables() {
				names = append(names, "gradient of "+v.Path())
			}
			for _, rolled := range []bool{false, true} {
				for i, got := range r.run(t, program(true, rolled), args...) {
					near(t, fmt.Sprintf("%s, rolled: %v", names[i], rolled), got, want[i], 1e-9)
				}
			}
		})
	}
}

// TestNoRoom: paths that do not fit on the line are not scored wrongly.
func TestNoRoom(t *testing.T) {
	seed := testkit.Seed(t)
	r := newRig(t, seed, dtypes.Float64, 7, 7)
	wake, _ := r.walk(t, seed, 1, plain)
	for _, c := range []struct {
		size int
		nan  bool
	}{{2 * 27, false}, {48, true}} { // 6 steps have 27 trees; lines are whole blocks of 8
		out := r.run(t, func(in []*Node) []*Node {
			return []*Node{r.Score(r.scope(), c.size, Batch{WalkOf(in[1:]).Path(in[0]), r.n - 1})[0].LogPF}
		}, append([]any{r.words}, anys(wake)...)...)
		for i, v := range float64s(t, out[0]) {
			if got := math.IsNaN(v); got != c.nan {
				t.Errorf("on a line of %d places, log P_F of step %d is not a number: %v, want %v", c.size, i, got, c.nan)
			}
		}
	}
}
