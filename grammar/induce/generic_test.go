package induce

import (
	"math"
	"slices"
	"strings"
	"testing"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/grammar/forest"
	"github.com/gfnem/gfnem/grammar/parse"
	"github.com/gfnem/gfnem/internal/program"
	"github.com/gfnem/gfnem/nn"
	"github.com/gfnem/gfnem/optim"
)

// TestGenericPath trains a grammar twice: by the fast E-step, and by the environment of package forest with a policy
// that is evaluated state by state, as em's own E-step is, on the trajectories of the first. Both go through em.Loop.
// Losses and gradients are the same.
func TestGenericPath(t *testing.T) {
	const rate = 1e-3
	for _, objective := range []string{"tb", "subtb"} {
		c := smallGFN()
		c.Wake.Objective, c.Sleep.Weight, c.Moves.Balance, c.Moves.Count, c.Moves.ECount, c.Optim.Warmup = objective, 0, 0, 0, 0, 0
		c.Optim.Phi.Rate, c.Optim.Phi.FlowRate, c.Optim.Theta.Rate, c.Optim.Clip = rate, rate, rate, 0
		s := tinySession(t, c)
		for i := range s.gfn.optimizer.Groups {
			s.gfn.optimizer.Groups[i].Rule = optim.SGD{}
		}
		m := s.loop.M.(mStep)
		m.optimizer.Groups = slices.Clone(m.optimizer.Groups)
		m.optimizer.Groups[0].Rule = optim.SGD{}
		recorded := &recorder{gfnStep: s.loop.E.(gfnStep)}
		s.loop.E, s.loop.M = recorded, newMStepBy(s.set, s.gfn.LogProbs, &s.Config, m.optimizer)
		slow := newGeneric(s, recorded, m.optimizer)
		for k := range 6 {
			fastBefore, slowBefore := numbersOf(s.set), numbersOf(slow.set)
			fast, err := s.loop.Step()
			if err != nil {
				t.Fatal(err)
			}
			generic, err := slow.loop.Step()
			if err != nil {
				t.Fatal(err)
			}
			closeTo(t, objective+": wake loss", generic.Wake.Loss, fast.Wake.Loss, 1e-5)
			closeTo(t, objective+": norm of the gradient", generic.Wake.GradNorm, fast.Wake.GradNorm, 1e-4)
			if (fast.M == nil) != (k == 0) || (generic.M == nil) != (k == 0) {
				t.Fatalf("iteration %d: M-steps %v and %v", k, fast.M, generic.M)
			}
			if k == 0 {
				continue // made the variables
			}
			closeTo(t, objective+": loss of the M-step", generic.M.Loss, fast.M.Loss, 1e-5)
			moved := 0
			fastAfter, slowAfter := numbersOf(s.set), numbersOf(slow.set)
			for path, was := range fastBefore {
				for i := range was {
					fastGradient := (was[i] - fastAfter[path][i]) / rate
					slowGradient := (slowBefore[path][i] - slowAfter[path][i]) / rate
					if !(math.Abs(fastGradient-slowGradient) <= 1e-4*(1+math.Abs(fastGradient))) {
						t.Fatalf("%s, iteration %d: gradient %d of %s is %g, and %g by the generic path",
							objective, k, i, path, fastGradient, slowGradient)
					}
					if fastGradient != 0 {
						moved++
					}
				}
			}
			if moved < 1000 {
				t.Errorf("%s: %d gradients are not 0", objective, moved)
			}
		}
	}
}

// numbersOf are the variables of both sides, by path.
func numbersOf(set *program.Set) map[string][]float64 {
	out := map[string][]float64{}
	for v := range set.Store.RootScope().IterVariables() {
		if strings.HasPrefix(v.Path(), em.Theta) || strings.HasPrefix(v.Path(), em.Phi) {
			out[v.Path()] = widened(v.MustValue())
		}
	}
	return out
}

// recorder is the fast E-step, which remembers what it has made.
type recorder struct {
	gfnStep
	last *walker
}

func (r *recorder) Infer(at em.Moment, b parse.Padded) (em.Inference[latents], error) {
	r.last = r.walker(at, b)
	return r.last.infer(at.Maximizes, 0)
}

// generic learns from what a recorder has made, state by state.
type generic struct {
	*recorder
	set    *program.Set
	update *program.Program[genericIn, em.Update]
	loop   em.Loop[parse.Padded, latents]
}

