package vae

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"gonum.org/v1/gonum/stat"

	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/optim"
)

// small is the tiny instance in single precision, for training.
func small() Size {
	s := tiny(2)
	s.dtype = dtypes.Float32
	return s
}

// never keeps the decoder as it is.
var never = em.Never

// frozen prepares to train the policy of the tiny instance on images, with a decoder that is far from uniform.
func frozen(t *testing.T, b compute.Backend, seed uint64, images ...int) (*model.Store, em.Spec, Model) {
	t.Helper()
	c := PaperConfig()
	c.Seed = seed
	size := small()
	spec := c.Spec(size, em.Full(size.images(images...)), 1)
	spec.Gate, spec.Sleep = never, em.Sleep{}
	spec.Wake.Samples = 256 / len(images)
	store := newStore(seed)
	m := Model{Size: size}
	joints(t, b, store, m, size.images())
	sharpen(t, store, em.Theta, 2.2)
	fall := optim.Fall{From: 150, To: 500, End: 0.01}
	spec.Wake.Optimizer = optim.Optimizer{Groups: []optim.Group{
		{Scope: em.Phi, Rate: optim.Rate{Base: 5e-3, Fall: fall}},
		{Scope: em.Phi + "/" + zetaScope, Rate: optim.Rate{Base: 0.05, Fall: fall}},
	}}
	return store, spec, m
}

// learn makes updates and returns the mean loss of the last 50.
func learn(t *testing.T, b compute.Backend, store *model.Store, spec em.Spec, updates int) (loss float64) {
	t.Helper()
	l, err := em.New(b, store, spec)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for i := range updates {
		r, err := l.Step()
		if err != nil {
			t.Fatal(err)
		}
		u := r.Wake
		if r.Sleep != nil {
			u = *r.Sleep
		}
		if i >= updates-50 {
			loss += u.Loss / 50
		}
	}
	return loss
}

// farthest is the largest total variation between q(z|x) and p(z|x).
func farthest(t *testing.T, b compute.Backend, store *model.Store, p sized, m Model, x *tensors.Tensor) (tv float64) {
	t.Helper()
	logP := joints(t, b, store, m, x)
	for i, logQ := range posteriors(t, b, store, p, x) {
		tv = max(tv, gfn.TotalVariation(exps(logQ), gfn.Normalise(logP[i])))
	}
	return tv
}

func zetaOf(store *model.Store) float64 {
	return float64(tensors.ToScalar[float32](store.GetVariable(em.Phi + "/" + zetaScope + "/zeta").MustValue()))
}

// Trajectory balance on one image finds its posterior and its log Z, and the loss vanishes. On several images of different
// evidence the posteriors become exact too, but with one zeta for all of them the loss stays at the variance of log Z/n,
// and with one for each image it vanishes.
func TestTrajectoryBalance(t *testing.T) {
	b := open(t)
	const seed = 1 // of an instance on which there is something to learn
	t.Logf("seed %d", seed)
	for _, c := range []struct {
		images      []int
		conditional bool
	}{{[]int{3}, false}, {[]int{3, 9}, false}, {[]int{3, 9}, true}} {
		store, spec, m := frozen(t, b, seed, c.images...)
		p := Policy{Size: m.Size, Conditional: c.conditional}
		spec.Policy = p
		x := m.images(c.images...)
		before := farthest(t, b, store, p, m, x)
		loss := learn(t, b, store, spec, 550)
		after := farthest(t, b, store, p, m, x)
		n := float64(m.Positions())
		var logR []float64
		for _, row := range joints(t, b, store, m, x) {
			logR = append(logR, (gfn.LogSumExp(row)+m.logLatents())/n)
		}
		mean, variance := sum(logR)/float64(len(logR)), 0.0
		for _, v := range logR {
			variance += (v - mean) * (v - mean) / float64(len(logR))
		}
		name := fmt.Sprintf("images %v, conditional %v", c.images, c.conditional)
		t.Logf("%s: total variation %.3f to %.4f, loss %.2g, variance %.2g", name, before, after, loss, variance)
		if before < 0.1 || !(after < 0.01) {
			t.Errorf("%s: total variation %g before and %g after", name, before, after)
		}
		switch {
		case c.conditional:
			if !(loss < 1e-4) {
				t.Errorf("%s: loss %g", name, loss)
			}
		case len(c.images) > 1 && variance < 1e-3:
			t.Errorf("%s: the evidence varies by %g only", name, variance)
		default:
			near(t, name+": loss", loss, variance, 1e-4+0.05*variance)
			near(t, name+": zeta", zetaOf(store), mean, 0.01)
		}
	}
}

