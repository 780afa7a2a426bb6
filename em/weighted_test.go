package em

import (
	"math"
	"slices"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/internal/program"
	"github.com/gfnem/gfnem/optim"
	"github.com/gfnem/gfnem/rng"
)

// oneSet is a spec of sets of causes of a single observation, with a random P_F and a random P_B over all ways there,
// and these ways: their probabilities forward and backward, and the numbers of the sets that they lead to.
type oneSet struct {
	toySet
	x              int
	b              compute.Backend
	spec           Spec
	store          *model.Store
	logPF, logPB   []float64
	set            []int
	trueGrad, logP []float64
}

func newOneSet(t *testing.T, seed uint64) *oneSet {
	t.Helper()
	o := &oneSet{toySet: newToySet(seed), x: 5, b: newBackend(t), store: model.NewStore()}
	d, err := gfn.Enumerate(o.b, o.toySet.set(), []*tensors.Tensor{o.rows(o.x)}, 100)
	if err != nil {
		t.Fatal(err)
	}
	policy := gfn.Tabular{DAG: d, DType: dtypes.Float64, LearnBackward: true}
	r := rng.New(seed, "one set")
	random := func(name string, dims ...int) {
		v := make([]float64, dims[0]*dims[1])
		for i := range v {
			v[i] = 0.7 * r.NormFloat64()
		}
		o.store.Scope(Phi).VariableWithValue(name, floats(dtypes.Float64, v, dims...))
	}
	random("forward", d.Len(), d.Env.Actions())
	random("backward", d.Len(), d.Env.BackActions())
	o.spec = Spec{Model: o.toySet, Env: d.Env, Policy: policy, Data: Full(o.rows(o.x))}
	tables, err := d.Tabulate(o.b, o.store, Phi, policy, []*tensors.Tensor{o.rows(o.x)})
	if err != nil {
		t.Fatal(err)
	}
	sets := d.ObjectStates()[0].Value().([][]int32)
	number := map[int]int{}
	for i, s := range d.Objects {
		number[s] = int(sets[i][0] + 2*sets[i][1] + 4*sets[i][2])
	}
	var visit func(state int, logPF, logPB float64)
	visit = func(state int, logPF, logPB float64) {
		if n, ok := number[state]; ok {
			o.logPF, o.logPB, o.set = append(o.logPF, logPF), append(o.logPB, logPB), append(o.set, n)
			return
		}
		for i, e := range d.Edges {
			if e.From == state {
				visit(e.To, logPF+tables[0].LogPF[i], logPB+tables[0].LogPB[i])
			}
		}
	}
	visit(0, 0, 0)
	o.logP = o.table(o.prior, o.emit)[o.x]
	o.trueGrad = differences(o.toy, func(m toy) float64 { return gfn.LogSumExp(m.table(m.prior, m.emit)[o.x]) })
	return o
}

// gradient is the sum of the gradients of log p(x,z), each with the weight of z.
func (o *oneSet) gradient(weight []float64) []float64 {
	return differences(o.toy, func(m toy) (sum float64) {
		for z, logP := range m.table(m.prior, m.emit)[o.x] {
			sum += weight[z] * logP
		}
		return sum
	})
}

// expected is the expectation of the weighted gradient of k samples, by adding up all k-tuples of ways.
func (o *oneSet) expected(k int) []float64 {
	weight := make([]float64, len(o.logP))
	var visit func(ways []int, logPF float64)
	visit = func(ways []int, logPF float64) {
		if len(ways) < k {
			for i := range o.set {
				visit(append(slices.Clone(ways), i), logPF+o.logPF[i])
			}
			return
		}
		var logW []float64
		for _, i := range ways {
			logW = append(logW, o.logP[o.set[i]]+o.logPB[i]-o.logPF[i])
		}
		for j, w := range gfn.Normalise(logW) {
			weight[o.set[ways[j]]] += math.Exp(logPF) * w
		}
	}
	visit(nil, 0)
	return o.gradient(weight)
}

func distance(a, b []float64) (sum float64) {
	for i := range a {
		sum += (a[i] - b[i]) * (a[i] - b[i])
	}
	return math.Sqrt(sum)
}

