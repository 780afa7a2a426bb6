package em

import (
	"crypto/sha256"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/support/xslices"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/internal/blame"
	"github.com/gfnem/gfnem/internal/envlaws"
	"github.com/gfnem/gfnem/internal/modellaws"
	"github.com/gfnem/gfnem/internal/program"
	"github.com/gfnem/gfnem/internal/rows"
	"github.com/gfnem/gfnem/lvm"
	"github.com/gfnem/gfnem/optim"
	"github.com/gfnem/gfnem/rng"
)

// Checked is what Check has found.
type Checked struct {
	Broken []string // the laws that are broken, each with an example
	Seen   []string // what was checked, and what could not be
	// Remarks are what is no mistake of itself: variables that no update moves, say.
	Remarks []string
}

// OK says that no law is broken.
func (c *Checked) OK() bool { return len(c.Broken) == 0 }

// Print writes what was found, what is broken first.
func (c *Checked) Print(w io.Writer) error {
	var text strings.Builder
	if c.OK() {
		fmt.Fprintln(&text, "no law is found broken")
	}
	for _, part := range []struct {
		mark  string
		lines []string
	}{{"BROKEN  ", c.Broken}, {"remark  ", c.Remarks}, {"seen    ", c.Seen}} {
		for _, line := range part.lines {
			fmt.Fprintln(&text, part.mark+line)
		}
	}
	_, err := io.WriteString(w, text.String())
	return err
}

const (
	// envTime and modelTime are about how long the laws of an environment and of a model may take.
	envTime, modelTime = 3 * time.Second, 5 * time.Second
	// singly is the number of rows that are looked at alone, weighed that of latents drawn for each observation.
	singly, weighed = 4, 32
)

// checking is a check under way, on a copy of all variables.
type checking struct {
	*Checked
	spec Spec
	set  *program.Set
	x    []*tensors.Tensor // as Data supplies it
}

// Check tests what the learner was made of on a batch of its data, as Data supplies it: the laws of its environment on
// the initial states of these observations (see gfn.Env), those of its model at the present values of its variables
// (see lvm.Model), whether its policy says the same of a state whatever else it is asked, and whether one update of
// each kind is finite. It takes some seconds, and changes nothing. A learner that keeps all laws is found to break one
// with a probability of 1e-5 at most, over seeds.
//
// It is a first look, and a batch of a few dozen observations will do. The suites envtest and lvmtest look at more
// states and more pairs.
func (l *Learner) Check(x ...*tensors.Tensor) (*Checked, error) {
	store, err := l.programs.Store.Clone()
	if err != nil {
		return nil, fmt.Errorf("check of a learner: copy variables: %w", err)
	}
	c := checking{&Checked{}, l.spec, program.NewSet(l.programs.Backend, store), x}
	defer c.set.Close()
	p, err := NewPosterior(c.set.Backend, store, c.spec)
	if err != nil {
		return nil, fmt.Errorf("check of a learner: %w", err)
	}
	defer p.Close()
	observed := x
	if c.spec.Prepare != nil {
		if observed, err = p.prepare.Call(x); err != nil {
			return nil, fmt.Errorf("check of a learner: %w", err)
		}
	}
	if _, err := sharedRows("x", observed); err != nil {
		return nil, blame.Caller(fmt.Errorf("check of a learner: %w", err))
	}
	if c.environment(observed); c.OK() {
		c.model(observed)
	}
	if c.OK() {
		c.policy(p.g, observed)
	}
	if c.OK() {
		c.weights(p)
	}
	if c.OK() {
		c.updates()
	}
	return c.Checked, nil
}

func (c *checking) broke(format string, args ...any) {
	c.Broken = append(c.Broken, fmt.Sprintf(format, args...))
}

func (c *checking) saw(format string, args ...any) {
	c.Seen = append(c.Seen, fmt.Sprintf(format, args...))
}

func (c *checking) remark(format string, args ...any) {
	c.Remarks = append(c.Remarks, fmt.Sprintf(format, args...))
}

// environment checks the laws of Env on the initial states of observations.
func (c *checking) environment(x []*tensors.Tensor) {
	e := envlaws.Checker{Backend: c.set.Backend, Env: c.spec.Env, Seed: c.spec.Seed, Until: time.Now().Add(envTime)}
	e.Check(x)
	for _, line := range e.Lines() {
		c.broke("environment: %s", line)
	}
	c.saw("environment: %d states, of %d of %d different initial states; random walks from %d of these",
		e.States, e.Started, e.Starts, e.Walked)
}

