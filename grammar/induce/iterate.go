package induce

import (
	"fmt"
	"math"

	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/run"
)

// iterate is one iteration of GFlowNet-EM (Hu et al., 2023, algorithm 2, as released): wake, moves back and forth, sleep, one update of
// the GFlowNet from all three, and if the gate was open an update of the grammar on the trees that the moves have led to. The gate
// decides on the next iteration; the first one of an epoch makes no M-step.
func (s *session) iterate() (run.Tick, error) {
	it := s.Iterations
	b := s.sampler.at(it)
	epoch := it / s.sampler.perEpoch()
	begins := it%s.sampler.perEpoch() == 0 && s.sampler.perEpoch() > 1 // epochs of one batch would never have an M-step
	maximize := s.fixed == nil && s.Gate.Open && !begins

	w := &eStep{gflownet: s.gfn, it: it, batch: b, seed: s.Config.Seed}
	if s.EBM {
		w.prior, w.coldness = float32s(s.prior.Params), float32(1/s.temperature(s.Made))
	}
	if err := w.run(maximize, int(epoch)); err != nil {
		return run.Tick{}, fmt.Errorf("iteration %d: %w", it, err)
	}
	e := w.outcome
	s.Iterations++
	if s.fixed != nil {
		s.Made++ // an update is one of the GFlowNet
	}
	log := w.metrics()
	if err := s.count(em.Update{Loss: e.wake, GradNorm: e.norm, OK: e.ok}, &s.InARow.E, "GFlowNet"); err != nil {
		return run.Tick{}, err
	}
	tick := run.Tick{Text: fmt.Sprintf("%s, %d of %d updates", w.text(), s.Made, s.Config.Updates)}
	if it%10 == 0 {
		tick.Log = log
	}
	if s.fixed == nil {
		s.observe(e, log)
	}
	maximize = maximize && e.ok // trees of a network that is not finite are none to learn from
	if maximize {
		if err := s.maximize(b, w.forests(), log); err != nil {
			return run.Tick{}, err
		}
	}
	if maximize || s.fixed != nil {
		log["updates"], log["skipped"] = float64(s.Made), float64(s.Skipped)
		if err := s.maybeWatch(&tick, log); err != nil {
			return run.Tick{}, err
		}
	}
	tick.Step, tick.Total = s.at(), s.expected()
	return tick, nil
}

// observe tells the gate of an E-step.
func (s *session) observe(e gfnOutcome, log map[string]float64) {
	loss := e.wake
	if !e.ok {
		loss = math.NaN()
	}
	threshold := s.threshold()
	em.Gate{Threshold: threshold}.Observe(&s.Gate, loss, s.Made)
	log["gate/average"], log["gate/threshold"], log["gate/open"] = s.Gate.Average, threshold.At(s.Made), number(s.Gate.Open)
	log["updates"] = float64(s.Made)
}

// maximize updates the grammar on a tree of each sentence.
func (s *session) maximize(b batch, trees []*tensors.Tensor, log map[string]float64) error {
	out, err := s.programs.update(s.forests, s.Made, b, appendAll(nil, trees)...)
	if err != nil {
		return err
	}
	s.Made++
	log["loss"], log["loss_per_word"], log["grad_norm"] = out.Loss, out.Loss*float64(b.size)/float64(b.tokens), out.GradNorm
	return s.count(out, &s.InARow.M, "grammar")
}

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func float32s(x []float64) []float32 {
	out := make([]float32, len(x))
	for i, v := range x {
		out[i] = float32(v)
	}
	return out
}
