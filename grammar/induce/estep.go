package induce

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/grammar/forest"
	"github.com/gfnem/gfnem/grammar/parse"
	"github.com/gfnem/gfnem/rng"
)

// latents are the trees of a batch that an E-step hands on: by merges, or as forests of one tree each, of which every
// sentence may have several in a row.
type latents struct {
	Trees   *grammar.TreeTensors
	Forests *forest.ForestTensors
	LogW    *tensors.Tensor // [rows]: the logarithms of their importance weights; nil if all count the same
}

// gfnStep is the E-step of method gfn (Hu et al., 2023, algorithm 2, as released): wake, moves back and forth, sleep,
// and one update of the GFlowNet from all three. It hands on the trees that the moves have led to.
type gfnStep struct {
	*gflownet
	seed     uint64
	perEpoch uint64
	// prior returns the parameters of the prior and one over its temperature; nil without a prior.
	prior func(at em.Moment) (parameters []float32, coldness float32)
}

var _ em.EStepper[parse.Padded, latents] = gfnStep{}

// Infer implements em.EStepper.
func (s gfnStep) Infer(at em.Moment, b parse.Padded) (em.Inference[latents], error) {
	return s.walker(at, b).infer(at.Maximizes, int(at.Iteration/s.perEpoch))
}

// walker makes the walks of one iteration.
type walker struct {
	*gflownet
	it       uint64
	seed     uint64
	batch    parse.Padded
	prior    []float32
	coldness float32

	back  []int // the steps back of each move
	keys  moveKeys[*tensors.Tensor]
	knobs em.Knobs[*tensors.Tensor]

	again    parse.Padded    // a row for each tree that is replayed; nothing without replay
	recalled *recalledTrees  // these trees; nil without replay
	logW     *tensors.Tensor // of the walks of wake
	logAgain *tensors.Tensor // of those to replayed trees
	replayed float64         // how many of these there are, as a fraction

	target   forest.Target[*tensors.Tensor]
	walks    forest.WalkTensors  // where the chains are
	down     *forest.WalkTensors // the walks that took dreams apart; nil without sleep
	logR     *tensors.Tensor
	latents  latents               // what M-steps learn from
	next     forest.RolloutTensors // the next move, started
	learning learnArgs
	trees    int     // on the line of the learner
	accepted float64 // the fraction of moves that was
	resumed  float64 // and of chains that went on
}

func (s gfnStep) walker(at em.Moment, b parse.Padded) *walker {
	w := &walker{gflownet: s.gflownet, it: at.Iteration, seed: s.seed, batch: b.Repeat(s.Wake.Samples), resumed: -1}
	if s.prior != nil {
		w.prior, w.coldness = s.prior(at)
	}
	if s.Wake.Replay > 0 {
		w.again = b.Repeat(s.Wake.Replay)
	}
	return w
}

func (w *walker) key(stream string, more ...uint64) *tensors.Tensor {
	return rng.Key(w.seed, "gfn/"+stream, append([]uint64{w.it}, more...)...)
}

// infer makes the E-step.
func (w *walker) infer(maximize bool, epoch int) (out em.Inference[latents], err error) {
	if err := w.run(maximize, epoch); err != nil {
		return out, err
	}
	l, err := w.update(w.optimizer.Rates(w.it))
	if err != nil {
		return out, err
	}
	out = em.NewInference(w.latents)
	out.Wake = em.Update{Loss: l.Wake, GradNorm: l.GradNorm, OK: l.OK}
	out.Unfit = !l.OK // trees of a network that is not finite are none to learn from
	if l.OK {
		w.remember()
	}
	out.Metrics = w.metrics(l)
	return out, nil
}

// run makes the walks, and the moves from where those of wake end.
func (w *walker) run(maximize bool, epoch int) error {
	w.choose(w.stepsBack(maximize, epoch))
	if err := w.walk(); err != nil {
		return err
	}
	persists := maximize && w.chains != nil
	if persists {
		if err := w.goOn(); err != nil {
			return err
		}
	}
	if err := w.moveOn(); err != nil {
		return err
	}
	if persists {
		w.chains.keep(w.batch, w.walks.Forest, func(row int) int { return row })
	}
	if !w.MStep.Weights {
		w.latents = latents{Forests: &w.walks.Forest}
	}
	return nil
}

