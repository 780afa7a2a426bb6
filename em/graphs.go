package em

import (
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/internal/program"
	"github.com/gfnem/gfnem/optim"
	"github.com/gfnem/gfnem/rng"
)

// graphs are the compiled programs of a Spec. All sample, score, differentiate and update at once, and return a few
// numbers.
type graphs struct {
	Spec
	store *model.Store

	wake, wakeAndSleep, wakeAndMaximize *program.Program[eArgs, eResult]
	sleep                               *program.Program[eArgs, eResult]
	maximize                            *program.Program[mArgs, mResult]
}

// eIn is what programs of E-steps take, in graphs and on the host: T is one tensor, R rates, K a number. Rows are the
// numbers of the observations, if there is a Memory.
type eIn[T, R, K any] struct {
	HandOn        bool // whether latents of wake are returned
	Key           T
	Rates, MRates R
	Knobs         Knobs[K]
	X             []T
	Rows          T
}

// eOut is what they return: the update, the sleep part of its loss, the update of the model made with it, and the
// latents that are handed on, with their log P_B - log P_F. C is a count.
type eOut[U, N, C, T any] struct {
	E, M           U
	SleepLoss, ESS N
	Strays         strays[C]
	Z              []T
	LogRatio       T
}

// mIn is what programs of M-steps take; Z are latents that are given, instead of drawn, Weight is that of the newest
// statistics, and Rows are the numbers of the observations, if chains persist.
type mIn[T, R, K any] struct {
	Greedy   bool
	Key      T
	Rates    R
	Weight   K
	Knobs    Knobs[K]
	X, Z     []T
	LogRatio T
	Rows     T
}

type mOut[U, N, C any] struct {
	Update        U
	Accepted, ESS N
	Strays        strays[C]
}

type (
	eArgs   = eIn[*tensors.Tensor, []float32, float32]
	eNodes  = eIn[*Node, *Node, *Node]
	eResult = eOut[Update, float64, int, *tensors.Tensor]
	eGraph  = eOut[UpdateNodes, *Node, *Node, *Node]
	mArgs   = mIn[*tensors.Tensor, []float32, float32]
	mNodes  = mIn[*Node, *Node, *Node]
	mResult = mOut[Update, float64, int]
	mGraph  = mOut[UpdateNodes, *Node, *Node]
)

// UpdateNodes is an Update in a graph.
type UpdateNodes struct {
	Loss, GradNorm, OK *Node
	Scores             Scores[*Node]
}

// Updated is what an optimiser made of a loss.
func Updated(loss *Node, r optim.Result) UpdateNodes {
	return UpdateNodes{Loss: loss, GradNorm: r.GradNorm, OK: r.OK}
}

func newGraphs(spec Spec, s *program.Set) *graphs {
	g := &graphs{Spec: spec, store: s.Store}
	e := func(k kind, f func(eNodes) eGraph) *program.Program[eArgs, eResult] {
		return program.New[eArgs, eResult](s, string(k), f)
	}
	g.wake, g.wakeAndSleep, g.sleep = e(wake, g.wakeUpdate), e(wakeAndSleep, g.jointUpdate), e(sleep, g.sleepUpdate)
	g.wakeAndMaximize = e(wakeAndMaximize, g.bothUpdates)
	g.maximize = program.New[mArgs, mResult](s, string(maximize), g.mUpdate)
	return g
}

// declare makes the variables of all programs that the loop may call.
func (g *graphs) declare() error {
	x, key := g.Data(0), rng.Key(g.Seed, string(wake), 0)
	e := eArgs{Key: key, Rates: g.Wake.Optimizer.Rates(0), Knobs: g.Wake.Explore.At(0), X: x}
	var programs []*program.Program[eArgs, eResult]
	switch {
	case g.Sleep.Alone:
		programs = append(programs, g.sleep)
	case g.Sleep.Weight != 0 && !g.Sleep.Apart:
		programs = append(programs, g.wakeAndSleep)
	case g.Sleep.Weight != 0:
		programs = append(programs, g.wake, g.sleep)
	default:
		programs = append(programs, g.wake)
	}
	var err error
	if e.Rows, err = g.Wake.Memory.rows(0); err != nil {
		return err
	}
	for _, p := range programs {
		if err := p.Declare(e); err != nil {
			return err
		}
	}
	if g.Gate == Never {
		return nil
	}
	rates := g.MStep.Optimizer.Rates(0)
	if g.learnsFromWake() && !g.Sleep.Alone {
		e.MRates = rates
		if err := g.wakeAndMaximize.Declare(e); err != nil {
			return err
		}
	}
	if g.MStep.Data != nil {
		x = g.MStep.Data(0)
	}
	m := mArgs{Key: key, Rates: rates, Knobs: e.Knobs, X: x}
	if m.Rows, err = g.MStep.Persist.rows(0); err != nil {
		return err
	}
	return g.maximize.Declare(m)
}