// The more samples, the nearer the expected gradient is to that of log p(x), and it is what samples give on average;
// but not if the weights forget P_B or P_F.
func TestWeightedGradient(t *testing.T) {
	const seed, repeats = 4, 60
	t.Logf("seed %d", seed)
	o := newOneSet(t, seed)
	var far []float64
	for k := 1; k <= 4; k++ {
		far = append(far, distance(o.expected(k), o.trueGrad))
	}
	t.Logf("bias of 1 to 4 samples: %.4f", far)
	if !(far[3] < far[2] && far[2] < far[1] && far[1] < far[0]) || far[3] > far[0]/2 {
		t.Errorf("bias of 1 to 4 samples: %.4f", far)
	}

	type keyed[T any] struct {
		Key T
		X   []T
	}
	type sliced[T any] struct{ Prior, Emit T }
	run := func(k, observations int, ratio func(s gfn.Scores) *Node) (rows [][]float64) {
		spec := o.spec
		spec.MStep.Latents = Weighted{Samples: k}
		set := program.NewSet(o.b, o.store)
		t.Cleanup(set.Close)
		g := newGraphs(spec.withDefaults(), set)
		p := program.New[keyed[*tensors.Tensor], sliced[*tensors.Tensor]](set, "gradient", func(
			in keyed[*Node],
		) (out sliced[*Node]) {
			r := rng.In(in.Key)
			x, u := g.observations(in.X)
			l := g.draw(r, x, u, mNodes{})
			if ratio != nil {
				tr := g.rollout(r, l.x, l.u, gfn.Behaviour{})
				l.z, l.logRatio = tr.Last(), ratio(g.net().ScoreSampled(tr, gfn.Behaviour{}))
			}
			loss := g.weightedLoss(l, nil).loss
			prior, emit := o.variables(g.theta())
			grads := Gradient(Neg(loss), prior.NodeValue(loss), emit.NodeValue(loss))
			out.Prior, out.Emit = grads[0], grads[1]
			return out
		})
		x := o.rows(slices.Repeat([]int{o.x}, observations)...)
		for i := range uint64(repeats) {
			out, err := p.Call(keyed[*tensors.Tensor]{rng.Key(seed, "repeat", i), []*tensors.Tensor{x}})
			if err != nil {
				t.Fatal(err)
			}
			row := tensors.MustCopyFlatData[float64](out.Prior)
			rows = append(rows, append(row, tensors.MustCopyFlatData[float64](out.Emit)...))
		}
		return rows
	}
	// largest is the largest t-statistic of the components of a mean.
	largest := func(rows [][]float64, want []float64) (most float64) {
		for i := range want {
			var column []float64
			for _, row := range rows {
				column = append(column, row[i])
			}
			mean, std := stat.MeanStdDev(column, nil)
			most = max(most, math.Abs(mean-want[i])/(std/math.Sqrt(repeats)))
		}
		return most
	}
	// Of 8 + 24 numbers in 3 checks; the bias of 1,024 samples is small beside the standard error.
	bound := distuv.StudentsT{Nu: repeats - 1, Sigma: 1}.Quantile(1 - falseAlarm/(2*32*3))
	forgets := map[string]func(s gfn.Scores) *Node{
		"P_B": func(s gfn.Scores) *Node { return Neg(ReduceSum(s.LogPF, 1)) },
		"P_F": func(s gfn.Scores) *Node { return ReduceSum(s.LogPB, 1) },
	}
	for _, c := range []struct {
		k, observations int
		want            []float64
	}{{1, 64, o.expected(1)}, {2, 256, o.expected(2)}, {1024, 1, o.trueGrad}} {
		v := largest(run(c.k, c.observations, nil), c.want)
		t.Logf("%d samples: t-statistic %.1f, bound %.1f", c.k, v, bound)
		if v > bound {
			t.Errorf("%d samples: t-statistic %.1f, bound %.1f", c.k, v, bound)
		}
		for name, ratio := range forgets {
			if c.k == 1 { // its weight is 1 whatever it is
				continue
			}
			v := largest(run(c.k, c.observations, ratio), c.want)
			t.Logf("%d samples without %s: t-statistic %.1f", c.k, name, v)
			if v < bound {
				t.Errorf("%d samples without %s: t-statistic %.1f passes, bound %.1f", c.k, name, v, bound)
			}
		}
	}
}

// banning is a toy that holds some pairs to be impossible, by the logarithm of a 0 whose gradient is NaN: those of a
// latent whose number is below the second tensor of the observation, [B].
type banning struct{ toy }

