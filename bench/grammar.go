package bench

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gomlx/compute"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/config"
	"github.com/gfnem/gfnem/grammar/induce"
	"github.com/gfnem/gfnem/internal/memory"
	"github.com/gfnem/gfnem/rng"
	"github.com/gfnem/gfnem/run"
	"github.com/gfnem/gfnem/treebank"
)

// perEpoch is the number of batches of an epoch, of which the first one has no M-step.
const perEpoch = 4

// iterations are those of a training by GFlowNet-EM on sentences that mean nothing, first with a gate that never opens
// and then, from where that ended, with one that is open.
func iterations(b compute.Backend, o Options, each func(Result) error) (err error) {
	c, err := o.training()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "gfnem-bench")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	c.Data = filepath.Join(dir, "sentences")
	if err := meaningless(c, o.Vocabulary); err != nil {
		return err
	}
	var state run.State
	for _, kind := range []struct {
		name      string
		threshold float64
	}{{"E", -math.MaxFloat64}, {"E and M", math.MaxFloat64}} {
		c.Gate.Threshold, c.Gate.ThresholdEnd = kind.threshold, kind.threshold
		r, err := train(b, c, o.For, &state)
		if err != nil {
			return fmt.Errorf("iteration %s: %w", kind.name, err)
		}
		r.Workload = kind.name
		if err := each(r); err != nil {
			return err
		}
	}
	return nil
}

// training is the configuration.
func (o Options) training() (*induce.Config, error) {
	c, ok := induce.Task{}.Config(o.Preset).(*induce.Config)
	if !ok {
		return nil, badinput.Errorf("unknown preset %q; known: %s", o.Preset, strings.Join(induce.Task{}.Presets(), ", "))
	}
	if err := config.Resolve(c, o.Set); err != nil {
		return nil, err
	}
	if c.Fixed != "" {
		return nil, badinput.Errorf(
			"bench grammar measures iterations that learn a grammar, and preset %s is given one: use paper or quick", o.Preset)
	}
	c.Method, c.Pool, c.Eval.Every, c.Eval.Patience = induce.GFN, 1, 0, 0
	return c, c.Validate()
}

// meaningless writes the data of a configuration. Lengths of sentences are uniform up to the greatest. All words occur
// in the validation split, since a training drops those that do not occur.
func meaningless(c *induce.Config, vocabulary int) error {
	if err := memory.Need("a vocabulary", 256, vocabulary); err != nil {
		return err
	}
	names, all := make([]string, vocabulary), make([]treebank.Sentence, vocabulary)
	for i := range names {
		names[i], all[i].Words = fmt.Sprint(i), []int32{int32(i), 0}
	}
	v, err := treebank.NewVocabulary(names)
	if err != nil {
		return err
	}
	r := rng.New(c.Seed, "trial")
	some := make([]treebank.Sentence, perEpoch*c.Batch)
	for i := range some {
		some[i].Words = make([]int32, 2+r.IntN(c.MaxLength-1))
		for j := range some[i].Words {
			some[i].Words[j] = int32(r.IntN(vocabulary))
		}
	}
	d := treebank.Dataset{Vocabulary: v, Splits: []treebank.Split{
		{Name: treebank.Train, Sentences: some}, {Name: treebank.Valid, Sentences: all},
	}}
	return d.Save(c.Data, false)
}

// train measures a training from a state on, which moves; the zero state is the start.
func train(b compute.Backend, c *induce.Config, about time.Duration, state *run.State) (r Result, err error) {
	s, err := induce.Task{}.Start(b, c)
	if err != nil {
		return r, err
	}
	defer s.Close()
	if state.Arrays != nil {
		err = s.Restore(*state)
	} else {
		_, err = s.Step()
	}
	if err != nil {
		return r, err
	}
	set := s.Programs()
	parts := map[string][]time.Duration{}
	iterate := func(apart bool) (time.Duration, error) {
		set.Measure(apart)
		begin := time.Now()
		tick, err := s.Step()
		took := time.Since(begin)
		if host := took; apart {
			for part, d := range set.Times() {
				parts[part] = append(parts[part], d)
				host -= d
			}
			parts["host"] = append(parts["host"], host)
		}
		if err == nil && tick.Step%perEpoch == 0 { // the next one has no M-step
			_, err = s.Step()
		}
		return took, err
	}
	p := pace{warmup: 12, least: 10} // programs come in several sizes
	if r, err = p.measure(about, func() (time.Duration, error) { return iterate(false) }); err != nil {
		return r, err
	}
	for range p.least {
		if _, err := iterate(true); err != nil {
			return r, err
		}
	}
	r.PartsMS = map[string]float64{}
	for part, times := range parts {
		r.PartsMS[part] = summary(times).MedianMS
	}
	*state, err = s.State()
	return r, err
}