// Sleep alone finds the posteriors of all images; its loss ends at H(z|x), which the published weight multiplies by 10/n.
func TestSleep(t *testing.T) {
	b := open(t)
	const seed = 1 // of an instance on which there is something to learn
	t.Logf("seed %d", seed)
	store, spec, m := frozen(t, b, seed, 0)
	c := PaperConfig()
	spec.Sleep = c.Spec(m.Size, nil, 1).Sleep
	if spec.Sleep.Weight != 10.0/4 {
		t.Errorf("the weight of sleep is %g", spec.Sleep.Weight)
	}
	spec.Sleep.Alone, spec.Sleep.Batch = true, 512
	p := spec.Policy.(Policy)
	x := m.images()
	before := farthest(t, b, store, p, m, x)
	loss := learn(t, b, store, spec, 550)
	entropy := 0.0
	for _, row := range joints(t, b, store, m, x) {
		logX := gfn.LogSumExp(row)
		for _, l := range row {
			entropy -= math.Exp(l) * (l - logX)
		}
	}
	logP := joints(t, b, store, m, x)
	mean := 0.0 // total variation, by the probability of images: rare ones are seen rarely
	for i, logQ := range posteriors(t, b, store, p, x) {
		mean += math.Exp(gfn.LogSumExp(logP[i])) * gfn.TotalVariation(exps(logQ), gfn.Normalise(logP[i]))
	}
	after := farthest(t, b, store, p, m, x)
	t.Logf("total variation %.3f to %.4f, mean %.4f; loss %.4f, entropy %.4f", before, after, mean, loss, entropy)
	if before < 0.2 || !(after < 0.1) || !(mean < 0.03) {
		t.Errorf("total variation %g before, %g after, mean %g", before, after, mean)
	}
	near(t, "loss", loss, entropy, 0.02)
}

// stripes are observations that a model of 2x2 codes can explain: a few images, of which some are frequent.
func stripes(r *rand.Rand, count int) (numbers []int) {
	kinds := []int{0b0011, 0b1100, 0b0101, 0b1010, 0b1111, 0b0000}
	for range count {
		k := kinds[min(r.IntN(len(kinds)), r.IntN(len(kinds)))]
		if r.Float64() < 0.1 {
			k ^= 1 << r.IntN(4)
		}
		numbers = append(numbers, k)
	}
	return numbers
}