func (m banning) LogJoint(theta *model.Scope, x gfn.Batch, z gfn.State) *Node {
	prior, _ := m.variables(theta)
	number := number(z[0], m.sizes, 0)
	allowed := ConvertDType(GreaterOrEqual(number, ConvertDType(x[1], dtypes.Int32)), m.dtype)
	one := Div(ReduceAllSum(prior.NodeValue(number)), ReduceAllSum(prior.NodeValue(number)))
	return Add(m.toy.LogJoint(theta, x[:1], z), Log(Mul(allowed, one)))
}

// Given latents and their log P_B - log P_F, the update is what the weights say; impossible latents have none, and an
// observation without possible ones is left out. If all are, the update is skipped.
func TestWeightedUpdate(t *testing.T) {
	const rate = 1.0 / 8
	m := newToy(3, dtypes.Float64)
	b := newBackend(t)
	logP := m.table(m.prior, m.emit)
	x := []int{2, 7, 5}
	z := []int{0, 3, 5, 1, 2, 4, 4, 4, 1}
	logRatio := []float64{-1, 0.5, 2, 0, 1, -0.3, 0.2, 0.1, 0}
	inf := math.Inf(-1)
	for _, c := range []struct {
		name string
		bans []float32 // of each observation, so many latents are impossible
	}{
		{"none", []float32{0, 0, 0}}, {"some", []float32{1, 2, 0}},
		{"one observation", []float32{4, 6, 2}}, {"all", []float32{6, 6, 6}},
	} {
		spec := toySpec(m)
		spec.Model = banning{m}
		spec.Data = Full(m.rows(x...), tensors.FromValue(c.bans))
		spec.MStep.Latents = Weighted{Samples: 3}
		spec.MStep.Optimizer = optim.Optimizer{Groups: []optim.Group{
			{Scope: Theta, Rule: optim.SGD{}, Rate: optim.Rate{Base: rate}},
		}}
		l := newLearner(t, b, spec)
		var rows [][]int32
		for _, n := range z {
			rows = append(rows, []int32{int32(n % 2), int32(n / 2)})
		}
		got, err := l.M.Maximize(Moment{}, spec.Data(0), Inferred{
			Z: []*tensors.Tensor{tensors.FromValue(rows)}, LogRatio: tensors.FromValue(logRatio),
		})
		if err != nil {
			t.Fatal(err)
		}

		weight := make([][]float64, len(x)) // of each observation, by latent
		counted, size, impossible := 0.0, 0.0, 0
		for i := range x {
			weight[i] = make([]float64, m.latents())
			var logW []float64
			for j := 3 * i; j < 3*i+3; j++ {
				w := logP[x[i]][z[j]] + logRatio[j]
				if z[j] < int(c.bans[i]) {
					w = inf
					impossible++
				}
				logW = append(logW, w)
			}
			if slices.Max(logW) == inf {
				continue
			}
			counted++
			squares := 0.0
			for j, w := range gfn.Normalise(logW) {
				weight[i][z[3*i+j]] += w
				squares += w * w
			}
			size += 1 / squares
		}
		if got.OK != (counted > 0) || got.Scores.Impossible != impossible || math.Abs(got.Metrics["m/ess"]-size/3) > 1e-6 {
			t.Errorf("%s: %+v, want %d impossible ones and a sample size of %g", c.name, got, impossible, size/3)
		}
		loss := func(m toy) (sum float64) {
			now := m.table(m.prior, m.emit)
			for i := range x {
				for z, w := range weight[i] {
					sum -= w * now[x[i]][z] / max(counted, 1)
				}
			}
			return sum
		}
		want := differences(m, loss)
		start := slices.Concat(m.prior, m.emit)
		for i, v := range slices.Concat(numbersOf(t, l.Store(), Theta+"/prior"), numbersOf(t, l.Store(), Theta+"/emit")) {
			if d := (start[i]-v)/rate - want[i]; !(math.Abs(d) < 1e-7) {
				t.Fatalf("%s: gradient %d is off by %g", c.name, i, d)
			}
		}
		if counted > 0 {
			near(t, c.name, []float64{got.Loss}, []float64{loss(m)}, 1e-6)
		}
	}
}

