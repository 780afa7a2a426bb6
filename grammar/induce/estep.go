package induce

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/grammar/forest"
	"github.com/gfnem/gfnem/rng"
)

// eStep is the E-step of one iteration.
type eStep struct {
	*gflownet
	it       uint64
	seed     uint64
	batch    batch
	prior    []float32
	coldness float32

	back      []int           // the steps back of each move
	itinerary *tensors.Tensor // the same, and keys, for the device; see stop
	explore   *tensors.Tensor // knobs

	potentials []*tensors.Tensor
	judges     []any             // what trees are judged by
	walks      []*tensors.Tensor // where the chains are
	logR       *tensors.Tensor
	journey    []*tensors.Tensor // the next move, set out
	learning   learning
	tokens     int     // trees on the line of the learner
	accepted   float64 // the fraction of moves that was
	outcome    gfnOutcome
}

// gfnOutcome is what an update of the GFlowNet says.
type gfnOutcome struct {
	wake, balance, sleep, norm float64
	ok                         bool
}

func (w *eStep) key(stream string, more ...uint64) *tensors.Tensor {
	return rng.Key(w.seed, "gfn/"+stream, append([]uint64{w.it}, more...)...)
}

// run makes the E-step: walks, their rewards, moves, and one update of the GFlowNet from all of these.
func (w *eStep) run(maximize bool, epoch int) error {
	w.choose(w.stepsBack(maximize, epoch))
	if err := w.walk(); err != nil {
		return err
	}
	if err := w.moveOn(); err != nil {
		return err
	}
	return w.learnWith(w.optimizer.Rates(w.it))
}

// learnWith updates the GFlowNet with these learning rates.
func (w *eStep) learnWith(rates []float32) error {
	learner, err := w.learner(w.tokens)
	if err != nil {
		return err
	}
	out, err := learner.Call(w.learning.args(rates)...)
	if err != nil {
		return err
	}
	v := tensors.MustCopyFlatData[float32](out[0])
	w.outcome = gfnOutcome{wake: float64(v[0]), balance: float64(v[1]), sleep: float64(v[2]), norm: float64(v[3]), ok: v[4] != 0}
	return nil
}

// walk weighs derivations, makes the trees of wake and judges them, takes those of sleep apart, if there is a sleep phase, and sets out on the
// first move.
func (w *eStep) walk() (err error) {
	var begun, dream []*tensors.Tensor
	up := rising(w.batch.longest())
	if w.Sleep == 0 {
		if w.potentials, err = w.gflownet.potentials.Call(w.batch.words, w.batch.lengths); err != nil {
			return err
		}
		begun, err = w.through(up, w.wake, w.key("wake"), w.explore, w.batch.words, w.batch.lengths)
	} else {
		out, e := w.dream.Call(w.batch.words, w.batch.lengths, w.key("dream"))
		if e != nil {
			return e
		}
		w.potentials, dream = out[:potentialsSize], out[potentialsSize:]
		down := w.dreamt() - 1
		if w.onCPU { // elsewhere to read the dreams here would be to wait for them
			down = slices.Max(w.undone(dream))
		}
		args := appendAll([]any{w.key("wake"), w.explore, w.batch.words, w.batch.lengths}, dream)
		begun, err = w.through(alongside(up, falling(1+down)), w.begin, args...)
	}
	if err != nil {
		return err
	}
	out, err := w.arrive.Call(appendAll(append([]any{w.itinerary, w.explore}, w.judged()...), begun)...)
	if err != nil {
		return err
	}
	next := func(n int) []*tensors.Tensor {
		some := out[:n]
		out = out[n:]
		return some
	}
	w.walks = next(forest.WalkSize)
	rewards := next(2)
	w.logR = rewards[0]
	w.learning.words, w.learning.wake, w.learning.wakeR, w.learning.nodes = w.batch.words, w.walks, rewards[0], rewards[1]
	for _, n := range w.batch.lengthOf {
		w.tokens += forest.Tokens(int(n) - 1)
	}
	if dream != nil {
		w.learning.dream, w.learning.down = dream, next(forest.WalkSize)
		for _, steps := range w.undone(dream) {
			w.tokens += forest.Tokens(steps)
		}
	}
	w.journey = out
	return nil
}

// undone are the steps of each dreamt tree that are undone.
func (w *eStep) undone(dream []*tensors.Tensor) []int {
	var out []int
	for _, n := range tensors.MustCopyFlatData[int32](dream[1]) {
		out = append(out, min(int(n)-1, w.DreamSteps))
	}
	return out
}

