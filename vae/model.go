package vae

import (
	"math"

	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/lvm"
	"github.com/gfnem/gfnem/nn"
	"github.com/gfnem/gfnem/rng"
)

// Decoder says how latents z [B,n] become logits of pixels, [B,H,W,1].
type Decoder interface {
	Logits(scope *model.Scope, z *Node) *Node
}

// Model is p(z) p(x|z).
type Model struct {
	Size
	// Decoder of the latents; nil means the one that GFlowNet-EM trains, a dictionary of numbers for each code and a
	// network.
	Decoder Decoder
	// Learned makes the prior a PixelCNN; otherwise it is uniform.
	Learned bool
}

var _ lvm.Model = Model{}

// The scopes of the model's parts, below em.Theta.
const (
	decoderScope    = "decoder"
	dictionaryScope = "dictionary"
	priorScope      = "prior"
)

// Logits returns those of pixels, [B,H,W,1].
func (m Model) Logits(scope *model.Scope, z *Node) *Node {
	if m.Decoder != nil {
		return m.Decoder.Logits(scope, z)
	}
	return m.decode(scope, z, nil)
}

// decode is the decoder that GFlowNet-EM trains, in an update if there are changes.
func (m Model) decode(scope *model.Scope, z *Node, changes *changes) *Node {
	e := nn.Normal(scope.At(dictionaryScope), z.Graph(), m.float(), "embedding", 1, m.codeDims()...)
	return m.enlarge(scope.At(decoderScope), m.lookUp(e, z), m.decoderNorm(normNone, changes))
}

// LogLikelihood is log p(x|z), [B].
func (m Model) LogLikelihood(scope *model.Scope, x gfn.Batch, z gfn.State) *Node {
	return logBernoulli(m.Logits(scope, z[0]), x[0])
}

// LogPrior is log p(z), [B].
func (m Model) LogPrior(scope *model.Scope, z gfn.State) *Node {
	if m.Learned {
		return m.prior().LogProb(scope.At(priorScope), z[0])
	}
	uniform := Scalar(z[0].Graph(), m.float(), -m.logLatents())
	return BroadcastToDims(uniform, z[0].Shape().Dim(0))
}

func (m Model) prior() PixelCNN { return PixelCNN{m.Size} }

// logLatents is n log K, the logarithm of the number of latents.
func (s Size) logLatents() float64 { return float64(s.Positions()) * math.Log(float64(s.Codes)) }

// LogJoint implements lvm.Model.
func (m Model) LogJoint(scope *model.Scope, x gfn.Batch, z gfn.State) *Node {
	return Add(m.LogLikelihood(scope, x, z), m.LogPrior(scope, z))
}

// Reward is the log-reward of the E-step, [B]: the log-joint without the constant of a uniform prior, as published.
func (m Model) Reward(scope *model.Scope, x gfn.Batch, z gfn.State) *Node {
	if m.Learned {
		return m.LogJoint(scope, x, z)
	}
	return m.LogLikelihood(scope, x, z)
}

// Sample implements lvm.Model.
func (m Model) Sample(scope *model.Scope, r *rng.Stream, count int) (gfn.Batch, gfn.State) {
	z := m.SamplePrior(scope, r, count)
	mean := Sigmoid(m.Logits(scope, z))
	return gfn.Batch{ConvertDType(r.Bernoulli(mean), m.float())}, gfn.State{z}
}

// SamplePrior draws latents, [count,n].
func (m Model) SamplePrior(scope *model.Scope, r *rng.Stream, count int) *Node {
	if m.Learned {
		return m.prior().Sample(scope.At(priorScope), r, count)
	}
	u := r.Uniform(dtypes.Float32, count, m.Positions())
	z := ConvertDType(Floor(MulScalar(u, m.Codes)), dtypes.Int32)
	return Min(z, Scalar(u.Graph(), dtypes.Int32, m.Codes-1)) // u*K may round up to K
}
