package induce

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/nn"
	"github.com/gfnem/gfnem/rng"
	"github.com/gfnem/gfnem/run"
	"github.com/gfnem/gfnem/treebank"
)

// Task learns a grammar.
type Task struct{}

// Name implements run.Task.
func (Task) Name() string { return "grammar" }

// Presets implements run.Task.
func (Task) Presets() []string { return []string{"quick", "paper", "small"} }

// Config implements run.Task.
func (Task) Config(preset string) any {
	if p, ok := presets[preset]; ok {
		c := p()
		return &c
	}
	return nil
}

var _ run.Task = Task{}

// Start implements run.Task.
func (Task) Start(b compute.Backend, config any) (run.Session, error) {
	c := *config.(*Config)
	data, err := openData(c)
	if err != nil {
		return nil, err
	}
	return newSession(b, c, data)
}

// session is a grammar in training.
type session struct {
	Config
	backend compute.Backend
	data    *treebank.Dataset
	model   grammar.Neural
	store   *model.Store
	*programs
	parser  *Parser
	sampler *sampler
	prior   *ebmTrainer      // nil without a prior
	gfn     *gflownet        // nil with other methods
	fixed   *grammar.Grammar // nil if the grammar is learned
	counters
}

// counters are the part of a state that is not arrays.
type counters struct {
	Made    uint64 `json:"updates"` // of the grammar, or of the GFlowNet alone if the grammar is fixed; skipped ones included
	OfPrior uint64 `json:"prior_updates"`
	Skipped uint64 `json:"skipped"` // updates that were not made, since something was not finite
	InARow  inARow `json:"in_a_row"`
	// Of method gfn: iterations, and what the gate remembers.
	Iterations uint64       `json:"iterations,omitempty"`
	Gate       em.GateState `json:"gate"`
	// Words is the vocabulary, so that a run can parse without its data.
	Words   []string  `json:"words"`
	Symbols *symbols  `json:"symbols,omitempty"` // of a fixed grammar
	Prior   *ebmState `json:"prior,omitempty"`
}

// inARow counts, for each kind of update, those skipped since the last good one of that kind: an E-step that is well does not hide that
// M-steps fail.
type inARow struct {
	Prior int `json:"prior"`
	E     int `json:"e"` // of the GFlowNet
	M     int `json:"m"` // of the grammar
}

var _ run.Session = (*session)(nil)

func newSession(b compute.Backend, c Config, data *treebank.Dataset) (*session, error) {
	fixed, data, err := c.fix(b, data)
	if err != nil {
		return nil, err
	}
	train, err := data.Split(treebank.Train)
	if err != nil {
		return nil, err
	}
	if len(train.Sentences) < c.Batch {
		return nil, badinput.Errorf("%s has %d training sentences of 2 to %d words, fewer than a batch of %d",
			c.Data, len(train.Sentences), c.MaxLength, c.Batch)
	}
	if len(heldOut(data)) == 0 { // rather now than when all updates are made
		return nil, badinput.Errorf(
			"%s has no validation or test sentences of 2 to %d words to evaluate on: make it again with some",
			c.Data, c.MaxLength)
	}
	s := &session{Config: c, backend: b, data: data, store: nn.NewStore(c.Seed), fixed: fixed}
	s.Words = data.Vocabulary.Words()
	s.model = c.model(len(s.Words))
	tables := func(g *graph.Graph) grammar.Tables { return s.model.Tables(s.store.Scope(theta), g) }
	if fixed != nil {
		s.Symbols = &symbols{fixed.Kind, fixed.Nonterminals, fixed.Preterminals}
		tables = setFixed(s.store, fixed)
	}
	s.sampler = &sampler{Config: &s.Config, sentences: train.Sentences}
	if c.EBM {
		if s.prior, err = newEBMTrainer(&s.Config, train); err != nil {
			return nil, err
		}
	}
	if s.programs, err = newPrograms(b, s.store, s.model, &s.Config); err != nil {
		return nil, err
	}
	if c.Method == GFN {
		if s.gfn, err = newGFlowNet(b, s.store, s.model, &s.Config); err != nil {
			return nil, err
		}
		s.gfn.tables = tables
	}
	if s.parser, err = newParser(b, s.store, tables); err != nil {
		return nil, err
	}
	s.parser.Bucket = c.Bucket
	return s, nil
}