// With one sample a weighted M-step is that of Drawn, or of the one sample of wake.
func TestWeightedAlone(t *testing.T) {
	b := newBackend(t)
	for _, pair := range [][2]Latents{{Weighted{1}, Drawn{}}, {Weighted{}, BestOfWake{}}} {
		var theta [2][]float64
		for i, latents := range pair {
			spec := toySpec(newToy(3, dtypes.Float64))
			spec.Wake.Samples, spec.MStep.Latents, spec.Sleep = 1, latents, Sleep{Weight: 1, Batch: 4, Probability: 0.5}
			l := newLearner(t, b, spec)
			r := steps(t, l, 6)
			if ess, ok := r.Metrics["m/ess"]; ok != (i == 0) || ok && ess != 1 {
				t.Errorf("%T: effective sample size %g, %t", latents, ess, ok)
			}
			theta[i] = append(numbersOf(t, l.Store(), Theta+"/prior"), numbersOf(t, l.Store(), Theta+"/emit")...)
		}
		near(t, "theta", theta[0], theta[1], 1e-12)
	}
}

// Where wake has drawn from the policy as it is, its latents serve; elsewhere the M-step draws as many. By either way
// the loss is the posterior's mean of -log p(x,z), up to what samples of this policy vary.
func TestWeightedFromWake(t *testing.T) {
	const samples, checks = 500, 9 * 4
	b, m := newBackend(t), newToy(3, dtypes.Float32)
	q := tablePolicy{m}.posterior(t, newLearner(t, b, toySpec(m)).Store())
	want, variance := 0.0, 0.0 // the variance of self-normalised samples, for many of them
	for x, logP := range m.table(m.prior, m.emit) {
		posterior, mean := gfn.Normalise(logP), 0.0
		for z, p := range posterior {
			mean -= p * logP[z]
		}
		for z, p := range posterior {
			variance += p * p / q[x][z] * math.Pow(-logP[z]-mean, 2) / samples
		}
		want += mean / float64(m.observations())
	}
	bound := distuv.UnitNormal.Quantile(1-falseAlarm/(2*checks)) * math.Sqrt(variance) / float64(m.observations())
	for name, c := range map[string]struct {
		change      func(*Spec)
		shared, one bool // wake's latents serve; in one program, if an M-step is certain
	}{
		"plain":          {func(*Spec) {}, true, true},
		"adaptive":       {func(s *Spec) { s.Gate = Adaptive{Threshold: Constant(math.Inf(1))} }, true, true},
		"two M-steps":    {func(s *Spec) { s.Gate = Blocks{M: 2} }, true, true},
		"sleep together": {func(s *Spec) { s.Sleep = Sleep{Weight: 1, Batch: 4} }, true, false},
		"exploring":      {func(s *Spec) { s.Wake.Explore.Epsilon = Constant(1) }, false, false},
		"own number":     {func(s *Spec) { s.MStep.Latents = Weighted{samples} }, false, false},
		"own data":       {func(s *Spec) { s.MStep.Data = s.Data }, false, false},
		"turns":          {func(s *Spec) { s.Gate = Turns{2} }, true, true},
		"sleep alone":    {func(s *Spec) { s.Sleep = Sleep{Weight: 1, Batch: 4, Alone: true} }, false, false},
	} {
		spec := toySpec(m)
		spec.Wake.Samples, spec.MStep.Latents = samples, Weighted{}
		spec.Wake.Optimizer = adam(Phi, optim.Rate{})
		spec.MStep.Optimizer = adam(Theta, optim.Rate{})
		c.change(&spec)
		l := newLearner(t, b, spec)
		for _, certain := range []bool{true, false} {
			out, err := l.E.Infer(Moment{Maximizes: certain}, spec.Data(0))
			both := certain && c.one
			if err != nil || (out.M != nil) != both || (out.Z.LogRatio != nil) != (c.shared && !both) {
				t.Errorf("%s, an M-step is certain: %t: M-update %v, handed on %d, error %v", name, certain, out.M, len(out.Z.Z), err)
			}
		}
		made := 0
		for range 4 {
			if r := steps(t, l, 1); r.M != nil {
				made++
				if ess := r.Metrics["m/ess"]; !(math.Abs(r.M.Loss-want) < bound) || !(ess > 50 && ess < samples) {
					t.Errorf("%s: a loss of %g, not %g ± %g, and an effective sample size of %g", name, r.M.Loss, want, bound, ess)
				}
			}
		}
		if made == 0 {
			t.Errorf("%s: no M-step", name)
		}
	}
}
