package em

import (
	"math"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/gfn/envs"
	"github.com/gfnem/gfnem/gfn/envtest"
	"github.com/gfnem/gfnem/internal/rows"
	"github.com/gfnem/gfnem/lvm/lvmtest"
	"github.com/gfnem/gfnem/nn"
	"github.com/gfnem/gfnem/optim"
	"github.com/gfnem/gfnem/rng"
)

// words are strings of 1 to most letters, 0 or 1, that are cut into segments: after each letter with one probability, and a
// letter is 1 with a probability that is greater if it is a segment of its own. So neighbouring cuts depend on each other,
// given a string. An observation is the letters [B,most] and their number [B] int32: what is legal depends on it.
type words struct {
	longest int // letters of a segment; 0 means any
	fault   string
}

const most = 4

// wordLogits are those of a cut, and of a 1 among others and alone.
var wordLogits = []float64{-0.4, -1, 1.5}

func (m words) env() envs.Segmentation {
	return envs.Segmentation{Max: most, Longest: m.longest, Length: func(x gfn.Batch) *Node { return x[1] }}
}

func (m words) variables(theta *model.Scope, g *Graph) (cut, one *Node) {
	of := func(name string, v ...float64) *Node {
		if old := theta.GetVariable(name); old != nil {
			return old.NodeValue(g)
		}
		return theta.VariableWithValue(name, v).NodeValue(g)
	}
	return of("cut", wordLogits[:1]...), of("one", wordLogits[1:]...)
}

// logits are those of the letters, given the ends of segments, [B,most].
func (m words) logits(one, ends *Node) *Node {
	b := ends.Shape().Dim(0)
	before := Concatenate([]*Node{Ones(ends.Graph(), shapes.Make(dtypes.Float64, b, 1)),
		SliceAxis(ConvertDType(ends, dtypes.Float64), 1, AxisRange(0, most-1))}, 1)
	alone := Mul(before, ConvertDType(ends, dtypes.Float64))
	pick := func(i int) *Node {
		return BroadcastToShape(ExpandLeftToRank(SliceAxis(one, 0, AxisElem(i)), 2), before.Shape())
	}
	return Add(Mul(alone, pick(1)), Mul(OneMinus(alone), pick(0)))
}

func (m words) LogJoint(theta *model.Scope, x gfn.Batch, z gfn.State) *Node {
	cut, one := m.variables(theta, x[0].Graph())
	bernoulli := func(on, logits *Node) *Node { return Sub(Mul(on, logits), Softplus(logits)) }
	where := Iota(x[0].Graph(), shapes.Make(dtypes.Int32, x[0].Shape().Dimensions...), 1)
	letters := ConvertDType(LessThan(where, BroadcastToShape(InsertAxes(x[1], 1), where.Shape())), dtypes.Float64)
	on := ConvertDType(x[0], dtypes.Float64)
	logP := ReduceSum(Mul(letters, bernoulli(on, m.logits(one, m.env().Ends(z)))), 1)
	gaps := ConvertDType(GreaterOrEqual(z[0], ZerosLike(z[0])), dtypes.Float64)
	cuts := ConvertDType(Equal(z[0], OnesLike(z[0])), dtypes.Float64)
	logP = Add(logP, ReduceSum(Mul(gaps, bernoulli(cuts, BroadcastToShape(ExpandLeftToRank(cut, 2), cuts.Shape()))), 1))
	return AddScalar(logP, -math.Log(most))
}

func (m words) Sample(theta *model.Scope, r *rng.Stream, n int) (gfn.Batch, gfn.State) {
	u := r.Uniform(dtypes.Float64, n, most-1)
	cut, one := m.variables(theta, u.Graph())
	length := OnePlus(r.Categorical(MulScalar(Ones(u.Graph(), shapes.Make(dtypes.Float64, n, most)), 1.0/most)))
	z := m.env().Of(LessThan(u, BroadcastToShape(Sigmoid(ExpandLeftToRank(cut, 2)), u.Shape())), length)
	on := ConvertDType(r.Bernoulli(Sigmoid(m.logits(one, m.env().Ends(z)))), dtypes.Float64)
	where := Iota(u.Graph(), shapes.Make(dtypes.Int32, n, most), 1)
	inside := LessThan(where, BroadcastToShape(InsertAxes(length, 1), where.Shape()))
	if m.fault == "length" { // of other strings
		length = Concatenate([]*Node{SliceAxis(length, 0, AxisRangeToEnd(1)), SliceAxis(length, 0, AxisRange(0, 1))}, 0)
	}
	return gfn.Batch{ConvertDType(Where(inside, on, ZerosLike(on)), dtypes.Float32), length}, z
}