// total is the number of steps: updates of the prior first, then of the grammar, or iterations of the GFlowNet, at least.
func (s *session) total() uint64 {
	n := uint64(s.Config.Updates)
	if s.gfn != nil {
		n += s.Iterations - s.Made
		if most := uint64(s.MaxIterations); most > 0 {
			n = min(n, most)
		}
	}
	if s.prior != nil {
		n += uint64(s.EBMUpdates)
	}
	return n
}

// expected is the number of steps as far as it can be told, once there is a prior if there is to be one. How many iterations an M-step takes is known from those so far; at first, as if
// a twentieth of all had been made before, by one iteration each.
func (s *session) expected() uint64 {
	if s.gfn == nil {
		return s.total()
	}
	known, left := 1+s.Config.Updates/20, uint64(s.Config.Updates)-s.Made
	each := (float64(s.Iterations) + float64(known)) / (float64(s.Made) + float64(known))
	n := s.Iterations + uint64(math.Ceil(each*float64(left)))
	if most := uint64(s.MaxIterations); most > 0 {
		n = min(n, most)
	}
	return s.OfPrior + n
}

// Done implements run.Job.
func (s *session) Done() bool { return s.at() >= s.total() }

func (s *session) at() uint64 {
	if s.gfn != nil {
		return s.OfPrior + s.Iterations
	}
	return s.OfPrior + s.Made
}

// Step implements run.Job: one update.
func (s *session) Step() (run.Tick, error) {
	if s.prior != nil && s.OfPrior < uint64(s.EBMUpdates) {
		return s.stepPrior()
	}
	if s.gfn != nil {
		return s.iterate()
	}
	step := s.Made
	b := s.sampler.at(step)
	out, log, err := s.update(step, b)
	if err != nil {
		return run.Tick{}, err
	}
	s.Made++
	perWord := out.Loss * float64(b.size) / float64(b.tokens)
	tick := run.Tick{Step: s.at(), Total: s.total(), Text: fmt.Sprintf("%.3f nats a word", perWord)}
	if err := s.count(out, &s.InARow.M, "grammar"); err != nil {
		return run.Tick{}, err
	}
	if step%10 == 0 {
		log["loss"], log["loss_per_word"], log["grad_norm"], log["skipped"] = out.Loss, perWord, out.GradNorm, float64(s.Skipped)
		tick.Log = log
	}
	return tick, s.maybeWatch(&tick, log)
}

// maybeWatch evaluates the grammar if it is time, after an update.
func (s *session) maybeWatch(tick *run.Tick, log map[string]float64) error {
	if e := uint64(s.EvalEvery); e == 0 || s.Made%e != 0 && !s.Done() {
		return nil
	}
	tick.Log = log
	return s.watch(log)
}

// count takes note of an update of the kind that inARow counts.
func (s *session) count(u em.Update, inARow *int, kind string) error {
	if err := u.Count(&s.Skipped, inARow, kind); err != nil {
		return fmt.Errorf("%w: step %d: %w", run.ErrGaveUp, s.at(), err)
	}
	return nil
}

func (s *session) stepPrior() (run.Tick, error) {
	gap := s.prior.step(s.OfPrior)
	s.OfPrior++
	if err := s.count(em.Update{Loss: gap, OK: finite(gap)}, &s.InARow.Prior, "prior"); err != nil {
		return run.Tick{}, err
	}
	tick := run.Tick{Step: s.at(), Total: s.total(), Phase: "prior", Text: fmt.Sprintf("prior, energy gap %.3f", gap)}
	if s.OfPrior%10 == 0 {
		tick.Log = map[string]float64{"ebm/gap": gap}
	}
	return tick, nil
}

