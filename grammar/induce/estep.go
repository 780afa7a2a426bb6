package induce

import (
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
	tokens     int // trees on the line of the learner
	accepted   float64
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

func (w *eStep) run(maximize bool, epoch int) error {
	out, err := w.gflownet.potentials.Call(w.batch.words, w.batch.lengths)
	if err != nil {
		return err
	}
	w.potentials = out
	if err := w.walk(); err != nil {
		return err
	}
	var nodes *tensors.Tensor
	if w.logR, nodes, err = w.reward(w.walks); err != nil {
		return err
	}
	w.learning.words, w.learning.lengths = w.batch.words, w.batch.lengths
	w.learning.wake, w.learning.wakeR, w.learning.nodes = w.walks, w.logR, nodes
	for _, n := range w.batch.lengthsOf() {
		w.tokens += tokensOfSteps(n - 1)
	}
	if err := w.moveOn(maximize, epoch); err != nil {
		return err
	}
	learner, err := w.learner(w.tokens)
	if err != nil {
		return err
	}
	out, err = learner.Call(w.learning.args(w.optimizer.Rates(w.it))...)
	if err != nil {
		return err
	}
	v := tensors.MustCopyFlatData[float32](out[0])
	w.outcome = gfnOutcome{wake: float64(v[0]), balance: float64(v[1]), sleep: float64(v[2]), norm: float64(v[3]), ok: v[4] != 0}
	return nil
}

// walk makes the trees of wake, and takes those of sleep apart, if there is a sleep phase.
func (w *eStep) walk() (err error) {
	if w.Sleep == 0 {
		w.walks, err = w.through(w.wake, w.key("wake"), w.knobs(), w.batch.words, w.batch.lengths)
		return err
	}
	d, err := w.dream.Call(w.key("dream"))
	if err != nil {
		return err
	}
	begun, err := w.through(w.begin, appendAll([]any{w.key("wake"), w.knobs(), w.batch.words, w.batch.lengths}, d)...)
	if err != nil {
		return err
	}
	both, err := w.part.Call(appendAll([]any{w.batch.words, d[0]}, begun)...)
	if err != nil {
		return err
	}
	for _, n := range tensors.MustCopyFlatData[int32](d[1]) {
		w.tokens += tokensOfSteps(min(int(n)-1, w.DreamSteps))
	}
	w.walks = both[:forest.WalkSize]
	w.learning.dream = append(d, both[forest.WalkSize:]...)
	return nil
}

// through sets out on journeys by a program and makes them.
func (e *gflownet) through(p *program, args ...any) ([]*tensors.Tensor, error) {
	j, err := p.Call(args...)
	if err != nil {
		return nil, err
	}
	return e.travel.Call(appendAll(nil, j)...)
}

// judged are the arguments by which trees are judged.
func (w *eStep) judged() []any {
	prior := w.prior
	if prior == nil {
		prior = []float32{0}
	}
	return []any{w.potentials[0], w.potentials[1], w.potentials[2], w.batch.lengths, prior, w.coldness}
}

// reward returns log R of the whole trees that walks stand at, and the scores of their nodes.
func (w *eStep) reward(walks []*tensors.Tensor) (logR, nodes *tensors.Tensor, err error) {
	out, err := w.judge.Call(appendAll(w.judged(), walks[7:forest.WalkSize])...)
	if err != nil {
		return nil, nil, err
	}
	return out[0], out[1], nil
}

// moveOn makes the moves; the last one is trained.
func (w *eStep) moveOn(maximize bool, epoch int) error {
	moves := w.EMoves
	if maximize {
		moves = w.Moves
	} else if !w.moves() {
		return nil // nobody would look at them
	}
	if w.moves() {
		moves = max(moves, 1)
	}
	if moves == 0 {
		return nil
	}
	longest := 0
	for _, n := range w.batch.lengthsOf() {
		longest = max(longest, n)
	}
	back := make([]int, moves+1) // the one after the last is not made
	for m := range moves {
		most := w.BackSteps
		if m == moves-1 && w.moves() {
			most = min(w.BackStart+epoch+1, most)
		}
		back[m] = min(1+rng.New(w.seed, "gfn/steps back", w.it, uint64(m)).IntN(most), longest-1)
	}
	journey, err := w.move.Call(appendAll([]any{w.key("move", 0), w.knobs(), int32(back[0]), true}, w.walks)...)
	if err != nil {
		return err
	}
	accepted := make([]*tensors.Tensor, moves)
	for m := range moves {
		after, err := w.travel.Call(appendAll(nil, journey)...)
		if err != nil {
			return err
		}
		args := []any{w.key("accept", uint64(m)), w.key("move", uint64(m+1)), w.knobs(), int32(back[m+1]), w.logR}
		out, err := w.settle.Call(append(appendAll(appendAll(args, w.walks), after), w.judged()...)...)
		if err != nil {
			return err
		}
		const k = forest.WalkSize
		if m == moves-1 && w.moves() {
			w.learning.before, w.learning.after, w.learning.beforeR, w.learning.afterR = w.walks, after, w.logR, out[k+2]
			for _, n := range w.batch.lengthsOf() {
				w.tokens += 2 * tokensOfSteps(min(back[m], n-1))
			}
		}
		w.logR, w.walks, accepted[m], journey = out[0], out[1:1+k], out[k+1], out[k+3:]
	}
	for _, t := range accepted {
		w.accepted += float64(tensors.ToScalar[float32](t)) / float64(moves)
	}
	return nil
}

func appendAll(args []any, list []*tensors.Tensor) []any {
	for _, t := range list {
		args = append(args, t)
	}
	return args
}

// forests are the trees that the chains have led to.
func (w *eStep) forests() []*tensors.Tensor { return w.walks[7:forest.WalkSize] }
