package vae

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/gfn"
)

// decoders are settings of decoders that differ from the published ones.
func decoders() map[string]func(*Config) {
	return map[string]func(*Config){
		"none":         func(c *Config) { c.Model.Norm = normNone },
		"none, biases": func(c *Config) { c.Model.Norm, c.Model.Bias = normNone, true },
		"batch":        func(c *Config) { c.Model.Norm = normBatch },
		"batch, wide":  func(c *Config) { c.Model.Norm, c.Model.CodeWidth = normBatch, 3 },
		"none, wide":   func(c *Config) { c.Model.Norm, c.Model.CodeWidth = normNone, 3 },
	}
}

// Either method trains with each decoder, and both decoders have the same variables; the running statistics move.
func TestDecoders(t *testing.T) {
	for name, set := range decoders() {
		var paths []string
		for _, method := range []string{MethodVQ, MethodGD} {
			c := tinyConfig(method)
			set(&c)
			s := tinySession(t, c)
			steps(t, s, 3)
			bound, err := s.codec.bounds(s.test, 1)
			if err != nil {
				t.Fatalf("%s, %s: %v", name, method, err)
			}
			if v := bound.Bound; !(v > 0 && v < 200) {
				t.Errorf("%s, %s: %g nats", name, method, v)
			}
			var own []string
			for v := range s.store.Scope(em.Theta + "/" + decoderScope).IterVariables() {
				own = append(own, fmt.Sprint(v.Path(), v.Shape()))
				if strings.HasSuffix(v.Path(), "norm/mean") && !slices.ContainsFunc(floats(t, v.MustValue()), func(x float64) bool { return x != 0 }) {
					t.Errorf("%s, %s: %s has not moved", name, method, v.Path())
				}
			}
			slices.Sort(own)
			if paths != nil && !slices.Equal(own, paths) {
				t.Errorf("%s: the decoders of two methods differ:\n%v\n%v", name, own, paths)
			}
			paths = own
		}
	}
}

// likelihoods are log p(x|z) by different ways to ask for it.
type likelihoods[T any] struct{ Reward, LogJoint, Decoded T }

// With batch normalisation log p(x|z) is the same function of z in rewards, likelihoods and decoding, whatever else is in
// the batch. The twin, the statistics of the batch, is not.
func TestFunctionOfZ(t *testing.T) {
	c := tinyConfig(MethodGFN)
	c.Model.Norm, c.Model.CodeWidth, c.Gate.Turn = normBatch, 2, 0
	s := tinySession(t, c)
	steps(t, s, 8)
	m := s.codec.model
	r := rand.New(rand.NewPCG(5, 5))
	const all = 12
	x := m.noise(r, all)
	pixels := floats(t, x)
	z := make([]int32, all*m.Positions())
	for i := range z {
		z[i] = int32(r.IntN(m.Codes))
	}
	theta := s.store.Scope(em.Theta)
	ask := func(rows []int, train bool) (out []float64) {
		var xs []float32
		var zs []int32
		var codes []Codes
		for _, i := range rows {
			for _, v := range pixels[i*m.Pixels() : (i+1)*m.Pixels()] {
				xs = append(xs, float32(v))
			}
			own := z[i*m.Positions() : (i+1)*m.Positions()]
			zs = append(zs, own...)
			code := Codes{}
			for _, k := range own {
				code = append(code, uint8(k))
			}
			codes = append(codes, code)
		}
		in := example[*tensors.Tensor]{
			tensors.FromFlatDataAndDimensions(xs, len(rows), m.Height, m.Width, 1),
			tensors.FromFlatDataAndDimensions(zs, len(rows), m.Positions()),
		}
		got := call[likelihoods[*tensors.Tensor]](t, s.backend, s.store, func(in example[*Node]) likelihoods[*Node] {
			x, z := gfn.Batch{in.X}, gfn.State{in.Z}
			if train {
				var with changes
				logP := logBernoulli(m.decode(theta, in.Z, &with), in.X)
				return likelihoods[*Node]{logP, logP, logP}
			}
			joint := Sub(m.LogJoint(theta, x, z), m.LogPrior(theta, z))
			return likelihoods[*Node]{m.Reward(theta, x, z), joint, m.LogLikelihood(theta, x, z)}
		}, in)
		out = floats(t, got.Reward)
		same(t, "log p(x,z) - log p(z)", pair[*tensors.Tensor]{got.LogJoint, got.Reward}, 1e-4) // of hundreds
		if train {
			return out
		}
		means, err := s.codec.Decode(codes)
		if err != nil {
			t.Fatal(err)
		}
		for i := range rows {
			logP := 0.0
			for j := range m.Pixels() {
				v := float64(means[i*m.Pixels()+j])
				logP += math.Log(1 - v)
				if xs[i*m.Pixels()+j] == 1 {
					logP += math.Log(v) - math.Log(1-v)
				}
			}
			near(t, fmt.Sprint("decoded, row ", rows[i]), logP, out[i], 1e-5*math.Abs(out[i]))
		}
		return out
	}
	whole := make([]int, all)
	for i := range whole {
		whole[i] = i
	}
	together, apart := ask(whole, false), ask([]int{3, 7, 7, 1}, false)
	for i, row := range []int{3, 7, 7, 1} {
		near(t, fmt.Sprint("row ", row), apart[i], together[row], 1e-6*math.Abs(together[row]))
	}
	if a, b := ask(whole, true), ask([]int{3, 7, 7, 1}, true); math.Abs(a[3]-b[0]) < 1e-3 {
		t.Error("the statistics of a batch give the same, too: the test shows nothing")
	}
	// And importance weights have that likelihood.
	l := &Likelihood{Backend: s.backend, Store: s.store, Model: m, Proposal: s.policy(s.size), Samples: 8, Draws: 16, Decodes: 5}
	defer l.Close()
	l.build()
	images := tensors.FromFlatDataAndDimensions(f32(pixels[:2*m.Pixels()]), 2, m.Height, m.Width, 1)
	drawn, err := l.draw(images, []int{0, 1})
	if err != nil {
		t.Fatal(err)
	}
	for i := range drawn {
		drawn[i].merge(m.Positions())
	}
	if err := l.scores(images, drawn); err != nil {
		t.Fatal(err)
	}
	for i := range drawn {
		for k, code := range drawn[i].distinct {
			var zs []int32
			for _, v := range code {
				zs = append(zs, int32(v))
			}
			got := eval(t, s.backend, s.store, func(_ *model.Scope, x, z *Node) *Node {
				return m.LogJoint(theta, gfn.Batch{x}, gfn.State{z})
			}, tensors.FromFlatDataAndDimensions(f32(pixels[i*m.Pixels():(i+1)*m.Pixels()]), 1, m.Height, m.Width, 1),
				tensors.FromFlatDataAndDimensions(zs, 1, m.Positions()))
			near(t, "an importance weight's log p(x,z)", drawn[i].logP[k], got[0], 1e-6*math.Abs(got[0]))
		}
	}
}

