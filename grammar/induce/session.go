package induce

import (
	"cmp"
	"errors"
	"fmt"
	"math"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/grammar/chain"
	"github.com/gfnem/gfnem/grammar/parse"
	"github.com/gfnem/gfnem/grammar/prior"
	"github.com/gfnem/gfnem/internal/program"
	"github.com/gfnem/gfnem/nn"
	"github.com/gfnem/gfnem/run"
	"github.com/gfnem/gfnem/treebank"
)

// Task learns a grammar: run.Task, but for what is made of a training at its end.
type Task struct{}

// Name implements run.Task.
func (Task) Name() string { return "grammar" }

// Presets implements run.Task.
func (Task) Presets() []string { return []string{"quick", "best", "paper", "small"} }

// Config implements run.Task.
func (Task) Config(preset string) any { return run.PresetOf(presets, preset) }

// Start opens the data of a configuration and prepares to learn from it.
func (Task) Start(b compute.Backend, config any) (*Session, error) {
	c := *config.(*Config)
	data, whole, err := openData(&c)
	if err != nil {
		return nil, err
	}
	s, err := NewSession(b, c, data)
	if err != nil || c.Eval.MaxLength == 0 {
		return s, err
	}
	if err := s.measureOn(whole); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Session is a grammar in training: run.Session, but for what is made of it at its end.
type Session struct {
	Config
	data *treebank.Dataset
	// measured are the splits of an evaluation, if they are not those of the data.
	measured []*treebank.Split
	model    grammar.Neural
	set      *program.Set // of what is trained
	loop     em.Loop[parse.Padded, latents]
	batch    parse.Padded // of the last iteration
	// Exact does exact inference with the grammar as it is, and Network parses with the GFlowNet; nil with other
	// methods.
	Exact   *parse.Exact
	Network *parse.GFlowNet
	sampler *sampler
	best    *run.Best        // nil if the last state is the one that counts
	tried   *run.Best        // the best start; nil if there is only one
	prior   *prior.Trainer   // nil without a prior
	gfn     *gflownet        // nil with other methods
	fixed   *grammar.Grammar // nil if the grammar is learned
	counters
}

var _ run.Job = (*Session)(nil)

// NewSession prepares to learn from data, whose sentences have two words or more.
func NewSession(b compute.Backend, c Config, data *treebank.Dataset) (*Session, error) {
	fixed, data, err := c.fix(b, data)
	if err != nil {
		return nil, err
	}
	train, err := data.Split(treebank.Train)
	if err != nil {
		return nil, err
	}
	if len(train.Sentences) < c.Batch {
		return nil, badinput.Errorf("%s has %d training sentences of 2 to %d words, fewer than a batch of %d: lower the key batch",
			c.Data, len(train.Sentences), c.MaxLength, c.Batch)
	}
	s := &Session{Config: c, data: data, set: program.NewSet(b, nn.NewStore(c.Seed)), fixed: fixed}
	if len(s.HeldOut()) == 0 { // rather now than when all updates are made
		return nil, badinput.Errorf(
			"%s has no validation or test sentences of 2 to %d words to evaluate on: make it again with some",
			c.Data, c.MaxLength)
	}
	s.Words = data.Vocabulary.Words()
	s.model = c.model(len(s.Words))
	tables := func(g *graph.Graph) grammar.LogProbs { return s.model.LogProbs(s.set.Store.Scope(em.Theta), g) }
	if fixed != nil {
		s.Symbols = &symbols{fixed.Kind, fixed.Nonterminals, fixed.Preterminals}
		tables = setFixed(s.set.Store, fixed)
	}
	s.sampler = &sampler{Config: &s.Config, sentences: train.Sentences}
	if c.Prior.On {
		if !train.Gold {
			return nil, badinput.Errorf("prior.on = true learns from gold trees, and %s has none", c.Data)
		}
		own := prior.Config{Seed: c.Seed, Batch: c.Batch, LR: c.Prior.Rate, L2: c.Prior.L2, Reset: c.Prior.Reset}
		s.prior = prior.NewTrainer(own, train.Sentences)
	}
	if err := s.newLoop(tables); err != nil {
		return nil, err
	}
	if err := s.declare(tables); err != nil {
		return nil, err
	}
	if err := cmp.Or(s.keepBest(), s.keepStarts()); err != nil {
		return nil, err
	}
	s.Exact = parse.ExactOf(s.set, tables)
	s.Exact.Bucket = c.Bucket
	return s, nil
}

// newLoop chooses the steps of the method.
func (s *Session) newLoop(tables func(*graph.Graph) grammar.LogProbs) (err error) {
	s.loop.Data = func(iteration uint64) parse.Padded {
		s.batch = s.sampler.at(iteration)
		return s.batch
	}
	s.loop.M = newMStep(s.set, tables, &s.Config)
	switch s.Method {
	case MCEM:
		chains := newChainStep(s.set, tables, &s.Config)
		if s.prior != nil {
			chains.logPrior = func(at em.Moment, sentences int) func(int, *chain.Tree) float64 {
				return s.prior.LogPrior(sentences, s.ebmTemperature(at.M))
			}
		}
		s.loop.E = chains
	case GFN:
		if s.gfn, err = newGFlowNet(s.set, tables, len(s.Words), &s.Config); err != nil {
			return err
		}
		if err := s.keepTrees(); err != nil {
			return err
		}
		s.Network = parse.NewGFlowNet(s.gfn.Sampler, s.batches())
		s.Network.NoFlows = s.Wake.Objective != "subtb" && s.Wake.Objective != "tb"
		e := gfnStep{gflownet: s.gfn, seed: s.Config.Seed, perEpoch: s.sampler.perEpoch()}
		if s.prior != nil {
			e.prior = func(em.Moment) ([]float32, float32) {
				return float32s(s.prior.Params), float32(1 / s.ebmTemperature(s.made()))
			}
		}
		s.loop.E, s.loop.Gate = e, s.gate()
	}
	return nil
}

// keepTrees makes room for trees that E-steps of later epochs go on from.
func (s *Session) keepTrees() (err error) {
	keep := func(name string, each int) (k *keptTrees) {
		if each > 0 && err == nil {
			k, err = newKeptTrees(s.set.Store, name, len(s.sampler.sentences), each, s.MaxLength)
		}
		return k
	}
	if s.Moves.Persist {
		s.gfn.chains = keep("chains", s.Wake.Samples)
	}
	s.gfn.replay = keep("replay", s.Wake.Replay)
	return err
}

// gate is that of method gfn.
func (s *Session) gate() em.Gate {
	if s.fixed != nil {
		return em.Never
	}
	return em.Adaptive{Threshold: s.threshold(), Epoch: s.sampler.perEpoch()}
}

// made is the number of updates of the grammar, or of the GFlowNet alone if the grammar is fixed; skipped ones
// included.
func (s *Session) made() uint64 {
	if s.fixed != nil {
		return s.loop.State().Iteration
	}
	return s.loop.State().M
}

// total is the number of steps: updates of the prior first, then of the grammar, or iterations of the GFlowNet, at
// least.
func (s *Session) total() uint64 {
	if s.impatient() {
		return s.at()
	}
	n := uint64(s.Config.Updates)
	if s.gfn != nil {
		n += s.loop.State().Iteration - s.made()
		if most := uint64(s.MaxIterations); most > 0 {
			n = min(n, most)
		}
	}
	if s.prior != nil {
		n += uint64(s.Prior.Updates)
	}
	return n + s.spent() + s.left()
}

// expected is the number of steps as far as it can be told, once there is a prior if there is to be one. How many
// iterations an M-step takes is known from those so far; at first, as if a twentieth of all had been made before, by
// one iteration each.
func (s *Session) expected() uint64 {
	if s.gfn == nil || s.impatient() {
		return s.total()
	}
	done := s.loop.State().Iteration
	known, left := 1+s.Config.Updates/20, uint64(s.Config.Updates)-s.made()
	each := (float64(done) + float64(known)) / (float64(s.made()) + float64(known))
	n := done + uint64(math.Ceil(each*float64(left)))
	if most := uint64(s.MaxIterations); most > 0 {
		n = min(n, most)
	}
	return s.OfPrior + n + s.spent() + s.left()
}

// Progress implements run.Session.
func (s *Session) Progress() (step, total uint64) {
	if s.priorComes() {
		return s.at(), s.total()
	}
	return s.at(), s.expected()
}

// Done implements run.Job.
func (s *Session) Done() bool { return s.at() >= s.total() }

func (s *Session) at() uint64 { return s.OfPrior + s.spent() + s.loop.State().Iteration }

// Step implements run.Job: an update of the prior, or an iteration of the loop.
func (s *Session) Step() (run.Tick, error) {
	if s.priorComes() {
		return s.stepPrior()
	}
	it := s.loop.State().Iteration
	r, err := s.loop.Step()
	if errors.Is(err, em.ErrDiverged) {
		return run.Tick{}, fmt.Errorf("%w: step %d: %w", run.ErrGaveUp, s.at(), err)
	} else if err != nil {
		return run.Tick{}, err
	}
	log := s.metrics(r)
	tick := run.Tick{Step: s.at(), Total: s.expected()}
	if s.gfn != nil {
		tick.Text = fmt.Sprintf("%s, %d of %d updates", lossesText(log), s.made(), s.Config.Updates)
	} else {
		tick.Text = fmt.Sprintf("%.3f nats a word", log["loss_per_word"])
	}
	if it%10 == 0 {
		tick.Log = log
	}
	if every := uint64(s.Eval.Every); every > 0 && (r.M != nil || s.fixed != nil) && (s.made()%every == 0 || s.Done()) {
		tick.Log = log
		if err := s.watch(log); err != nil {
			return tick, err
		}
	}
	if s.starting() && r.M != nil && s.made() == uint64(s.RestartUpdates) {
		tick.Log = log
		if err := s.endStart(log); err != nil {
			return tick, err
		}
	}
	tick.Total = s.expected()
	return tick, nil
}

// metrics are those of an iteration.
func (s *Session) metrics(r em.Report) map[string]float64 {
	log := r.Metrics
	if log == nil {
		log = map[string]float64{}
	}
	if r.M != nil {
		log["loss"], log["grad_norm"] = r.M.Loss, r.M.GradNorm
		log["loss_per_word"] = r.M.Loss * float64(len(s.batch.Sentences)) / float64(parse.Tokens(s.batch.Sentences))
	}
	if gate, ok := s.loop.Gate.(em.Adaptive); ok {
		before := r.State.M
		if r.M != nil {
			before--
		}
		log["gate/average"], log["gate/threshold"], log["gate/open"] = r.State.Gate.Average, gate.At(before), 0
		if r.State.Gate.Open {
			log["gate/open"] = 1
		}
	}
	if s.gfn != nil {
		log["updates"] = float64(s.made())
	}
	if r.M != nil || s.fixed != nil {
		log["skipped"] = float64(r.State.Skipped)
	}
	return log
}

func float32s(x []float64) []float32 {
	out := make([]float32, len(x))
	for i, v := range x {
		out[i] = float32(v)
	}
	return out
}

// priorComes reports whether the next step is an update of the prior.
func (s *Session) priorComes() bool { return s.prior != nil && s.OfPrior < uint64(s.Prior.Updates) }

func (s *Session) stepPrior() (run.Tick, error) {
	gap := s.prior.Step(s.OfPrior)
	s.OfPrior++
	if err := s.OfPriorSkipped.Count(em.Update{Loss: gap, OK: !math.IsNaN(gap)}, "prior"); err != nil {
		return run.Tick{}, fmt.Errorf("%w: step %d: %w", run.ErrGaveUp, s.at(), err)
	}
	tick := run.Tick{Step: s.at(), Total: s.total(), Phase: "prior", Text: fmt.Sprintf("prior, energy gap %.3f", gap)}
	if s.OfPrior%10 == 0 {
		tick.Log = map[string]float64{"ebm/gap": gap}
	}
	return tick, nil
}

// Short explains a training that has ended with fewer updates than it was to make.
func (s *Session) Short() string {
	steps := "M-steps"
	if s.fixed != nil || s.gfn == nil {
		steps = "updates"
	}
	text := fmt.Sprintf("ended the training after %d of %d %s", s.made(), s.Config.Updates, steps)
	switch {
	case !s.Done() || s.made() >= uint64(s.Config.Updates):
		return ""
	case s.impatient():
		return fmt.Sprintf("eval.patience = %d %s", s.Eval.Patience, text)
	case s.fixed != nil:
		return fmt.Sprintf("max_iterations = %d %s", s.MaxIterations, text)
	}
	return fmt.Sprintf("max_iterations = %d %s: raise it, or the threshold of the gate", s.MaxIterations, text)
}

// HeldOut are the splits that the grammar is evaluated on.
func (s *Session) HeldOut() []*treebank.Split {
	if s.measured != nil {
		return s.measured
	}
	return heldOut(s.data)
}

// Shown is the first of these, with the sentences of the lengths that were trained on.
func (s *Session) Shown() *treebank.Split { return heldOut(s.data)[0] }

// Seed implements run.Session.
func (s *Session) Seed() uint64 { return s.Config.Seed }

// Data implements run.Session.
func (s *Session) Data() map[string]string {
	out := map[string]string{"treebank": s.data.Hash()}
	if s.fixed != nil {
		out["grammar"] = hashOf(s.fixed)
	}
	return out
}

// Parameters implements run.Session.
func (s *Session) Parameters() (out map[string]run.Array, err error) {
	err = s.AtBest(func() error {
		out, err = run.Parameters(s.set.Store)
		return err
	})
	return out, err
}

// Programs are those that train, so that their times can be told.
func (s *Session) Programs() *program.Set { return s.set }

// Learned returns the grammar as it is.
func (s *Session) Learned() (*grammar.Grammar, error) {
	state, err := s.State()
	if err != nil {
		return nil, err
	}
	return s.table(s.set.Backend, state)
}

// Counts returns the numbers of updates, of the grammar, or of the GFlowNet alone if the grammar is fixed, and of
// iterations.
func (s *Session) Counts() (updates, iterations uint64) { return s.made(), s.loop.State().Iteration }

// Close implements run.Session.
func (s *Session) Close() { s.set.Close() }