// update makes one update of the grammar, and says what is worth a note.
func (s *session) update(step uint64, b batch) (em.Update, map[string]float64, error) {
	log := map[string]float64{}
	switch s.Method {
	case Marginal:
		out, err := s.programs.update(s.marginal, step, b)
		return out, log, err
	case Exact:
		out, err := s.programs.update(s.exact, step, b, rng.Key(s.Config.Seed, "grammar/sample", step))
		return out, log, err
	}
	results, err := s.chains(step, b, s.Chain, s.temperature(step))
	if err != nil {
		return em.Update{}, nil, err
	}
	trees := make([]*grammar.Tree, len(results))
	var all grammar.ChainResult
	for i, r := range results {
		trees[i] = r.Tree
		all.Rotations, all.Rotated = all.Rotations+r.Rotations, all.Rotated+r.Rotated
		all.Labels, all.Relabelled = all.Labels+r.Labels, all.Relabelled+r.Relabelled
	}
	log["chain/rotated"] = float64(all.Rotated) / float64(max(all.Rotations, 1))
	log["chain/relabelled"] = float64(all.Relabelled) / float64(max(all.Labels, 1))
	left, right, label, err := grammar.PackTrees(trees, b.n)
	if err != nil {
		return em.Update{}, nil, err
	}
	out, err := s.programs.update(s.trees, step, b, left, right, label)
	return out, log, err
}

// chains runs a Markov chain for every sentence of a batch under the grammar as it is. A temperature of 0 means no prior.
func (s *session) chains(step uint64, b batch, steps int, temperature float64) ([]grammar.ChainResult, error) {
	out, err := s.values.Call(b.words, b.lengths)
	if err != nil {
		return nil, err
	}
	scores, err := grammar.NewScores(out[0], out[1], out[2], b.lengthOf)
	if err != nil {
		return nil, err
	}
	c := grammar.Chains{Scores: scores, Steps: steps}
	if s.prior != nil && temperature > 0 {
		c.Prior = s.prior.logPrior(scores.Sentences(), temperature)
	}
	return c.Run(s.Config.Seed, "grammar/chain", step, nil), nil
}

// temperature of the prior at an update; 0 without a prior.
func (s *session) temperature(step uint64) float64 {
	if s.prior == nil {
		return 0
	}
	return s.ebmTemperature(step)
}

// State implements run.Job.
func (s *session) State() (run.State, error) {
	arrays, err := run.StoreArrays(s.store)
	if err != nil {
		return run.State{}, err
	}
	if s.prior != nil {
		s.Prior = &s.prior.ebmState
	}
	extra, err := json.Marshal(s.counters)
	return run.State{Arrays: arrays, Extra: extra}, err
}

// Restore implements run.Job.
func (s *session) Restore(state run.State) error {
	var saved counters // decoded apart from s.counters, whose words are those of the data
	if err := json.Unmarshal(state.Extra, &saved); err != nil {
		return fmt.Errorf("counters: %w", err)
	}
	if !slices.Equal(saved.Words, s.Words) {
		return badinput.Errorf("%s does not have the words that the run was started with: give it back as it was",
			s.Config.Data)
	}
	s.counters = saved
	if s.prior != nil && s.Prior != nil {
		if err := s.Prior.check(); err != nil {
			return err
		}
		s.prior.ebmState = *s.Prior
	}
	return run.SetStore(s.store, state.Arrays)
}

// Seed implements run.Session.
func (s *session) Seed() uint64 { return s.Config.Seed }

// Data implements run.Session.
func (s *session) Data() map[string]string {
	out := map[string]string{"treebank": s.data.Hash()}
	if s.fixed != nil {
		out["grammar"] = hashOf(s.fixed)
	}
	return out
}

// Parameters implements run.Session.
func (s *session) Parameters() (map[string]run.Array, error) { return run.Parameters(s.store) }

// Close implements run.Session.
func (s *session) Close() {
	s.close()
	if s.gfn != nil {
		s.gfn.close()
	}
	s.parser.Close()
}
