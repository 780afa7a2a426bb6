package em

import (
	"fmt"
	"iter"
	"math"

	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/stat"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/rng"
)

// Drawer draws latents of a few observations, or paths to given ones, with their log-weights. A Posterior has one; a task
// with a faster way brings its own.
type Drawer interface {
	// Draw draws n more for each observation and returns the logarithms of their weights, [observation][n]. Calls are
	// numbered, and each number names random numbers of its own.
	Draw(call uint64, n int) ([][]float64, error)
}

// DrawerFunc is a function as a Drawer.
type DrawerFunc func(call uint64, n int) ([][]float64, error)

// Draw implements Drawer.
func (f DrawerFunc) Draw(call uint64, n int) ([][]float64, error) { return f(call, n) }

// Draws is how much is drawn for each observation.
type Draws struct {
	Count  int
	AtOnce int // so many in a call; 0 means all
}

// Calls yields the numbers of calls, and how much each of them draws.
func (d Draws) Calls() iter.Seq2[uint64, int] {
	return func(yield func(uint64, int) bool) {
		step := d.AtOnce
		if step < 1 {
			step = d.Count
		}
		for done := 0; done < d.Count; done += step {
			if !yield(uint64(done/step), min(step, d.Count-done)) {
				return
			}
		}
	}
}

// Weights returns all log-weights, by observation.
func (d Draws) Weights(observations int, from Drawer) ([][]float64, error) {
	all := make([][]float64, observations)
	for i := range all {
		all[i] = make([]float64, 0, d.Count)
	}
	if err := d.run(observations, from, func(i int, w []float64) { all[i] = append(all[i], w...) }); err != nil {
		return nil, err
	}
	return all, nil
}

// Estimates returns what the weights say, by observation, without keeping them.
func (d Draws) Estimates(observations int, from Drawer) ([]gfn.Estimate, error) {
	sums := make([]gfn.Weights, observations)
	if err := d.run(observations, from, func(i int, w []float64) { sums[i].Add(w...) }); err != nil {
		return nil, err
	}
	out := make([]gfn.Estimate, observations)
	for i := range sums {
		out[i] = sums[i].Estimate()
	}
	return out, nil
}

func (d Draws) run(observations int, from Drawer, use func(i int, logW []float64)) error {
	for call, n := range d.Calls() {
		w, err := from.Draw(call, n)
		if err != nil {
			return err
		}
		for i := range observations {
			use(i, w[i])
		}
	}
	return nil
}

// posteriorDraws draws latents of a batch; use, if not nil, sees them with log p(x,z).
type posteriorDraws struct {
	*Posterior
	batch batch
	use   func(z []*tensors.Tensor, logJoint [][]float64) error
}

// Draw implements Drawer.
func (d posteriorDraws) Draw(call uint64, n int) ([][]float64, error) {
	key := rng.Key(d.Seed, "posterior", d.batch.number, call)
	out, err := d.drawn(drawIn[host]{false, d.batch.draws, key, d.batch.x}, d.batch)
	if err != nil {
		return nil, err
	}
	defer finalize(append(out.Z, out.LogJoint, out.Forward, out.Ratio)...)
	logJoint := d.batch.split(numbers(out.LogJoint), n)
	logW := d.batch.split(numbers(out.Ratio), n)
	for i := range logW {
		for k := range logW[i] {
			logW[i][k] += logJoint[i][k]
		}
	}
	if d.use != nil {
		err = d.use(out.Z, logJoint)
	}
	return logW, err
}

// split returns the first n numbers of each observation of a batch.
func (b batch) split(flat []float64, n int) [][]float64 {
	out := make([][]float64, len(b.rows))
	for i := range out {
		out[i] = flat[i*b.draws : i*b.draws+n]
	}
	return out
}

// finalize frees tensors now.
func finalize(all ...*tensors.Tensor) {
	for _, t := range all {
		t.MustFinalizeAll()
	}
}

// LogLikelihood estimates log p(x) of each observation from n latents by importance sampling: the logarithm of an average
// that is p(x) in expectation, and so below log p(x) in expectation. The weights are those of Sample, and are not kept.
func (p *Posterior) LogLikelihood(n int, x ...*tensors.Tensor) ([]gfn.Estimate, error) {
	all, err := p.batches(n, x)
	out := make([]gfn.Estimate, all.observations)
	if err == nil {
		err = all.each(func(b batch) error {
			e, err := Draws{n, b.draws}.Estimates(len(b.rows), posteriorDraws{p, b, nil})
			for i := range e {
				out[b.rows[i]] = e[i]
			}
			return err
		})
	}
	if err != nil {
		return nil, fmt.Errorf("likelihood by the posterior: %w", err)
	}
	return out, nil
}

// Summary is the mean of estimates of log p(x) over observations, with what tells whether to trust it.
type Summary struct {
	LogP float64
	// StdErr is the standard error of LogP as an estimate for all observations of the kind; 0 of a single one.
	StdErr float64
	// SampleErr is the part of it that comes from sampling latents.
	SampleErr float64
	ESS, ELBO float64 // means
}

// Summarise averages estimates, one of each observation.
func Summarise(of []gfn.Estimate) (s Summary) {
	count := float64(len(of))
	logP := make([]float64, len(of))
	for i, e := range of {
		logP[i] = e.LogZ
		s.ELBO += e.ELBO / count
		s.ESS += e.ESS / count
		s.SampleErr += e.StdErr * e.StdErr
	}
	s.LogP, s.StdErr = stat.MeanStdDev(logP, nil)
	if s.StdErr /= math.Sqrt(count); len(of) < 2 {
		s.StdErr = 0
	}
	s.SampleErr = math.Sqrt(s.SampleErr) / count
	return s
}
