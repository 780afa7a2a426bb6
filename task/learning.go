package task

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/report"
)

// Learning is what a session learns, and for how long. Only Spec and one of Iterations and MSteps must be set.
type Learning struct {
	// Spec is what em.New takes. Its Seed, if 0, is that of the configuration.
	Spec em.Spec
	// Store has variables that are to start elsewhere; nil means a new one.
	Store *model.Store
	// The training ends after so many iterations or so many M-steps, whichever comes first; 0 means any number of them.
	Iterations, MSteps uint64
	// Data are the hashes of the data, by name, by which a resumed run knows that they are the same. Nil means that of the
	// first batch.
	Data map[string]string

	// HeldOut are observations, as Spec.Data supplies them, whose log p(x) is estimated at the end and wherever a run is
	// measured, with so many Samples each; 0 means 100.
	HeldOut []*tensors.Tensor
	Samples int
	// Buckets are those of the posterior; nil means none.
	Buckets *em.Buckets

	// Metrics measures the model in other ways. It is called at the end and wherever a run is measured, and while it is trained
	// after every Watch iterations; 0 means never.
	Metrics func(m *Learned) (map[string]float64, error)
	Watch   uint64
	// Best is the name of one of these metrics. The state in which it was greatest, of all that were measured while training,
	// is the one that is evaluated, reported and opened by Task.Open. The last one is kept beside it, to go on from; with ""
	// it is the one that counts. Patience ends the training after so many measurements without a better one; 0 means never.
	// Measure it on data that nothing is learned from.
	Best     string
	Patience uint64
	// Calibrate says how the report measures the calibration of q(z|x), unless Uncalibrated leaves that out.
	Calibrate    em.Calibrate
	Uncalibrated bool
	// Pictures are shown in the report.
	Pictures func(m *Learned) ([]report.Named, error)

	// Every is the number of iterations between lines of metrics; 0 means 10. Rarer M-steps are all noted.
	Every uint64
	// Note, if not nil, says instead of all that what is noted of an iteration; nil is nothing.
	Note func(m *Learned, r em.Report) map[string]float64
}

// Learned is a model as it is, and its posterior.
type Learned struct {
	Backend compute.Backend
	Spec    em.Spec
	learner *em.Learner
	buckets *em.Buckets
}

// Store has all variables: the model's below em.Theta, the GFlowNet's below em.Phi.
func (m *Learned) Store() *model.Store { return m.learner.Store() }

// Theta is the scope of the model's variables, as the functions of lvm.Model take it.
func (m *Learned) Theta() *model.Scope { return m.Store().Scope(em.Theta) }

// Learner is what learns. Who steps it moves the session.
func (m *Learned) Learner() *em.Learner { return m.learner }

// Counters says what has been done.
func (m *Learned) Counters() em.State { return m.learner.State() }

// Posterior returns q(z|x). Close it at the end.
func (m *Learned) Posterior() (*em.Posterior, error) {
	p, err := m.learner.Posterior()
	if err == nil {
		p.Buckets = m.buckets
	}
	return p, err
}

// check returns what is wrong with a Learning, besides its Spec.
func (l Learning) check() error {
	switch {
	case l.Iterations == 0 && l.MSteps == 0:
		return errors.New("Learning.Iterations and Learning.MSteps are both 0: say when the training ends")
	case l.Iterations == 0 && l.Spec.Gate == em.Never:
		return errors.New("Learning.MSteps never come with the gate em.Never: set Learning.Iterations")
	case l.Samples < 0:
		return fmt.Errorf("Learning.Samples is %d, which is below 0", l.Samples)
	case l.Best != "" && l.Watch == 0:
		return errors.New("Learning.Best is set, and Learning.Watch is not: nothing is measured while training")
	case l.Patience > 0 && l.Best == "":
		return errors.New("Learning.Patience is set, and Learning.Best is not")
	case l.Watch > 0 && l.Metrics == nil:
		return errors.New("Learning.Watch is set, and Learning.Metrics is not")
	}
	if err := l.Calibrate.Check(); err != nil && !l.Uncalibrated {
		return fmt.Errorf("Learning.Calibrate: %w", err)
	}
	return nil
}

// checkHeldOut returns what would be wrong with the observations that are held out, and with the buckets, when training
// ends.
func (l Learning) checkHeldOut() error {
	like := l.Spec.Data(0)
	if n := len(l.HeldOut); n > 0 && n != len(like) {
		return fmt.Errorf("Learning.HeldOut has %d tensors, and Spec.Data supplies %d", n, len(like))
	}
	for i, t := range l.HeldOut {
		if t == nil || t.DType() != like[i].DType() || t.Rank() != like[i].Rank() {
			return fmt.Errorf("tensor %d of Learning.HeldOut is %s, and that of Spec.Data %s", i, shapeOf(t), like[i].Shape())
		}
	}
	switch {
	case l.Buckets == nil:
		return nil
	case l.Spec.Prepare != nil: // they cut what it makes
		return l.Buckets.Check()
	}
	return l.Buckets.Check(l.HeldOut...)
}

func shapeOf(t *tensors.Tensor) string {
	if t == nil {
		return "nil"
	}
	return t.Shape().String()
}

// Hash returns the SHA-256 of tensors, shapes and dtypes included, for Learning.Data.
func Hash(x ...*tensors.Tensor) (string, error) {
	h := sha256.New()
	for _, t := range x {
		fmt.Fprintln(h, t.Shape())
		if err := t.ConstBytes(func(data []byte) { h.Write(bytes.Clone(data)) }); err != nil {
			return "", fmt.Errorf("hash of data: %w", err)
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
