package mixture

import (
	"math"
	"slices"
	"testing"

	"github.com/gomlx/compute"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/backend"
	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/gfn/envtest"
	"github.com/gfnem/gfnem/lvm/lvmtest"
	"github.com/gfnem/gfnem/nn"
	"github.com/gfnem/gfnem/optim"
)

func open(t *testing.T) compute.Backend {
	t.Helper()
	b, err := backend.Open("go")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// few returns a small data set with its start.
func few(points int) (Problem, Data, Means) {
	p := Problem{}.filled()
	d, start := Experiment{Points: points, Seed: 7}.Draw(0)
	return p, d, start
}

func pairTensor(z []Pair) *tensors.Tensor {
	var flat []int32
	for _, p := range z {
		flat = append(flat, int32(p.I), int32(p.J))
	}
	return tensors.FromFlatDataAndDimensions(flat, len(z), 2)
}

func TestLaws(t *testing.T) {
	_, _, start := few(10)
	m := gfnModel{Problem{}.filled(), start}
	envtest.Run(t, m.env())
	lvmtest.Run(t, m, m.env())
}

// The log-joint and the reward agree with the host's float64 tables on every pair.
func TestLogJoint(t *testing.T) {
	b := open(t)
	p, d, start := few(50)
	m := gfnModel{p, start}
	want := p.LogReward(d.X, start, math.Inf(-1))
	clipped := p.LogReward(d.X, start, -20)
	for k := range 16 {
		z := slices.Repeat([]Pair{{k / 4, k % 4}}, len(d.X))
		store := model.NewStore()
		exec := model.MustNewExec(b, store, func(s *model.Scope, x, z *Node) (joint, reward *Node) {
			return m.LogJoint(s, gfn.Batch{x}, gfn.State{z}), m.reward(-20)(s, gfn.Batch{x}, gfn.State{z})
		})
		logJoint, logR, err := exec.Call2(pointTensor(d.X), pairTensor(z))
		exec.Finalize()
		if err != nil {
			t.Fatal(err)
		}
		joint, reward := tensors.MustCopyFlatData[float32](logJoint), tensors.MustCopyFlatData[float32](logR)
		for n := range d.X {
			if w := want[n*16+k] + p.logNorm(4); math.Abs(float64(joint[n])-w) > 1e-4*(1+math.Abs(w)) {
				t.Fatalf("point %d, pair %d: log-joint %g, want %g", n, k, joint[n], w)
			}
			if w := clipped[n*16+k]; math.Abs(float64(reward[n])-w) > 1e-4*(1+math.Abs(w)) {
				t.Fatalf("point %d, pair %d: reward %g, want %g", n, k, reward[n], w)
			}
		}
	}
}

// Both M-steps on given assignments are those of the host: one step of gradient descent is a relaxation, the closed form a
// mean, and a supercluster without points stays where it is.
func TestGraphMSteps(t *testing.T) {
	b := open(t)
	p, d, start := few(400)
	m := gfnModel{p, start}
	z := p.Posterior(d.X, start, math.Inf(-1)).Argmax()
	for n := range z { // leave supercluster 2 empty
		if z[n].I == 2 {
			z[n].I = 0
		}
	}
	opt := optim.Optimizer{Groups: []optim.Group{{Scope: em.Theta, Rule: optim.SGD{}, Rate: optim.Rate{Base: 0.1}}}}
	for name, step := range map[string]func(*model.Store, *model.Scope, gfn.Batch, gfn.State, *Node) *Node{
		"gradient": func(store *model.Store, s *model.Scope, x gfn.Batch, z gfn.State, rates *Node) *Node {
			return opt.Minimize(store, Neg(ReduceAllMean(m.LogJoint(s, x, z))), rates).OK
		},
		"closed form": func(_ *model.Store, s *model.Scope, x gfn.Batch, z gfn.State, _ *Node) *Node {
			return optim.Assign(m.Maximize(s, x, z))
		},
	} {
		store := model.NewStore()
		_, err := model.CallOnce(b, store, func(_ *model.Scope, x, z, rates *Node) *Node {
			return step(store, store.Scope(em.Theta), gfn.Batch{x}, gfn.State{z}, rates)
		}, pointTensor(d.X), pairTensor(z), opt.Rates(0))
		if err != nil {
			t.Fatal(err)
		}
		got := tensors.MustCopyFlatData[float32](store.GetVariable(em.Theta + "/means").MustValue())
		want := slices.Clone(start)
		if name == "gradient" {
			descend(p, want, d.X, z, 0.1)
		} else {
			assigned(p, d.X, z, len(want)).maximise(want)
			want[2] = start[2] // the host's code sends it to (1,1), as published
		}
		for i := range want {
			for c := range 2 {
				if math.Abs(float64(got[2*i+c])-want[i][c]) > 1e-5 {
					t.Errorf("%s: mean %d is %v, want %v", name, i, got[2*i:2*i+2], want[i])
				}
			}
		}
	}
}

func TestPolicySize(t *testing.T) {
	c := PaperConfig()
	c.Points, c.Gate.ESteps, c.Iterations = 20, 1, 1
	tr, err := newTrainer(open(t), c, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	if _, err := tr.Learner().Step(); err != nil {
		t.Fatal(err)
	}
	if n := tr.Store().Scope(em.Phi).NumParameters(); n != 649 {
		t.Errorf("the policy has %d parameters, the paper's 649", n)
	}
	var seen []Point
	if err := tr.eachPosterior(tr.data.X, func(x []Point, q *Posterior) {
		seen = append(seen, x...)
		for n := range x {
			sum := 0.0
			for _, p := range q.Row(n) {
				sum += p
			}
			if math.Abs(sum-1) > 1e-5 {
				t.Fatalf("q of point %d sums to %g", n, sum)
			}
		}
	}); err != nil || !slices.Equal(seen, tr.data.X) {
		t.Fatalf("%d of %d points, error %v", len(seen), len(tr.data.X), err)
	}
}

// pointwise is a policy with free logits for each of a few points, known by their one-hot number x[1].
type pointwise struct{ points int }

// Heads implements gfn.Policy.
func (p pointwise) Heads(scope *model.Scope, x gfn.Batch, s gfn.State, k int) gfn.Heads {
	who := x.Repeat(k)[1]
	n := who.Shape().Dim(0)
	// Rows of the second table stand for (point, supercluster).
	pair := Reshape(Mul(InsertAxes(who, 2), InsertAxes(hot(s, 0, 4), 1)), n, 4*p.points)
	table := func(rows *Node, name string, width int) *Node {
		return Dot(rows, nn.Param(scope, rows.Graph(), float, name, 0, rows.Shape().Dim(1), width)).Product()
	}
	first := SliceAxis(s[0], 1, AxisElem(0))
	atStart := BroadcastToDims(LessThan(first, ZerosLike(first)), n, 4)
	return gfn.Heads{Forward: Where(atStart, table(who, "i", 4), table(pair, "j", 4)), Flow: Squeeze(table(who, "logz", 1), 1)}
}

// With free logits trajectory balance finds the clipped posterior and its normaliser exactly, and not the unclipped one.
func TestTBReachesClippedPosterior(t *testing.T) {
	b := open(t)
	p := Problem{}.filled()
	mu := Figure2Means()
	d, _ := Experiment{Points: 6, Seed: 3}.Draw(0)
	d.X[0] = Point{-3.5, 3.6} // far from every centre, so that the clip matters
	m := gfnModel{p, mu}
	eye := make([]float32, 36)
	for i := range 6 {
		eye[7*i] = 1
	}
	x := []*tensors.Tensor{pointTensor(d.X), tensors.FromFlatDataAndDimensions(eye, 6, 6)}
	l, err := em.New(b, model.NewStore(), em.Spec{
		Model: m, Env: m.env(), Policy: pointwise{6}, Data: em.Full(x...), Seed: 1,
		Wake: em.Wake{
			Reward: m.reward(-20), Samples: 32, Explore: em.Explore{Epsilon: em.Constant(0.3)},
			Optimizer: optim.Optimizer{Groups: []optim.Group{{Scope: em.Phi, Rate: optim.Rate{
				Base: 0.1, Drops: []optim.Drop{{Step: 1000, Factor: 0.1}, {Step: 2000, Factor: 0.1}}}}}},
		},
		Gate: em.Never,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var last em.Report
	if err := l.Train(t.Context(), func(s em.State) bool { return s.Iteration == 3000 }, func(r em.Report) error {
		last = r
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if last.Wake.Loss > 1e-4 {
		t.Errorf("loss %g at the end", last.Wake.Loss)
	}
	row := []*tensors.Tensor{pointTensor(d.X[:1]), tensors.FromFlatDataAndDimensions(eye[:6], 1, 6)}
	dag, err := gfn.Enumerate(b, m.env(), row, 100)
	if err != nil {
		t.Fatal(err)
	}
	tables, err := dag.Tabulate(b, l.Store(), em.Phi, pointwise{6}, x)
	if err != nil {
		t.Fatal(err)
	}
	tokens := tensors.MustCopyFlatData[int32](dag.ObjectStates()[0])
	clipped, plain := p.Posterior(d.X, mu, -20), p.Posterior(d.X, mu, math.Inf(-1))
	worstPlain := 0.0
	for n, table := range tables {
		q := make([]float64, 16)
		for k, v := range dag.Terminating(table) {
			q[4*tokens[2*k]+tokens[2*k+1]] = v
		}
		if tv := gfn.TotalVariation(q, clipped.Row(n)); tv > 1e-3 {
			t.Errorf("point %d: total variation %g to the clipped posterior", n, tv)
		}
		worstPlain = max(worstPlain, gfn.TotalVariation(q, plain.Row(n)))
		if diff := math.Abs(table.Flow[0] - clipped.LogZ[n]); diff > 1e-2 {
			t.Errorf("point %d: log Z is off by %g", n, diff)
		}
	}
	if worstPlain < 0.1 {
		t.Errorf("the unclipped posterior is as close (%g): the test cannot tell them apart", worstPlain)
	}
}

// The first losses of the presets are frozen: a change here changes every result, and needs a reason.
func TestGoldenLosses(t *testing.T) {
	b := open(t)
	for name, want := range map[string][]float64{
		"paper": {249.42473, 250.63112, 250.73352},
		"quick": {249.34015, 244.35587, 244.53252},
	} {
		c := presets[name]()
		tr, err := newTrainer(b, c, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer tr.Close()
		for i, w := range want {
			r, err := tr.Learner().Step()
			if err != nil {
				t.Fatal(err)
			}
			if math.Abs(r.Wake.Loss-w) > 1e-5*w {
				t.Errorf("%s: loss %d is %.8g, frozen %.8g", name, i, r.Wake.Loss, w)
			}
		}
	}
}
