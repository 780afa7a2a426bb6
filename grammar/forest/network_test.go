package forest

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/internal/testkit"
	"github.com/gfnem/gfnem/nn"
	"github.com/gfnem/gfnem/rng"
)

// parameters are the variables of a network as they start, below their scope.
func parameters(t testing.TB, m Network, seed uint64) map[string]*tensors.Tensor {
	t.Helper()
	store := nn.NewStore(seed)
	m.weights(store.Scope("/phi"), NewGraph(shared(), "weights"))
	return valuesOf(store)
}

func valuesOf(store *model.Store) map[string]*tensors.Tensor {
	out := map[string]*tensors.Tensor{}
	for v := range store.RootScope().IterVariables() {
		out[strings.TrimPrefix(v.Path(), "/phi/")] = v.MustValue()
	}
	return out
}

// published is the paper's network for its vocabulary, with the first of its layers alone: the others are copies.
func published() Network {
	m := Paper(9672, 29, 60)
	m.Layers = 1
	return m
}

// TestPublishedSize compares the numbers of parameters with those of the released code, and the scale of what they
// start as.
func TestPublishedSize(t *testing.T) {
	t.Parallel()
	seed := testkit.Seed(t)
	if m := Paper(9672, 29, 60); m.Positions != 22 || m.Layers != 6 || m.Heads != 4 || m.Width != 512 || m.FeedForward != 2048 {
		t.Errorf("the published network is %+v", m)
	}
	all := parameters(t, published(), seed)
	sizes := map[string]int{}
	for path, x := range all {
		part := strings.Split(path, "/")
		name := part[0]
		if name == EncoderScope {
			name = part[1]
		}
		sizes[name] += x.Shape().Size()
	}
	const head = 1024 + 512*513 // of each head, before it reads out
	for name, want := range map[string]int{
		"tokens": 4_998_144, "positions": 11_264, "tree": 1_312_256, "layer": 18_914_304 / 6, "norm": 1024,
		FlowScope: 264_193, BackwardScope: 264_193,
		// The released code reads out 2 numbers for positions and 90 for labels, of which it uses 1 and 29.
		ForwardScope: 574_556 - 513 - 61*513,
	} {
		if sizes[name] != want {
			t.Errorf("%s has %d parameters, want %d", name, sizes[name], want)
		}
	}
	if sizes[FlowScope] != head+513 {
		t.Errorf("a head has %d parameters", sizes[FlowScope])
	}
	for path, x := range all {
		checkScale(t, path, x)
	}
}

// checkScale compares the greatest of initial values with what they are drawn from.
func checkScale(t *testing.T, path string, x *tensors.Tensor) {
	t.Helper()
	const root = 22.627416997969522 // of the width
	want := map[string]float64{
		"encoder/tree/0/weights": 1 / math.Sqrt(1536), "encoder/tree/0/bias": 1 / math.Sqrt(1536),
		"encoder/tree/1/weights": 1 / root, "encoder/tree/1/bias": 1 / root, "encoder/tree/2/weights": 1 / root, "encoder/tree/2/bias": 1 / root,
		"encoder/layer/0/qkv/weights": math.Sqrt(6.0 / 2048), "encoder/layer/0/out/weights": 1 / root,
		"encoder/layer/0/wide/weights": 1 / root, "encoder/layer/0/wide/bias": 2 / root,
		"encoder/layer/0/narrow/weights": 1 / math.Sqrt(2048), "encoder/layer/0/narrow/bias": 4 / math.Sqrt(2048),
	}
	for _, head := range []string{positionHead, labelHead, splitHead, flowHead} {
		want[head+"/hidden/weights"], want[head+"/hidden/bias"] = 1/root, 2/root
		want[head+"/readout/weights"], want[head+"/readout/bias"] = 2/root, 2/root
	}
	most, squares := 0.0, 0.0
	values := float64s(t, x)
	for _, v := range values {
		most, squares = max(most, math.Abs(v)), squares+v*v/float64(len(values))
	}
	switch {
	case path == "encoder/tokens", path == "encoder/positions":
		if deviation := math.Sqrt(squares) * root; !(math.Abs(deviation-1) < 5/math.Sqrt(2*float64(len(values)))) { // standard errors
			t.Errorf("%s has a standard deviation of %g of the square root of the width", path, deviation)
		}
	case want[path] == 0: // norms, biases of attention
		if most != 0 {
			t.Errorf("%s starts at up to %g", path, most)
		}
	default:
		low := math.Pow(1e-6, 1/float64(len(values))) // the greatest is below with probability 1e-6
		if !(most <= want[path]*(1+1e-6) && most >= want[path]*low) {
			t.Errorf("%s starts at up to %g, want %g", path, most, want[path])
		}
	}
}