// With the exact posterior, small full-batch M-steps never lower the likelihood; and GFlowNet-EM as configured ends near
// where exact EM ends.
func TestEM(t *testing.T) {
	b := open(t)
	const seed = 1 // of an instance on which there is something to learn
	t.Logf("seed %d", seed)
	size := small()
	m := Model{Size: size}
	x := size.images(stripes(rand.New(rand.NewPCG(seed, 3)), 16)...)
	likelihood := func(store *model.Store) float64 {
		v, err := em.Classical{Model: m, Env: m.Env()}.LogLikelihood(b, store, x)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	start := func() *model.Store { // away from where all latents mean the same, which EM takes long to leave
		store := newStore(seed)
		likelihood(store)
		sharpen(t, store, em.Theta, 2.5)
		return store
	}
	store := start()
	before := likelihood(store)
	last := before
	exact := em.Classical{Model: m, Env: m.Env(), Data: em.Full(x), Optimizer: optim.Optimizer{Groups: []optim.Group{
		{Scope: em.Theta, Rule: optim.SGD{}, Rate: optim.Rate{Base: 0.02}}}}}
	for range 5 {
		for range 4 {
			if _, err := exact.Train(b, store, 1); err != nil {
				t.Fatal(err)
			}
			now := likelihood(store)
			if now < last-1e-12 {
				t.Errorf("an exact M-step lowers the likelihood from %.12g to %.12g", last, now)
			}
			last = now
		}
	}
	// Exact EM to the end, and GFlowNet-EM for as many M-updates.
	rate := optim.Optimizer{Groups: []optim.Group{{Scope: em.Theta, Rate: optim.Rate{Base: 1e-2}}}}
	const updates = 200
	store = start()
	exact.Optimizer = rate
	if _, err := exact.Train(b, store, updates); err != nil {
		t.Fatal(err)
	}
	want := likelihood(store)
	c := PaperConfig()
	c.Seed, c.Batch = seed, 64
	spec := c.Spec(size, em.Full(x), 1)
	// Turns would begin with an untrained policy, from which exact EM does not suffer.
	spec.Gate = em.Blocks{First: 200, E: 4}
	spec.Wake.Samples, spec.MStep.Latents = 8, em.Drawn{Samples: 8}
	spec.MStep.Optimizer = rate
	spec.Wake.Optimizer.Groups[0].Rate.Base = 3e-3
	store = start()
	learn(t, b, store, spec, 200+4*(updates-1))
	got := likelihood(store)
	t.Logf("log-likelihood %.4f at first, %.4f by exact EM, %.4f by GFlowNet-EM", before, want, got)
	if want < before+0.3 || !(got > want-0.05) {
		t.Errorf("log-likelihood %.4f at first, %.4f by exact EM, %.4f by GFlowNet-EM", before, want, got)
	}
}

// A prior that fits the latents of exact posteriors becomes their mixture, mean over x of p(z|x): on a 2x2 grid it sees all
// that it needs. The expected gradient is taken, since eight layers without biases are slow to learn from samples.
func TestPriorFollowsPosterior(t *testing.T) {
	b := open(t)
	const seed = 1 // of an instance on which there is something to learn
	t.Logf("seed %d", seed)
	size := small()
	size.Channels = 32
	m := Model{Size: size, Learned: true}
	numbers := []int{0, 3, 3, 5, 12, 15, 9}
	store := newStore(seed)
	joints(t, b, store, Model{Size: size}, size.images())
	sharpen(t, store, em.Theta, 3)
	mixed := make([]float64, 16)
	for _, row := range joints(t, b, store, Model{Size: size}, size.images(numbers...)) {
		for z, p := range gfn.Normalise(row) {
			mixed[z] += p / float64(len(numbers))
		}
	}
	prior := func() []float64 {
		return exps(eval(t, b, store, func(_ *model.Scope, z *Node) *Node {
			return m.LogPrior(store.Scope(em.Theta), gfn.State{z})
		}, size.latents()))
	}
	prior()
	sharpen(t, store, em.Theta+"/"+priorScope, 4) // on a small grid little of the input reaches the last layer at first
	opt := optim.Optimizer{Groups: []optim.Group{{Scope: em.Theta + "/" + priorScope, Rate: optim.Rate{Base: 3e-3}}}}
	exec, err := model.NewExec(b, store, func(_ *model.Scope, rates, q, z *Node) *Node {
		loss := Neg(ReduceAllSum(Mul(ConvertDType(q, size.float()), m.LogPrior(store.Scope(em.Theta), gfn.State{z}))))
		opt.Minimize(store, loss, rates)
		return loss
	})
	if err != nil {
		t.Fatal(err)
	}
	defer exec.Finalize()
	before := stat.KullbackLeibler(mixed, prior())
	for range 1500 {
		if _, err := exec.Call(opt.Rates(0), mixed, size.latents()); err != nil {
			t.Fatal(err)
		}
	}
	after := stat.KullbackLeibler(mixed, prior())
	t.Logf("KL %.4f to %.5f, of independent codes %.4f", before, after, stat.KullbackLeibler(mixed, independent(mixed)))
	if alone := stat.KullbackLeibler(mixed, independent(mixed)); alone < 0.02 || !(after < 0.01) {
		t.Errorf("the divergence is %g at first and %g at last, that of independent codes %g", before, after, alone)
	}
}

// independent is the product of the marginals of a distribution over four binary codes.
func independent(p []float64) []float64 {
	out := slices.Repeat([]float64{1}, len(p))
	for bit := range 4 {
		one := 0.0
		for z, v := range p {
			one += v * float64(z>>bit&1)
		}
		for z := range out {
			if z>>bit&1 == 1 {
				out[z] *= one
			} else {
				out[z] *= 1 - one
			}
		}
	}
	return out
}

// decoderLosses are the loss of the M-step, with and without a prior, and what it is made of.
type decoderLosses[T any] struct{ Loss, Plain, Weighed, LogLikelihood, LogPrior, OwnPrior T }

// The loss of the M-step is the published one: by pixel, and with a learned prior by position of other latents.
func TestDecoderLoss(t *testing.T) {
	b := open(t)
	size := tiny(3)
	m := Model{Size: size, Learned: true}
	store := newStore(3)
	out := call[decoderLosses[*tensors.Tensor]](t, b, store, func(in example[*Node]) decoderLosses[*Node] {
		theta := store.Scope(em.Theta)
		x := gfn.Batch{in.X}
		z, other := gfn.State{SliceAxis(in.Z, 0, AxisRange(5, 9))}, gfn.State{SliceAxis(in.Z, 0, AxisRange(60, 64))}
		draw := func() gfn.State { return other }
		plain := Model{Size: size}
		loss, _ := m.decoderLoss(theta, x, z, nil, draw)
		without, _ := plain.decoderLoss(theta, x, z, nil, draw)
		weighed, _ := m.decoderLoss(theta, x, z, Const(in.X.Graph(), []float64{0.5, 0, 0.2, 0.3}), draw)
		return decoderLosses[*Node]{loss, without, weighed, m.LogLikelihood(theta, x, z), m.LogPrior(theta, other), m.LogPrior(theta, z)}
	}, example[*tensors.Tensor]{size.images(1, 2, 3, 4), size.latents()})
	pixels := -sum(floats(t, out.LogLikelihood)) / 4 / 4
	near(t, "the loss", tensors.ToScalar[float64](out.Loss), pixels-sum(floats(t, out.LogPrior))/4/4, 1e-12)
	near(t, "the loss without a prior", tensors.ToScalar[float64](out.Plain), pixels, 1e-12)
	weighed := 0.0
	for i, w := range []float64{0.5, 0, 0.2, 0.3} {
		weighed -= w * (floats(t, out.LogLikelihood)[i]/4 + floats(t, out.OwnPrior)[i]/4)
	}
	near(t, "the loss of weighed latents", tensors.ToScalar[float64](out.Weighed), weighed, 1e-12)
}