func f32(x []float64) []float32 {
	out := make([]float32, len(x))
	for i, v := range x {
		out[i] = float32(v)
	}
	return out
}

// Codes of one number and codes of vectors [1] are the same to the codebook: the nearest entries, and how it follows.
func TestWideCodebook(t *testing.T) {
	b := open(t)
	v := VQ{Size{Height: 2, Width: 2, Rows: 2, Columns: 2, Codes: 3, Channels: 1, CodeWidth: 2, dtype: dtypes.Float64}}
	store := newStore(0)
	at := store.Scope("/vq").At("codebook")
	at.VariableWithValue("entries", [][]float64{{-0.2, 1}, {0.1, 1}, {0.3, 0}})
	out := call[bookUpdate[*tensors.Tensor]](t, b, store, func(y *Node) (out bookUpdate[*Node]) {
		book := v.codebook(store.Scope("/vq"), y.Graph())
		entries := book.entries.NodeValue(y.Graph())
		out.Z = nearest(entries, y)
		out.Loss = ReduceAllSum(v.lookUp(entries, Reshape(out.Z, 1, 4)))
		for _, c := range book.follow(OneHot(out.Z, 3, y.DType()), y) {
			out.Changes = append(out.Changes, c.Value)
		}
		return out
	}, [][]float64{{0, 1}, {0.12, 0.9}, {0.2, 0.1}, {-0.3, 1}})
	if z := floats(t, out.Z); fmt.Sprint(z) != "[1 1 2 0]" {
		t.Errorf("codes %v", z)
	}
	near(t, "sum of the numbers", floats(t, out.Loss)[0], 0.1+1+0.1+1+0.3-0.2+1, 1e-12)
	count, sums, entries := floats(t, out.Changes[0]), floats(t, out.Changes[1]), floats(t, out.Changes[2])
	for i, want := range []float64{
		0.999*-0.2 + 0.001*-0.3, 0.999 + 0.001, 0.999*0.1 + 0.001*0.12, 0.999 + 0.001*1.9, 0.999*0.3 + 0.001*0.2, 0.001 * 0.1,
	} {
		near(t, fmt.Sprint("sum ", i), sums[i], want, 1e-12)
		near(t, fmt.Sprint("entry ", i), entries[i], want/count[i/2], 1e-8)
	}
}