// TestLayersStartAlike: all layers of the transformer are copies of the first, and nothing else is.
func TestLayersStartAlike(t *testing.T) {
	t.Parallel()
	seed := testkit.Seed(t)
	r := newRig(t, seed, dtypes.Float64, 2)
	r.Layers = 3
	all := parameters(t, r.Network, seed)
	copies, seen := 0, map[string]string{}
	for path, x := range all {
		if rest, ok := strings.CutPrefix(path, "encoder/layer/"); ok {
			copies++
			if first := all["encoder/layer/0"+rest[1:]]; !first.Equal(x) {
				t.Errorf("%s is not as in the first layer", path)
			}
			if !strings.HasPrefix(rest, "0") {
				continue
			}
		}
		if values := float64s(t, x); values[0] != 0 {
			if twin := fmt.Sprint(values); seen[twin] == "" {
				seen[twin] = path
			} else {
				t.Errorf("%s and %s start alike", path, seen[twin])
			}
		}
	}
	if copies != 3*12 {
		t.Errorf("%d variables of layers", copies)
	}
}

// hostNet is the network again, one forest at a time, in plain loops.
type hostNet struct {
	Network
	value map[string][]float64
	// preNorm is the transformer with norms in front of its blocks that leave the residual stream alone: not what the
	// released code does.
	preNorm bool
}

func (h *hostNet) linear(path string, x []float64) []float64 {
	w, y := h.value[path+"/weights"], slices.Clone(h.value[path+"/bias"])
	for i, v := range x {
		for j := range y {
			y[j] += v * w[i*len(y)+j]
		}
	}
	return y
}

func (h *hostNet) norm(path string, x []float64) []float64 {
	mean, variance := 0.0, 0.0
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		variance += (v - mean) * (v - mean) / float64(len(x))
	}
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = (v-mean)/math.Sqrt(variance+1e-5)*(1+h.value[path+"/scale"][i]) + h.value[path+"/shift"][i]
	}
	return y
}

func apply(x []float64, f func(float64) float64) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = f(v)
	}
	return y
}

func elu(v float64) float64 {
	if v > 0 {
		return v
	}
	return math.Exp(v) - 1
}

func relu(v float64) float64 { return max(v, 0) }

func plus(a, b []float64) []float64 {
	y := slices.Clone(a)
	for i, v := range b {
		y[i] += v
	}
	return y
}

func (h *hostNet) row(table string, i int) []float64 {
	return h.value["encoder/"+table][i*h.Width:][:h.Width]
}

// embed is the embedding of a tree.
func (h *hostNet) embed(words []int32, v *tree) []float64 {
	if v.left == nil {
		return h.row("tokens", int(words[v.first]))
	}
	e := h.row("tokens", h.Words+1+v.label) // after ROOT
	x := slices.Concat(e, h.embed(words, v.left), h.embed(words, v.right))
	x = apply(h.linear("encoder/tree/0", x), elu)
	x = apply(h.linear("encoder/tree/1", x), elu)
	return plus(e, h.linear("encoder/tree/2", x))
}

func (h *hostNet) encode(words []int32, trees []*tree) [][]float64 {
	var x [][]float64
	for place, v := range trees {
		x = append(x, plus(h.embed(words, v), h.row("positions", place)))
	}
	each := func(x [][]float64, f func(i int, v []float64) []float64) [][]float64 {
		out := make([][]float64, len(x))
		for i := range x {
			out[i] = f(i, x[i])
		}
		return out
	}
	for l := range h.Layers {
		at := fmt.Sprintf("encoder/layer/%d/", l)
		u := each(x, func(_ int, v []float64) []float64 { return h.norm(at+"norm 1", v) })
		stream := u
		if h.preNorm {
			stream = x
		}
		mixed := h.attend(at, u)
		stream = each(stream, func(i int, v []float64) []float64 { return plus(v, h.linear(at+"out", mixed[i])) })
		u = each(stream, func(_ int, v []float64) []float64 { return h.norm(at+"norm 2", v) })
		if !h.preNorm {
			stream = u
		}
		x = each(stream, func(i int, v []float64) []float64 {
			return plus(v, h.linear(at+"narrow", apply(h.linear(at+"wide", u[i]), relu)))
		})
	}
	return each(x, func(_ int, v []float64) []float64 { return h.norm("encoder/norm", v) })
}