// update learns from the walks.
func (w *walker) update(rates []float32) (learnResult, error) {
	w.learning.Rates, w.learning.Size = rates, w.lineSize(w.trees)
	return w.learn.Call(w.learning)
}

// walk weighs derivations, makes the trees of wake and rewards them, takes those of sleep apart, if there is a sleep
// phase, and starts the first move.
func (w *walker) walk() error {
	w.recall()
	dream, up, down, err := w.rollOut()
	if err != nil {
		return err
	}
	out, err := w.propose.Call(proposeArgs{
		Moves: w.keys, Knobs: w.knobs, Target: w.target, Recalled: w.recalled, Walk: up, Down: down,
	})
	if err != nil {
		return err
	}
	w.walks, w.down, w.logR, w.next = out.Wake, out.Sleep, out.Rewards.LogR, out.Next
	w.latents = latents{Forests: &out.Wake.Forest, LogW: out.LogW}
	w.learning = learnArgs{Words: w.batch.Words, Wake: out.Wake.RouteTensors, Rewards: out.Rewards}
	if w.recalled != nil {
		w.learning.Replay = &replayTensors{*w.recalled, *out.Replay}
		w.logW, w.logAgain = out.LogW, out.LogAgain
	}
	for _, n := range slices.Concat(w.batch.LengthOf, w.again.LengthOf) {
		w.trees += forest.Tokens(int(n) - 1)
	}
	if dream != nil {
		w.learning.Sleep = &undoneDreams[*tensors.Tensor, forest.InsideTensors, grammar.TreeTensors]{*dream, w.down.Inside, w.down.Undone}
		for _, steps := range w.undone(dream.Lengths) {
			w.trees += forest.Tokens(steps)
		}
	}
	return nil
}

// rollOut makes the walks of wake, and those down to bare words: first those that take recalled trees apart, then those
// of sleep, which take the dreams apart that it returns; nil without sleep. Without walks of their own, they are behind
// those of wake.
func (w *walker) rollOut() (dream *dreamTensors, up forest.WalkTensors, down *forest.WalkTensors, err error) {
	longest, x := w.batch.Longest(), w.batch.SentenceTensors
	steps := 0 // down
	if w.recalled != nil {
		steps = longest - 1
	}
	if w.Sleep.Weight > 0 {
		d, err := w.dream.Call(dreamArgs{x, w.key("dream")})
		if err != nil {
			return nil, up, nil, err
		}
		w.aim(d.Weights)
		dream = &d.Dream
		if w.Quick { // elsewhere to read the dreams here would be to wait for them
			steps = max(steps, slices.Max(w.undone(dream.Lengths)))
		} else {
			steps = max(steps, w.dreamt()-1)
		}
	} else {
		weights, err := w.Potentials.Call(x)
		if err != nil {
			return nil, up, nil, err
		}
		w.aim(weights)
	}
	if dream == nil && w.recalled == nil {
		up, err = w.Draw(w.key("wake"), w.knobs, x, longest)
		return nil, up, nil, err
	}
	r, err := w.start.Call(startArgs{w.key("wake"), w.knobs, x, w.recalled, dream})
	if err != nil {
		return nil, up, nil, err
	}
	rise, fall := forest.Rising(longest), forest.Falling(1+steps)
	if r.Down == nil {
		up, err = w.Finish(forest.Alongside(rise, fall), r.Up)
		return dream, up, nil, err
	}
	rows := len(w.batch.LengthOf)
	both := forest.Part{Of: rows + r.Down.Forest.Rows(), Words: max(r.Up.Forest.Words(), r.Down.Forest.Words())}
	if up, err = w.FinishPart(rise, r.Up, both); err != nil {
		return nil, up, nil, err
	}
	both.First = rows
	apart, err := w.FinishPart(fall, *r.Down, both)
	return dream, up, &apart, err
}

// undone are the steps of each dreamt tree that are undone, by the lengths of dreams.
func (w *walker) undone(lengths *tensors.Tensor) []int {
	var out []int
	for _, n := range tensors.MustCopyFlatData[int32](lengths) {
		out = append(out, min(int(n)-1, w.Sleep.Steps))
	}
	return out
}

// aim sets what trees are rewarded by: tensors that are sent to the device once.
func (w *walker) aim(weights grammar.PotentialTensors) {
	w.target = forest.Target[*tensors.Tensor]{Weights: weights, Lengths: w.batch.Lengths}
	if w.prior != nil {
		w.target.Prior, w.target.Coldness = tensors.FromValue(w.prior), tensors.FromValue(w.coldness)
	}
}