// all lists every string.
func (m words) all() []*tensors.Tensor {
	var letters [][]float32
	var lengths []int32
	for n := 1; n <= most; n++ {
		for k := range 1 << n {
			row := make([]float32, most)
			for i := range n {
				row[i] = float32(k >> i & 1)
			}
			letters, lengths = append(letters, row), append(lengths, int32(n))
		}
	}
	return []*tensors.Tensor{tensors.FromValue(letters), tensors.FromValue(lengths)}
}

// score is log p(x,z) by hand, at given logits; cut are the decisions, as they are in states.
func (m words) score(logits []float64, letters []float32, n int, cut []int32) float64 {
	logP, before := -math.Log(most), true
	bernoulli := func(on bool, logit float64) {
		if !on {
			logit = -logit
		}
		logP -= math.Log1p(math.Exp(-logit))
	}
	for i := range n {
		after := i == n-1 || cut[i] == 1
		one := logits[1]
		if before && after {
			one = logits[2]
		}
		bernoulli(letters[i] == 1, one)
		if i < n-1 {
			bernoulli(after, logits[0])
		}
		before = after
	}
	return logP
}

// scores are those of all objects, those with a cut after letter i being in the upper half of 2^(i+1).
func (m words) scores(logits []float64, letters []float32, n int) (logP []float64) {
	for k := range 1 << (n - 1) {
		cut, run, longest := make([]int32, most-1), 1, 1
		for i := range n - 1 {
			if cut[i] = int32(k >> i & 1); cut[i] == 1 {
				run = 0
			}
			run++
			longest = max(longest, run)
		}
		if m.longest == 0 || longest <= m.longest {
			logP = append(logP, m.score(logits, letters, n, cut))
		}
	}
	return logP
}

// reader is a policy with free logits for each string and each state. It reads features of strings, from which nobody could
// tell how long they are.
type reader struct{}

var _ Encoder = reader{}

func (reader) Encode(_ *model.Scope, x gfn.Batch) gfn.Batch {
	powers := Const(x[0].Graph(), [][]float32{{1, 2, 4, 8}})
	letters := ConvertDType(ReduceSum(Mul(x[0], BroadcastToShape(powers, x[0].Shape())), 1), dtypes.Int32)
	return gfn.Batch{oneHot(dtypes.Float32, Add(letters, MulScalar(MinusOne(x[1]), 16)), 16*most)}
}

func (reader) Heads(phi *model.Scope, u gfn.Batch, s gfn.State, k int) gfn.Heads {
	const states = 27 // three decisions, made or not
	state := oneHot(dtypes.Float32, number(s[0], []int{3, 3, 3}, 1), states)
	features := u.Repeat(k)[0]
	both := Reshape(Mul(InsertAxes(features, 2), InsertAxes(state, 1)), state.Shape().Dim(0), 16*most*states)
	g := state.Graph()
	return gfn.Heads{
		Forward: Dot(both, nn.Param(phi, g, dtypes.Float32, "logits", 0.1, 16*most*states, 2)).Product(),
		Flow:    Squeeze(Dot(both, nn.Param(phi.At("flow"), g, dtypes.Float32, "table", 0.1, 16*most*states, 1)).Product(), 1),
	}
}