// attend mixes values by how well keys match queries, head by head.
func (h *hostNet) attend(at string, u [][]float64) [][]float64 {
	each := h.Width / h.Heads
	var qkv, out [][]float64
	for _, v := range u {
		qkv = append(qkv, h.linear(at+"qkv", v))
	}
	for i := range u {
		mixed := make([]float64, h.Width)
		for head := range h.Heads {
			part := func(of, which int) []float64 { return qkv[of][which*h.Width+head*each:][:each] }
			logits := make([]float64, len(u))
			for j := range u {
				for k, q := range part(i, 0) {
					logits[j] += q * part(j, 1)[k] / math.Sqrt(float64(each))
				}
			}
			for j, logP := range logSoftmax(logits) {
				for k, v := range part(j, 2) {
					mixed[head*each+k] += math.Exp(logP) * v
				}
			}
		}
		out = append(out, mixed)
	}
	return out
}

func logSoftmax(x []float64) []float64 {
	total := 0.0
	for _, v := range x {
		total += math.Exp(v)
	}
	return apply(x, func(v float64) float64 { return v - math.Log(total) })
}

// head reads out; what it reads is divided by the width over 128.
func (h *hostNet) head(path string, x []float64) []float64 {
	y := apply(h.linear(path+"/hidden", h.norm(path+"/norm", x)), relu)
	return h.linear(path+"/readout", apply(y, func(v float64) float64 { return v * 128 / float64(h.Width) }))
}

// step says log P_F of a step, log P_B of undoing it, and the flow before it.
func (h *hostNet) step(words []int32, from, to []*tree, s closing) (logPF, logPB, flow float64) {
	x := h.encode(words, from)
	place := slices.IndexFunc(from, func(v *tree) bool { return v.last == s.gap })
	var join []float64
	for i, v := range x {
		flow += h.head(flowHead, v)[0]
		if i < len(x)-1 {
			join = append(join, h.head(positionHead, v)[0])
		}
	}
	logPF = logSoftmax(join)[place] + logSoftmax(h.head(labelHead, x[place]))[s.label]
	var split []float64
	chosen := 0
	for i, v := range h.encode(words, to) {
		if to[i].left != nil {
			if i == place {
				chosen = len(split)
			}
			split = append(split, h.head(splitHead, v)[0])
		}
	}
	return logPF, logSoftmax(split)[chosen], flow
}

// TestNetworkAgainstLoops compares the network with plain loops, with parameters that leave nothing at its initial
// zero; and sees that another placement of norms would be told from the right one.
func TestNetworkAgainstLoops(t *testing.T) {
	t.Parallel()
	seed := testkit.Seed(t)
	r := tinyRig(t, seed, []int32{0, 1, 2, 0, 1, 1}, []int32{2, 1}, []int32{2, 0, 1, 1})
	random := rng.New(seed, "parameters")
	r.change(t, func(_ string, x []float64) {
		for i := range x {
			x[i] += 0.1 * random.NormFloat64()
		}
	})
	paths := pathsOf(r, r.wake(t, seed, plain))
	type said struct {
		Scores gfn.Scores
		LogZ   *Node
	}
	type saidTensors struct {
		Scores scoreTensors
		LogZ   *tensors.Tensor
	}
	out := call[saidTensors](t, r, func(h History) said {
		s := r.Score(r.scope(), 200, Histories{h, r.n - 1})[0]
		return said{s.Scores, r.LogZ(r.scope(), Sentences{h.Leaves, h.Length})}
	}, pack(r.n, paths))
	logPF, logPB, flow := float64s(t, out.Scores.LogPF), float64s(t, out.Scores.LogPB), float64s(t, out.Scores.Flow)
	logZ := float64s(t, out.LogZ)

	host := &hostNet{Network: r.Network, value: map[string][]float64{}}
	for path, x := range valuesOf(r.store) {
		host.value[path] = float64s(t, x)
	}
	twin := *host
	twin.preNorm = true
	apart := 0.0
	for b, p := range paths {
		checkNumber(t, fmt.Sprintf("sentence %d: log Z", b), logZ[b], flow[b*(r.n-1)], 1e-10)
		states := forests(len(p.words), p.steps)
		for i, s := range p.steps {
			at := b*(r.n-1) + i
			f, back, z := host.step(p.words, states[i], states[i+1], s)
			what := fmt.Sprintf("sentence %d, step %d: ", b, i)
			checkNumber(t, what+"log P_F", logPF[at], f, 1e-10)
			checkNumber(t, what+"log P_B", logPB[at], back, 1e-10)
			checkNumber(t, what+"flow", flow[at], z, 1e-10)
			_, _, other := twin.step(p.words, states[i], states[i+1], s)
			apart = max(apart, math.Abs(other-z))
		}
	}
	if apart < 1e-2 {
		t.Errorf("another placement of norms changes flows by %g", apart)
	}
}