type (
	genericIn struct {
		Rates          []float32
		Sentences      forest.SentenceTensors
		Actions, Steps *tensors.Tensor // [T,B], [B]
	}
	genericNodes struct {
		Rates          *Node
		Sentences      forest.Sentences
		Actions, Steps *Node
	}
)

func newGeneric(s *Session, r *recorder, grammarOptimizer optim.Optimizer) *generic {
	g := &generic{recorder: r, set: program.NewSet(s.set.Backend, nn.NewStore(s.Config.Seed))}
	tables := func(graph *Graph) grammar.LogProbs { return s.model.LogProbs(g.set.Store.Scope(em.Theta), graph) }
	c := &s.Config
	g.update = program.New[genericIn, em.Update](g.set, "generic", func(in genericNodes) em.UpdateNodes {
		env := forest.Env{Words: in.Sentences.Words.Shape().Dim(1), Labels: c.Model.Nonterminals}
		net := gfn.Net{Env: env, Policy: forest.Policy{Network: r.Network}, Scope: g.set.Store.Scope(em.Phi)}
		tr := replayed(env, in)
		node := func(x gfn.Batch, s gfn.State) grammar.TreeScores {
			o := forest.Observed(x)
			return tables(in.Rates.Graph()).For(o.Words, o.Lengths).ScoreTrees(forest.FromState(s).Trees())
		}
		partial := net.Partials(tr, func(x gfn.Batch, s gfn.State, k int) *Node {
			closed := forest.FromState(s).Label
			score := node(x.Repeat(k), s).Nodes
			return ReduceSum(Where(GreaterThan(closed, ZerosLike(closed)), score, ZerosLike(score)), 1)
		})
		whole := node(tr.X, tr.Last())
		logR := Add(ReduceSum(whole.Nodes, 1), whole.Root)
		loss := ReduceAllMean(r.objective().Loss(net.Path(tr, net.Score(tr, gfn.Behaviour{}), logR, partial)))
		return em.Updated(loss, r.optimizer.Minimize(g.set.Store, loss, in.Rates))
	})
	g.loop = em.Loop[parse.Padded, latents]{
		Data: s.sampler.at, E: g, Gate: s.loop.Gate, M: newMStepBy(g.set, tables, c, grammarOptimizer),
	}
	return g
}

// Infer implements em.EStepper, on the trajectories and the trees of the recorder.
func (g *generic) Infer(at em.Moment, b parse.Padded) (em.Inference[latents], error) {
	route := g.last.learning.Wake
	made, label := tensors.MustCopyFlatData[int32](route.Made), tensors.MustCopyFlatData[int32](route.Forest.Label)
	rows, gaps := route.Made.Shape().Dim(0), route.Made.Shape().Dim(1)
	actions, steps := make([]int32, gaps*rows), make([]int32, rows)
	for i, step := range made {
		if step >= 0 {
			row, gap := i/gaps, i%gaps
			actions[int(step)*rows+row] = int32(gap*g.Model.Nonterminals) + label[i] - 1
			steps[row] = max(steps[row], step+1)
		}
	}
	out, err := g.update.Call(genericIn{
		Rates: g.optimizer.Rates(at.Iteration), Sentences: b.SentenceTensors,
		Actions: tensors.FromFlatDataAndDimensions(actions, gaps, rows), Steps: tensors.FromValue(steps),
	})
	e := em.NewInference(latents{Forests: &g.last.walks.Forest})
	e.Wake = out
	return e, err
}

// replayed takes actions in the environment.
func replayed(env forest.Env, in genericNodes) gfn.Trajectory {
	x := in.Sentences.Batch()
	s := env.Initial(x)
	tr := gfn.Trajectory{X: x, States: []gfn.State{s}}
	for t := range env.Steps() {
		a := Squeeze(SliceAxis(in.Actions, 0, AxisElem(t)), 0)
		valid := LessThan(MulScalar(OnesLike(in.Steps), t), in.Steps)
		next := program.Zip(forest.FromState(env.Step(s, a)), forest.FromState(s), func(next, s *Node) *Node {
			on := valid
			for on.Rank() < s.Rank() {
				on = InsertAxes(on, -1)
			}
			return Where(BroadcastToShape(on, s.Shape()), next, s)
		})
		tr.Action, tr.Back, tr.Valid = append(tr.Action, a), append(tr.Back, env.Back(s, a)), append(tr.Valid, valid)
		s = next.State()
		tr.States = append(tr.States, s)
	}
	return tr
}