// TestLegalByObservation checks an environment whose legal actions depend on x: it keeps the laws, and a policy that reads
// features of x learns the exact posterior of every string.
func TestLegalByObservation(t *testing.T) {
	b := newBackend(t)
	lvmtest.Run(t, words{}, words{}.env())
	for _, longest := range []int{0, 2} {
		m := words{longest: longest}
		x := m.all()
		envtest.Run(t, m.env(), x...)
		spec := Spec{
			Model: m, Env: m.env(), Policy: reader{}, Data: Full(x...), Seed: 5, Gate: Never,
			Wake: Wake{Samples: 4, Optimizer: adam(Phi, optim.Rate{Base: 0.1, Fall: optim.Fall{From: 300, To: 600, End: 0.01}})},
		}
		l := newLearner(t, b, spec)
		worst := func() (worst float64) {
			letters, lengths := x[0].Value().([][]float32), x[1].Value().([]int32)
			for i, n := range lengths {
				row := []*tensors.Tensor{tensors.FromValue(letters[i : i+1]), tensors.FromValue(lengths[i : i+1])}
				d, err := gfn.Enumerate(b, m.env(), row, 100)
				if err != nil {
					t.Fatal(err)
				}
				table, err := d.Tabulate(b, l.Store(), Phi, reader{}, row)
				if err != nil {
					t.Fatal(err)
				}
				var logP []float64
				for _, cut := range d.ObjectStates()[0].Value().([][]int32) {
					logP = append(logP, m.score(wordLogits, letters[i], int(n), cut))
				}
				worst = max(worst, gfn.TotalVariation(d.Terminating(table[0]), gfn.Normalise(logP)))
			}
			return worst
		}
		before := worst()
		steps(t, l, 600)
		after := worst()
		t.Logf("segments of at most %d letters: total variation at worst %.4f, before training %.4f", longest, after, before)
		if before < 0.1 || after > 0.02 {
			t.Errorf("total variation at worst %g, before training %g", after, before)
		}
	}
}

// Dreams whose latents belong to other strings are an error.
func TestForeignDreams(t *testing.T) {
	b := newBackend(t)
	dream := func(m words) error {
		_, err := newLearner(t, b, Spec{
			Model: m, Env: m.env(), Policy: reader{}, Data: Full(m.all()...), Seed: 5, Gate: Never, Sleep: Sleep{Weight: 1, Batch: 16},
		}).Step()
		return err
	}
	if err := dream(words{}); err != nil {
		t.Error(err)
	}
	err := dream(words{fault: "length"})
	if err == nil || !strings.Contains(err.Error(), "legal_test.go:") || !strings.Contains(err.Error(), "not built from the initial state") {
		t.Errorf("error %v", err)
	}
}

// A table is of the states of one observation.
func TestTabulateOther(t *testing.T) {
	b, m := newBackend(t), words{}
	x := m.all() // the first two strings have one letter
	d, err := gfn.Enumerate(b, m.env(), []*tensors.Tensor{tensors.FromValue([][]float32{{0, 0, 0, 0}}), tensors.FromValue([]int32{1})}, 100)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = d.Tabulate(b, nn.NewStore(1), Phi, reader{}, x); err == nil || !strings.Contains(err.Error(), "observation 2 has another initial state") {
		t.Errorf("error %v", err)
	}
}

// Latents of one string have no probability given another.
func TestForeignLatents(t *testing.T) {
	b, m := newBackend(t), words{}
	x := m.all()
	l := newLearner(t, b, Spec{Model: m, Env: m.env(), Policy: reader{}, Data: Full(x...), Seed: 5, Gate: Never})
	p, err := l.Posterior()
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	s, err := p.Sample(1, x...)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.LogProb(s.Z, x...); err != nil {
		t.Error(err)
	}
	last := x[0].Shape().Dim(0) - 1
	rotated := make([]int, last+1)
	for i := range rotated {
		rotated[i] = (i + last) % (last + 1) // the first string, of one letter, gets a latent of four letters
	}
	_, err = p.LogProb(rows.Take(s.Z, rotated), x...)
	if err == nil || !strings.Contains(err.Error(), "legal_test.go:") || !strings.Contains(err.Error(), "latent 0 cannot be built from the initial state") {
		t.Errorf("error %v", err)
	}
}