// model checks the laws of Model, and that it dreams what looks like the data.
func (c *checking) model(x []*tensors.Tensor) {
	store, err := c.set.Store.Clone() // the laws of closed forms set variables
	if err != nil {
		c.broke("model: copy variables: %v", err)
		return
	}
	set := program.NewSet(c.set.Backend, store)
	defer set.Close()
	m := modellaws.Checker{
		Set: set, Model: c.spec.Model, Env: c.spec.Env, Theta: Theta, Seed: c.spec.Seed,
		Size: min(max(x[0].Shape().Dim(0), 64), 1024), Time: modelTime,
	}
	if m.Check() {
		m.Maximum()
	}
	for _, line := range m.Lines() {
		c.broke("model: %s", line)
	}
	for _, s := range m.Seen {
		c.saw("model: %s", s)
	}
	if !c.OK() {
		return
	}
	dreams, err := lvm.Draw(c.set.Backend, c.set.Store.Scope(Theta), c.spec.Model, rng.Key(c.spec.Seed, "check of dreams"), singly)
	if err != nil {
		c.broke("model: %v", err)
		return
	}
	c.similar(x, dreams.X)
}

// similar compares observations with those that the model dreams: sleep and calibration learn of one by the other.
func (c *checking) similar(x, dreams []*tensors.Tensor) {
	differs := c.remark
	if c.spec.Sleep.Weight != 0 {
		differs = c.broke
	}
	sample := blame.Method(c.spec.Model, "Sample")
	if len(x) != len(dreams) {
		differs("model: %v", sample.Errorf("has observations of %d tensors, and those of the data have %d", len(dreams), len(x)))
		return
	}
	for i, t := range x {
		if d := dreams[i]; d.DType() != t.DType() || d.Rank() != t.Rank() {
			differs("model: %v", sample.Errorf("has %s as tensor %d of observations, and the data %s", d.Shape(), i, t.Shape()))
		}
	}
}

// answered are what a policy says of trajectories: while they were drawn, of all their states at once, and of some rows
// alone.
type answered[T any] struct{ Drawn, Together, Alone T }

// policy checks that what it says of a state depends on this state and its observation alone.
func (c *checking) policy(g *graphs, x []*tensors.Tensor) {
	n := min(singly, x[0].Shape().Dim(0))
	first := make([]int, n)
	for i := range first {
		first[i] = i
	}
	type in[T any] struct {
		Key T
		X   []T
	}
	out, err := program.Once[in[host], answered[host]](c.set.Backend, c.set.Store, "policy", func(in in[*Node]) answered[*Node] {
		net, x := g.net(), gfn.Batch(in.X)
		tr := net.Rollout(rng.In(in.Key), g.encode(x), gfn.Initial(g.Env, x), gfn.Behaviour{})
		var alone []*Node
		for i := range n {
			one := func(t *Node) *Node { return SliceAxis(t, 0, AxisElem(i)) }
			row := gfn.Trajectory{
				X:      g.encode(xslices.Map(x, one)),
				States: xslices.Map(tr.States, func(s gfn.State) gfn.State { return xslices.Map(s, one) }),
				Action: xslices.Map(tr.Action, one), Back: xslices.Map(tr.Back, one), Valid: xslices.Map(tr.Valid, one),
			}
			alone = append(alone, answers(net.Score(row, gfn.Behaviour{})))
		}
		return answered[*Node]{
			answers(net.ScoreSampled(tr, gfn.Behaviour{})), answers(net.Score(tr, gfn.Behaviour{})), Concatenate(alone, 0),
		}
	}, in[host]{rng.Key(c.spec.Seed, "check of the policy"), rows.Take(x, first)})
	if err != nil {
		c.broke("policy: %v", err)
		return
	}
	heads := blame.Method(c.spec.Policy, "Heads")
	drawn, together, alone := numbers(out.Drawn), numbers(out.Together), numbers(out.Alone)
	for i := range drawn {
		switch {
		case math.IsNaN(drawn[i]):
			c.broke("policy: %v", heads.Errorf("is NaN for a state of observation %d", i*n/len(drawn)))
			return
		case !alike(drawn[i], together[i]):
			c.broke("policy: %v", heads.Errorf("is %.6g for a state of observation %d, and %.6g when it is asked about all states of "+
				"a trajectory at once (row b*k+i of s belongs to observation b: see Batch.Repeat)", drawn[i], i*n/len(drawn), together[i]))
			return
		case !alike(drawn[i], alone[i]):
			c.broke("policy: %v", heads.Errorf("is %.6g for a state of observation %d among %d others, and %.6g alone",
				drawn[i], i*n/len(drawn), n-1, alone[i]))
			return
		}
	}
	c.saw("policy: %d numbers, of all states of trajectories of %d observations: one by one, at once, and alone", len(drawn), n)
}