func (g *graphs) theta() *model.Scope { return g.store.Scope(Theta) }

func (g *graphs) net() gfn.Net {
	return gfn.Net{Env: g.Env, Policy: g.Policy, Scope: g.store.Scope(Phi)}
}

// rollout samples trajectories for observations x of which the policy sees u.
func (g *graphs) rollout(r *rng.Stream, x, u gfn.Batch, how gfn.Behaviour) gfn.Trajectory {
	return g.net().Rollout(r, u, gfn.Initial(g.Env, x), how)
}

// minimizeE updates the policy, and what else wake has to keep.
func (g *graphs) minimizeE(loss, rates *Node, with ...optim.Assignment) optim.Result {
	return g.Wake.Optimizer.Minimize(g.store, loss, rates, with...)
}

func (g *graphs) wakeUpdate(in eNodes) (out eGraph) {
	x, u := g.observations(in.X)
	w := g.wakeLoss(rng.In(in.Key), x, u, in)
	if in.HandOn {
		out.Z, out.LogRatio = g.handOn(w)
	}
	out.E, out.Strays = w.updated(g.minimizeE(w.loss, in.Rates, w.keep...)), w.strays
	return out
}

func (g *graphs) jointUpdate(in eNodes) (out eGraph) {
	r := rng.In(in.Key)
	x, u := g.observations(in.X)
	out.SleepLoss, out.Strays = g.sleepLoss(r)
	w := g.wakeLoss(r, x, u, in)
	if in.HandOn {
		out.Z, out.LogRatio = g.handOn(w)
	}
	total := Add(w.loss, MulScalar(out.SleepLoss, g.Sleep.Weight))
	out.E = w.updated(g.minimizeE(total, in.Rates, w.keep...))
	out.Strays.Unfinished, out.Strays.Misplaced = w.strays.Unfinished, w.strays.Misplaced
	return out
}

func (g *graphs) sleepUpdate(in eNodes) eGraph {
	loss, strays := g.sleepLoss(rng.In(in.Key))
	return eGraph{E: Updated(loss, g.minimizeE(MulScalar(loss, g.Sleep.Weight), in.Rates)), Strays: strays}
}

// bothUpdates makes an E- and an M-update with the same latents.
func (g *graphs) bothUpdates(in eNodes) (out eGraph) {
	r := rng.In(in.Key)
	x, u := g.observations(in.X)
	w := g.wakeLoss(r, x, u, in)
	draw := func() gfn.State { return g.rollout(r, x, u, gfn.Behaviour{}).Last() }
	z, logRatio := g.handOn(w)
	from := g.given(x, u, z, logRatio)
	m := g.modelLoss(from, draw)
	out.E, out.Strays = w.updated(g.minimizeE(w.loss, in.Rates, w.keep...)), w.strays
	out.M = Updated(m.loss, g.MStep.Optimizer.Minimize(g.store, m.loss, in.MRates, m.with...))
	out.M.Scores, out.ESS = m.scores, m.ess
	return out
}

// wakes is what an E-step has drawn, and what it says of that.
type wakes struct {
	loss     *Node
	z        gfn.State          // [B*Samples]
	logR     *Node              // [B*Samples]
	logRatio *Node              // log P_B - log P_F, [B*Samples]
	scored   []*Node            // all log-rewards
	keep     []optim.Assignment // part of the update
	strays   strays[*Node]
}

func (w *wakes) updated(r optim.Result) UpdateNodes {
	u := Updated(w.loss, r)
	u.Scores = scoresOf(Concatenate(w.scored, 0))
	return u
}

