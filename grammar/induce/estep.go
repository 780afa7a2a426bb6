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

	potentials []*tensors.Tensor
	walks      []*tensors.Tensor // where the chains are
	logR       *tensors.Tensor
	learning   learning
	tokens     int     // trees on the line of the learner
	moves      int     // made
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
	if err := w.walk(); err != nil {
		return err
	}
	var nodes *tensors.Tensor
	var err error
	if w.logR, nodes, err = w.reward(w.walks); err != nil {
		return err
	}
	w.learning.words, w.learning.wake, w.learning.wakeR, w.learning.nodes = w.batch.words, w.walks, w.logR, nodes
	for _, n := range w.batch.lengthsOf() {
		w.tokens += forest.Tokens(n - 1)
	}
	if err := w.moveOn(maximize, epoch); err != nil {
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

// walk weighs derivations, makes the trees of wake, and takes those of sleep apart, if there is a sleep phase.
func (w *eStep) walk() (err error) {
	trees := rising(w.batch.longest())
	if w.Sleep == 0 {
		if w.potentials, err = w.gflownet.potentials.Call(w.batch.words, w.batch.lengths); err != nil {
			return err
		}
		w.walks, err = w.through(trees, w.wake, w.key("wake"), w.knobs(), w.batch.words, w.batch.lengths)
		return err
	}
	out, err := w.dream.Call(w.batch.words, w.batch.lengths, w.key("dream"))
	if err != nil {
		return err
	}
	w.potentials = out[:potentialsSize]
	d := out[potentialsSize:]
	down := w.dreamt() - 1
	if w.onCPU { // elsewhere to read the dreams here would be to wait for them
		down = slices.Max(w.undone(d))
	}
	begun, err := w.through(alongside(trees, falling(1+down)), w.begin, appendAll([]any{w.key("wake"), w.knobs(), w.batch.words, w.batch.lengths}, d)...)
	if err != nil {
		return err
	}
	both, err := w.part.Call(appendAll([]any{w.batch.words, d[0]}, begun)...)
	if err != nil {
		return err
	}
	for _, steps := range w.undone(d) {
		w.tokens += forest.Tokens(steps)
	}
	w.walks = both[:forest.WalkSize]
	w.learning.dream, w.learning.down = d, both[forest.WalkSize:]
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

// judged are the arguments by which trees are judged, tensors: they are sent to the device once, also if they are used for several calls.
func (w *eStep) judged() []any {
	prior := w.prior
	if prior == nil {
		prior = []float32{0}
	}
	return append(appendAll(nil, w.potentials), w.batch.lengths, tensors.FromValue(prior), tensors.FromValue(w.coldness))
}

// reward returns log R of the whole trees that walks stand at, and the scores of their nodes.
func (w *eStep) reward(walks []*tensors.Tensor) (logR, nodes *tensors.Tensor, err error) {
	out, err := w.judge.Call(appendAll(w.judged(), walks[forest.WalkForest:])...)
	if err != nil {
		return nil, nil, err
	}
	return out[0], out[1], nil
}

// moveOn makes the moves; the last one is trained.
func (w *eStep) moveOn(maximize bool, epoch int) error {
	back := w.stepsBack(maximize, epoch)
	w.moves, w.accepted = len(back), 0
	if w.moves == 0 {
		return nil
	}
	knobs, judged := tensors.FromValue(w.knobs()), w.judged()
	journey, err := w.move.Call(appendAll([]any{w.key("move", 0), knobs, int32(back[0]), true}, w.walks)...)
	if err != nil {
		return err
	}
	accepted := make([]*tensors.Tensor, w.moves)
	back = append(back, 0) // the program that settles a move prepares the next one, too
	for m := range w.moves {
		after, err := w.travel(backAndForth(back[m]), journey)
		if err != nil {
			return err
		}
		args := []any{w.key("accept", uint64(m)), w.key("move", uint64(m+1)), knobs, int32(back[m+1]), w.logR}
		out, err := w.settle.Call(append(appendAll(appendAll(args, w.walks), after), judged...)...)
		if err != nil {
			return err
		}
		const k = forest.WalkSize
		if m == w.moves-1 && w.trainsMoves() {
			w.learning.before, w.learning.after, w.learning.beforeR, w.learning.afterR = w.walks, after, w.logR, out[k+2]
			for _, n := range w.batch.lengthsOf() {
				w.tokens += 2 * forest.Tokens(min(back[m], n-1))
			}
		}
		w.logR, w.walks, accepted[m], journey = out[0], out[1:1+k], out[k+1], out[k+3:]
	}
	for _, t := range accepted {
		w.accepted += float64(tensors.ToScalar[float32](t)) / float64(w.moves)
	}
	return nil
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
	if w.moves > 0 {
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