// answers are what a policy says of trajectories, one row for each.
func answers(s gfn.Scores) *Node {
	all := []*Node{double(s.LogPF), double(s.LogPB)}
	if s.Flow != nil {
		all = append(all, double(s.Flow))
	}
	return Concatenate(all, 1)
}

// alike says whether two numbers are equal up to the rounding of float32.
func alike(a, b float64) bool { return math.Abs(a-b) <= 1e-3*(1+math.Abs(a)) }

// weights looks at latents that q draws for the batch, and how far it is from the posterior.
func (c *checking) weights(p *Posterior) {
	e, err := p.LogLikelihood(weighed, c.x...)
	if err != nil {
		c.broke("policy: %v", err)
		return
	}
	impossible := 0
	for _, one := range e {
		if math.IsInf(one.LogZ, -1) {
			impossible++
		}
	}
	if impossible > 0 {
		c.remark("the model thinks all %d latents impossible that q has drawn for %d of %d observations", weighed, impossible, len(e))
		return
	}
	s := Summarise(e)
	c.remark("q is worth %.1f of %d exact samples: log p(x) is %.4g, its lower bound by q %.4g", s.ESS, weighed, s.LogP, s.ELBO)
}

// marks is a rule that moves a variable wherever it has a gradient.
type marks struct{}

func (marks) Keeps() []string { return nil }

func (marks) Step(at optim.Point) (delta *Node, kept map[string]*Node) {
	moves := GreaterThan(Abs(at.Grad), ZerosLike(at.Grad))
	return ConvertDType(moves, at.Grad.DType()), nil
}

// updates makes one of each kind.
func (c *checking) updates() {
	spec := c.spec
	spec.Wake.Replay, spec.Wake.Memory, spec.MStep.Persist = Replay{}, Memory{}, Persistent{} // the batch may be none of Data
	spec.Sleep.Probability, spec.MStep.Data = 1, nil
	mark := func(scope string) optim.Optimizer {
		return optim.Optimizer{Groups: []optim.Group{{Scope: scope, Rule: marks{}, Rate: optim.Rate{Base: 1}}}}
	}
	spec.Wake.Optimizer, spec.MStep.Optimizer = mark(Phi), mark(Theta)
	spec.Data = Full(c.x...)
	l, err := New(c.set.Backend, c.set.Store, spec)
	if err != nil {
		c.broke("updates: %v", err)
		return
	}
	defer l.Close()
	before := c.trainable(Phi)
	e, err := l.E.Infer(Moment{}, c.x)
	c.update("E-step", e.Wake, err)
	if e.Sleep != nil {
		c.update("sleep", *e.Sleep, nil)
	}
	if err == nil {
		c.unmoved("E-step", before, c.trainable(Phi))
	}
	if spec.Gate == Never || !c.OK() {
		return
	}
	before = c.trainable(Theta)
	m, err := l.M.Maximize(Moment{}, c.x, e.Z)
	if c.update("M-step", m.Update, err); err == nil {
		c.unmoved("M-step", before, c.trainable(Theta))
	}
}

// update reports one, unless there was none.
func (c *checking) update(name string, u Update, err error) {
	switch s := u.Scores; {
	case err != nil:
		c.broke("%s: %v", name, err)
	case u == Update{}:
	case !u.OK:
		c.broke("%s: its update is not finite: loss %g, norm of the gradient %g; log p(x,z) is -Inf for %d of %d latents, and no "+
			"number for %d", name, u.Loss, u.GradNorm, s.Impossible, s.Rows, s.Undefined)
	default:
		c.saw("%s: loss %.4g, norm of the gradient %.3g", name, u.Loss, u.GradNorm)
	}
}

// trainable are the hashes of the trainable variables of a scope, by path.
func (c *checking) trainable(scope string) map[string][sha256.Size]byte {
	out := map[string][sha256.Size]byte{}
	for v := range c.set.Store.Scope(scope).IterVariables() {
		if !v.Trainable {
			continue
		}
		if err := v.MustValue().ConstBytes(func(b []byte) { out[v.Path()] = sha256.Sum256(b) }); err != nil {
			c.broke("updates: read %s: %v", v.Path(), err)
		}
	}
	return out
}

// unmoved remarks variables that an update has left as they were.
func (c *checking) unmoved(name string, before, after map[string][sha256.Size]byte) {
	var same []string
	for path, value := range after {
		if before[path] == value {
			same = append(same, path)
		}
	}
	if len(same) > 0 {
		slices.Sort(same)
		c.remark("the %s leaves these variables as they are: %s", name, strings.Join(same, ", "))
	}
}
