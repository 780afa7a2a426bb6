package induce

import (
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/grammar/forest"
	"github.com/gfnem/gfnem/rng"
)

// wakeUp is the E-step of one iteration.
type wakeUp struct {
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

func (w *wakeUp) key(stream string, more ...uint64) *tensors.Tensor {
	return rng.Key(w.seed, "gfn/"+stream, append([]uint64{w.it}, more...)...)
}

func (w *wakeUp) run(maximize bool, epoch int) error {
	out, err := w.gflownet.potentials.Call(w.batch.words, w.batch.lengths)
	if err != nil {
		return err
	}
	w.potentials = out
	if w.walks, err = w.through(w.wake, w.key("wake"), w.knobs(), w.batch.words, w.batch.lengths); err != nil {
		return err
	}
	var nodes *tensors.Tensor
	if w.logR, nodes, err = w.reward(w.walks); err != nil {
		return err
	}
	w.learning = learning{words: w.batch.words, lengths: w.batch.lengths, wake: w.walks, wakeR: w.logR, nodes: nodes}
	for _, s := range w.batch.lengthsOf() {
		w.tokens += tokensOfSteps(s - 1)
	}
	if err := w.moveOn(maximize, epoch); err != nil {
		return err
	}
	if w.Sleep > 0 {
		if err := w.fallAsleep(); err != nil {
			return err
		}
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

// through sets out on journeys by a program and makes them.
func (e *gflownet) through(p *program, args ...any) ([]*tensors.Tensor, error) {
	j, err := p.Call(args...)
	if err != nil {
		return nil, err
	}
	return e.travel.Call(appendAll(nil, j)...)
}

// reward returns log R of the whole trees that walks stand at, and the scores of their nodes.
func (w *wakeUp) reward(walks []*tensors.Tensor) (logR, nodes *tensors.Tensor, err error) {
	prior := w.prior
	if prior == nil {
		prior = []float32{0}
	}
	args := []any{w.potentials[0], w.potentials[1], w.potentials[2], w.batch.lengths, prior, w.coldness}
	out, err := w.judge.Call(appendAll(args, walks[7:forest.WalkSize])...)
	if err != nil {
		return nil, nil, err
	}
	return out[0], out[1], nil
}

// moveOn makes the moves; the last one is trained.
func (w *wakeUp) moveOn(maximize bool, epoch int) error {
	moves := w.EMoves
	if maximize {
		moves = w.Moves
	} else if !w.moves() {
		return nil // nobody would look at them
	}
	if w.moves() {
		moves = max(moves, 1)
	}
	longest := 0
	for _, n := range w.batch.lengthsOf() {
		longest = max(longest, n)
	}
	var accepted []*tensors.Tensor
	for m := range moves {
		most := w.BackSteps
		last := m == moves-1
		if last && w.moves() {
			most = min(w.BackStart+epoch+1, most)
		}
		back := 1 + rng.New(w.seed, "gfn/steps back", w.it, uint64(m)).IntN(most)
		back = min(back, longest-1)
		args := []any{w.key("move", uint64(m)), w.knobs(), int32(back), true}
		next, err := w.through(w.move, appendAll(args, w.walks)...)
		if err != nil {
			return err
		}
		nextR, _, err := w.reward(next)
		if err != nil {
			return err
		}
		if last && w.moves() {
			w.learning.before, w.learning.after, w.learning.beforeR, w.learning.afterR = w.walks, next, w.logR, nextR
			for _, n := range w.batch.lengthsOf() {
				w.tokens += 2 * tokensOfSteps(min(back, n-1))
			}
		}
		args = appendAll([]any{w.key("accept", uint64(m)), w.logR}, w.walks)
		out, err := w.choose.Call(appendAll(append(args, nextR), next)...)
		if err != nil {
			return err
		}
		w.logR, w.walks = out[0], out[1:1+forest.WalkSize]
		accepted = append(accepted, out[1+forest.WalkSize])
	}
	for _, t := range accepted {
		w.accepted += float64(tensors.ToScalar[float32](t)) / float64(len(accepted))
	}
	return nil
}

// fallAsleep draws trees from the grammar and takes them apart.
func (w *wakeUp) fallAsleep() error {
	d, err := w.dream.Call(w.key("dream"))
	if err != nil {
		return err
	}
	from, err := w.embed.Call(appendAll(nil, d)...)
	if err != nil {
		return err
	}
	longest := 0
	for _, n := range tensors.MustCopyFlatData[int32](d[1]) {
		steps := min(int(n)-1, w.DreamSteps)
		longest = max(longest, steps)
		w.tokens += tokensOfSteps(steps)
	}
	down, err := w.through(w.move, appendAll([]any{w.key("undream"), []float32{1, 0}, int32(longest), false}, from)...)
	if err != nil {
		return err
	}
	w.learning.dreamFrom = from
	w.learning.dream = append([]*tensors.Tensor{d[0]}, down...)
	return nil
}

func appendAll(args []any, list []*tensors.Tensor) []any {
	for _, t := range list {
		args = append(args, t)
	}
	return args
}

// forests are the trees that the chains have led to.
func (w *wakeUp) forests() []*tensors.Tensor { return w.walks[7:forest.WalkSize] }