// judged are the arguments by which trees are judged, as they are when it is first called: tensors that are sent to the device once.
func (w *eStep) judged() []any {
	if w.judges == nil {
		prior := w.prior
		if prior == nil {
			prior = []float32{0}
		}
		w.judges = slices.Clip(append(appendAll(nil, w.potentials), w.batch.lengths, tensors.FromValue(prior), tensors.FromValue(w.coldness)))
	}
	return w.judges
}

// reward returns log R of the whole trees that walks stand at.
func (w *eStep) reward(walks []*tensors.Tensor) (*tensors.Tensor, error) {
	out, err := w.judge.Call(appendAll(w.judged(), walks[forest.WalkForest:])...)
	if err != nil {
		return nil, err
	}
	return out[0], nil
}

// moveOn makes the moves; the last one is trained.
func (w *eStep) moveOn() error {
	accepted := tensors.FromValue(float32(0))
	for m, back := range w.back {
		after, err := w.travel(backAndForth(back), w.journey)
		if err != nil {
			return err
		}
		args := appendAll(appendAll([]any{w.itinerary, w.explore, accepted, w.logR}, w.walks), after)
		out, err := w.settle.Call(append(args, w.judged()...)...)
		if err != nil {
			return err
		}
		if m == len(w.back)-1 && w.trainsMoves() {
			w.learning.before, w.learning.after, w.learning.beforeR, w.learning.afterR = w.walks, after, w.logR, out[2]
			for _, n := range w.batch.lengthOf {
				w.tokens += 2 * forest.Tokens(min(back, int(n)-1))
			}
		}
		w.itinerary, accepted, w.logR = out[0], out[1], out[3]
		w.walks, w.journey = out[settledHead:settledHead+forest.WalkSize], out[settledHead+forest.WalkSize:]
	}
	if len(w.back) > 0 {
		w.accepted = float64(tensors.ToScalar[float32](accepted)) / float64(len(w.back))
	}
	return nil
}

// choose says how far back the moves of the iteration will go. The program that settles a move prepares the next one, too, so there is one more.
func (w *eStep) choose(back []int) {
	w.back, w.explore = back, tensors.FromValue(w.knobs())
	rows := max(w.Moves, w.EMoves, 1) + 1 // whatever the iteration, so that all have the same programs
	var flat []uint64
	for m := range uint64(rows) {
		for _, key := range []*tensors.Tensor{w.key("accept", m), w.key("move", m)} {
			flat = append(flat, tensors.MustCopyFlatData[uint64](key)...)
		}
		var back uint64
		if int(m) < len(w.back) {
			back = uint64(w.back[m])
		}
		flat = append(flat, back)
	}
	w.itinerary = tensors.FromFlatDataAndDimensions(flat, rows, len(flat)/rows)
}

// stepsBack says how far each move of the iteration goes back. Without an M-step the trained move is the only one of use.
func (w *eStep) stepsBack(maximize bool, epoch int) []int {
	moves := w.EMoves
	if maximize {
		moves = w.Moves
	} else if !w.trainsMoves() {
		return nil
	}
	if w.trainsMoves() {
		moves = max(moves, 1)
	}
	back, longest := make([]int, moves), w.batch.longest()
	for m := range back {
		most := w.BackSteps
		if m == moves-1 && w.trainsMoves() {
			most = min(w.BackStart+epoch+1, most)
		}
		back[m] = min(1+rng.New(w.seed, "gfn/steps back", w.it, uint64(m)).IntN(most), longest-1)
	}
	return back
}

// metrics are those of the parts that are switched on.
func (w *eStep) metrics() map[string]float64 {
	out := map[string]float64{"gfn/grad_norm": w.outcome.norm}
	if w.objective() != nil {
		out["wake/loss"] = w.outcome.wake
	}
	if w.trainsMoves() {
		out["balance/loss"] = w.outcome.balance
	}
	if w.Sleep > 0 {
		out["sleep/loss"] = w.outcome.sleep
	}
	if len(w.back) > 0 {
		out["moves/accepted"] = w.accepted
	}
	return out
}

// text says the losses in words.
func (w *eStep) text() string {
	var parts []string
	for _, name := range []string{"wake", "balance", "sleep"} {
		if v, ok := w.metrics()[name+"/loss"]; ok {
			parts = append(parts, fmt.Sprintf("%s %.2f", name, v))
		}
	}
	return strings.Join(parts, ", ")
}

func appendAll(args []any, list []*tensors.Tensor) []any {
	for _, t := range list {
		args = append(args, t)
	}
	return args
}

// forests are the trees that the chains have led to.
func (w *eStep) forests() []*tensors.Tensor { return w.walks[forest.WalkForest:] }