// moveOn makes the moves; the last one is trained.
func (w *walker) moveOn() error {
	accepted := tensors.FromValue(float32(0))
	for m, back := range w.back {
		after, err := w.Finish(forest.BackAndForth(back), w.next)
		if err != nil {
			return err
		}
		out, err := w.accept.Call(acceptArgs{
			Moves: w.keys, Knobs: w.knobs, Accepted: accepted, LogR: w.logR, Before: w.walks, After: after, Target: w.target,
		})
		if err != nil {
			return err
		}
		if m == len(w.back)-1 && w.trainsMoves() {
			w.learning.Move = &moveTensors{
				Before: w.walks.RouteTensors, After: after.RouteTensors, BeforeR: w.logR, ProposedR: out.Proposed,
			}
			for _, n := range w.batch.LengthOf {
				w.trees += 2 * forest.Tokens(min(back, int(n)-1))
			}
		}
		w.keys, accepted, w.logR, w.walks, w.next = out.Moves, out.Accepted, out.LogR, out.Walk, out.Next
	}
	if len(w.back) > 0 {
		w.accepted = float64(tensors.ToScalar[float32](accepted)) / float64(len(w.back))
	}
	return nil
}

// choose says how far back the moves of the iteration will go. The program that ends a move starts the next one, too,
// so there is one more.
func (w *walker) choose(back []int) {
	w.back = back
	knobs := w.explore().At(w.it)
	w.knobs = em.Knobs[*tensors.Tensor]{Beta: tensors.FromValue(knobs.Beta), Epsilon: tensors.FromValue(knobs.Epsilon)}
	rows := max(w.Moves.Count, w.Moves.ECount, 1) + 1 // whatever the iteration, so that all have the same programs
	var accept, move []uint64
	steps := make([]int32, rows)
	for m := range rows {
		accept = append(accept, tensors.MustCopyFlatData[uint64](w.key("accept", uint64(m)))...)
		move = append(move, tensors.MustCopyFlatData[uint64](w.key("move", uint64(m)))...)
		if m < len(back) {
			steps[m] = int32(back[m])
		}
	}
	byRow := func(x []uint64) *tensors.Tensor { return tensors.FromFlatDataAndDimensions(x, rows, len(x)/rows) }
	w.keys = moveKeys[*tensors.Tensor]{Accept: byRow(accept), Move: byRow(move), Back: tensors.FromValue(steps)}
}

// stepsBack says how far each move of the iteration goes back. Without an M-step the trained move is the only one of
// use.
func (w *walker) stepsBack(maximize bool, epoch int) []int {
	moves := w.Moves.ECount
	if maximize {
		moves = w.Moves.Count
	} else if !w.trainsMoves() {
		return nil
	}
	if w.trainsMoves() {
		moves = max(moves, 1)
	}
	back, longest := make([]int, moves), w.batch.Longest()
	for m := range back {
		most := w.Moves.Steps
		if m == moves-1 && w.trainsMoves() {
			most = min(w.Moves.FirstSteps+epoch+1, most)
		}
		back[m] = min(1+rng.New(w.seed, "gfn/steps back", w.it, uint64(m)).IntN(most), longest-1)
	}
	return back
}

// metrics are those of the parts that are switched on.
func (w *walker) metrics(l learnResult) map[string]float64 {
	out := map[string]float64{"gfn/grad_norm": l.GradNorm}
	if w.objective() != nil {
		out["wake/loss"] = l.Wake
	}
	if w.trainsMoves() {
		out["balance/loss"] = l.Balance
	}
	if w.Sleep.Weight > 0 {
		out["sleep/loss"] = l.Sleep
	}
	if len(w.back) > 0 {
		out["moves/accepted"] = w.accepted
		if w.chains != nil && w.resumed >= 0 {
			out["moves/resumed"] = w.resumed
		}
	}
	if w.recalled != nil {
		out["wake/replayed"] = w.replayed
	}
	return out
}

// lossesText says the losses in metrics in words.
func lossesText(metrics map[string]float64) string {
	var parts []string
	for _, name := range []string{"wake", "balance", "sleep"} {
		if v, ok := metrics[name+"/loss"]; ok {
			parts = append(parts, fmt.Sprintf("%s %.2f", name, v))
		}
	}
	return strings.Join(parts, ", ")
}
