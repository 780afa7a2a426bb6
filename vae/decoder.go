package vae

import (
	"fmt"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/nn"
	"github.com/gfnem/gfnem/optim"
)

// Norms of decoders. With batch normalisation p(x|z) has the running statistics wherever it is asked for: in rewards,
// dreams, likelihoods, decoding. So it is a function of z alone, whatever else is in a batch. Updates of the decoder,
// those of M-steps as those of a VQ-VAE, use the statistics of their batch, as published, and move the running ones.
const (
	normMethod = "method" // as published: batch for the VQ-VAE, none for the others
	normNone   = "none"
	normBatch  = "batch"
)

// changes are what else an update changes than what its gradients move: running statistics. A nil one means that there
// is no update, and that the running statistics are used.
type changes = []optim.Assignment

// decoderNorm is what comes after the convolutions of a decoder.
func (s Size) decoderNorm(published string, changes *changes) norm {
	switch {
	case s.norm(published) == normBatch:
		return batchNorm(changes)
	case s.Bias:
		return biased
	}
	return plain
}

// norm is that of the decoder of a method, for which one is published.
func (s Size) norm(published string) string {
	if s.Norm == "" || s.Norm == normMethod {
		return published
	}
	return s.Norm
}

// decoderName says in words how a decoder is made.
func (s Size) decoderName(published string) string {
	name := "plain"
	switch {
	case s.norm(published) == normBatch:
		name = "batch norm"
	case s.Bias:
		name = "biases"
	}
	if d := s.codeWidth(); d > 1 {
		name += fmt.Sprintf(", codes of %d numbers", d)
	}
	return name
}

// biased adds biases, which start at zero.
func biased(scope *model.Scope, y *Node) *Node {
	b := constant(scope, y.DType(), "bias", 0, y.Shape().Dim(-1)).NodeValue(y.Graph())
	return Add(y, ExpandLeftToRank(b, y.Rank()))
}

// enlarge is the decoder: numbers [B,h,w,D] become the logits of pixels [B,H,W,1].
func (s Size) enlarge(scope *model.Scope, e *Node, norm norm) *Node {
	in := scope.At("in")
	y := norm(in, nn.Conv{Channels: s.Channels, Window: nn.SquareWindow(1, 1, 0)}.Apply(in, e))
	y = residual(scope.At("residual 2"), residual(scope.At("residual 1"), y, norm), norm)
	windows := s.windows()
	for i := range windows {
		at := scope.At("up %d", i+1)
		y = norm(at, nn.ConvTranspose{Channels: s.Channels, Window: windows[len(windows)-1-i]}.Apply(at, y))
		y = nn.ReLU(y)
	}
	return nn.Conv{Channels: 1, Window: nn.SquareWindow(1, 1, 0), Bias: true}.Apply(scope.At("out"), y)
}

// codeDims are the axes of a table of codes: [K], or [K,D] where a code stands for several numbers.
func (s Size) codeDims() []int {
	if d := s.codeWidth(); d > 1 {
		return []int{s.Codes, d}
	}
	return []int{s.Codes}
}

// lookUp reads numbers of a table at codes z [B,n], as the decoder takes them: [B,h,w,D].
func (s Size) lookUp(table, z *Node) *Node {
	hot := OneHot(z, s.Codes, table.DType()) // [B,n,K]
	e := DotGeneral(hot, []int{2}, nil, table, []int{0}, nil)
	return s.onGrid(e)
}

// onGrid puts numbers of positions [B,n] or [B,n,D] on the grid, [B,h,w,D].
func (s Size) onGrid(e *Node) *Node {
	return Reshape(e, e.Shape().Dim(0), s.Rows, s.Columns, s.codeWidth())
}