// wakeLoss is the E-step's objective on samples of the behaviour, for observations x of which the policy sees u.
func (g *graphs) wakeLoss(r *rng.Stream, x, u gfn.Batch, in eNodes) (w wakes) {
	net, spec := g.net(), g.Wake
	many, manyU := x.Repeat(spec.Samples), u.Repeat(spec.Samples)
	tr := g.rollout(r, many, manyU, spec.Explore.Behaviour(in.Knobs))
	score := net.ScoreSampled
	if spec.Rescore {
		score = net.Score
	}
	partial := g.partials(tr, many)
	w.z, w.logR = tr.Last(), g.reward(many, tr.Last())
	w.scored, w.strays.Unfinished = []*Node{w.logR}, g.unfinished(w.z)
	scores := score(tr, gfn.Behaviour{})
	w.logRatio = logRatio(scores)
	path := net.Path(tr, scores, w.logR, partial)
	if spec.Memory.Latents > 0 {
		path = gfn.Beside(x.Size(), path, g.remember(r, x, u, in.Rows, &w))
	}
	loss, used := g.objective(path), path.Used
	if spec.Replay.Size > 0 {
		again := g.replay(r, many, &w)
		if used == nil {
			used = BroadcastToDims(Const(r.State().Graph(), true), loss.Shape().Dim(0))
		}
		loss = Concatenate([]*Node{loss, g.objective(again)}, 0)
		used = Concatenate([]*Node{used, again.Used}, 0)
	}
	w.loss = MeanOf(loss, used)
	return w
}

// partials evaluates the partial log-rewards of trajectories for observations x, if there are any.
func (g *graphs) partials(tr gfn.Trajectory, x gfn.Batch) *Node {
	if g.Wake.Partial == nil {
		return nil
	}
	return g.net().Partials(tr, func(_ gfn.Batch, s gfn.State, k int) *Node { return g.partial(x, s, k) })
}

// sleepLoss is the likelihood of dreamt latents.
func (g *graphs) sleepLoss(r *rng.Stream) (*Node, strays[*Node]) {
	net := g.net()
	x, z := g.dream(r)
	tr := net.Backtrack(r, g.encode(x), z, nil, gfn.Behaviour{})
	loss := ReduceAllMean(gfn.Likelihood{}.Loss(gfn.Path{LogPF: net.Score(tr, gfn.Behaviour{}).LogPF}))
	return loss, g.straysOf(x, tr)
}

// mUpdate is the M-step.
func (g *graphs) mUpdate(in mNodes) (out mGraph) {
	r := rng.In(in.Key)
	spec := g.MStep
	x, u := g.observations(in.X)
	from := g.given(x, u, in.Z, in.LogRatio)
	if in.Z == nil {
		from = g.draw(r, x, u, in)
		out.Strays.Unfinished = g.unfinished(from.z)
	}
	if spec.Persist.Data > 0 {
		from.z, out.Strays.Displaced = g.goOn(r, from, in.Rows)
	}
	if spec.Moves > 0 {
		from.z, out.Accepted = g.refine(r, from.x, from.u, from.z, in.Knobs)
	}
	var keep []optim.Assignment
	if spec.Persist.Data > 0 {
		keep = g.persist(from.z, in.Rows)
	}
	draw := func() gfn.State { return g.rollout(r, from.x, from.u, gfn.Behaviour{}).Last() }
	m := g.modelLoss(from, draw)
	if spec.maximizes() {
		vars, values := g.maximum(from.x, from.z, in.Weight)
		out.Update = UpdateNodes{Loss: m.loss, GradNorm: ZerosLike(m.loss), OK: optim.Assign(vars, values, keep...)}
	} else {
		out.Update = Updated(m.loss, spec.Optimizer.Minimize(g.store, m.loss, in.Rates, append(keep, m.with...)...))
	}
	out.Update.Scores, out.ESS = m.scores, m.ess
	return out
}

// refine moves latents by the kernel, and returns the fraction of moves accepted.
func (g *graphs) refine(r *rng.Stream, x, u gfn.Batch, z gfn.State, knobs Knobs[*Node]) (gfn.State, *Node) {
	net, spec := g.net(), g.MStep
	reward := func(_ gfn.Batch, z gfn.State) *Node { return g.reward(x, z) }
	kernel := spec.Kernel
	kernel.How = g.Wake.Explore.Behaviour(knobs)
	logR := StopGradient(reward(x, z))
	accepted := ScalarZero(logR.Graph(), logR.DType())
	for range spec.Moves {
		m := kernel.Apply(net, r, u, z, logR, reward)
		z, logR = m.State, m.LogR
		accepted = Add(accepted, ReduceAllMean(ConvertDType(m.Accepted, logR.DType())))
	}
	return z, DivScalar(accepted, spec.Moves)
}
