package vae

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/internal/testkit"
	"github.com/gfnem/gfnem/rng"
)

// p(z) sums to one over all grids.
func TestPriorNormalised(t *testing.T) {
	b := open(t)
	for _, codes := range []int{2, 3} {
		p := PixelCNN{tiny(codes)}
		store := newStore(5)
		f := func(_ *model.Scope, z *Node) *Node { return p.LogProb(store.Scope("/p"), z) }
		eval(t, b, store, f, p.latents())
		sharpen(t, store, "/p", 2)
		near(t, fmt.Sprintf("%d codes: sum of p(z)", codes), sum(exps(eval(t, b, store, f, p.latents()))), 1, 1e-12)
	}
}

// paper4x4 is a grid of the published size, with fewer channels.
func paper4x4() PixelCNN {
	return PixelCNN{Size{Height: 4, Width: 4, Rows: 4, Columns: 4, Codes: 3, Channels: 6, dtype: dtypes.Float64}}
}

// first is logits, and the bias of their layer.
type first[T any] struct{ Logits, Bias T }

// Position (r,c) depends on (r',c') if r' = r and c' < c, or r' < r and c' <= c + (r-r'): 109 of the 120 pairs of earlier
// positions on a 4x4 grid, and none of later ones. At the first position there is nothing to see: its logits are the bias.
func TestMasks(t *testing.T) {
	b := open(t)
	p := paper4x4()
	store := newStore(3)
	n := p.Positions()
	r := rand.New(rand.NewPCG(testkit.Seed(t), 0))
	// Row 0 is a grid; row 1+t differs from it at position t. Several grids, since a rectifier may hide a dependence.
	seen := make([][]bool, n)
	for i := range seen {
		seen[i] = make([]bool, n)
	}
	f := func(z *Node) first[*Node] {
		scope := store.Scope("/p")
		logits := p.Logits(scope, z)
		return first[*Node]{logits, scope.At("out").GetVariable("bias").NodeValue(z.Graph())}
	}
	for range 20 {
		grid := make([]int32, n)
		for i := range grid {
			grid[i] = int32(r.IntN(p.Codes))
		}
		rows := append([]int32{}, grid...)
		for at := range n {
			changed := append([]int32{}, grid...)
			changed[at] = (changed[at] + 1 + int32(r.IntN(p.Codes-1))) % int32(p.Codes)
			rows = append(rows, changed...)
		}
		out := call[first[*tensors.Tensor]](t, b, store, f, tensors.FromFlatDataAndDimensions(rows, n+1, n))
		logits, bias := floats(t, out.Logits), floats(t, out.Bias)
		for k := range p.Codes {
			near(t, "a logit of the first position", logits[k], bias[k], 0)
		}
		for at := range n {
			for to := range n {
				for k := range p.Codes {
					if logits[to*p.Codes+k] != logits[((1+at)*n+to)*p.Codes+k] {
						seen[to][at] = true
					}
				}
			}
		}
	}
	count := 0
	for to := range n {
		for from := range n {
			row, column, r2, c2 := to/4, to%4, from/4, from%4
			want := r2 == row && c2 < column || r2 < row && c2 <= column+row-r2
			if seen[to][from] != want {
				t.Errorf("(%d,%d) sees (%d,%d): %v, want %v", row, column, r2, c2, seen[to][from], want)
			}
			if want {
				count++
			}
		}
	}
	if count != 109 {
		t.Errorf("%d pairs, want 109", count)
	}
}

// The two rows that a masked convolution reads give what a 3x3 one with zeroed weights gives, as published.
func TestMaskedConvolution(t *testing.T) {
	b := open(t)
	p := paper4x4()
	store := newStore(9)
	x := make([]float64, 2*16*6)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range x {
		x[i] = r.NormFloat64()
	}
	for layer := range 2 {
		in := p.Channels
		if layer == 0 {
			in = p.Codes
		}
		input := tensors.FromFlatDataAndDimensions(x[:2*16*in], 2, 4, 4, in)
		got := eval(t, b, store, func(_ *model.Scope, x *Node) *Node { return p.masked(store.Scope("/p"), x, layer) }, input)
		w := tensors.MustCopyFlatData[float64](store.GetVariable(fmt.Sprintf("/p/masked %d/weights", layer+1)).MustValue())
		masks := []string{"111100000", "111110000"}
		for i := range 2 * 16 * p.Channels {
			image, at, o := i/(16*p.Channels), i/p.Channels%16, i%p.Channels
			want := 0.0
			for k := range 9 {
				row, column := at/4+k/3-1, at%4+k%3-1
				if masks[layer][k] == '0' || row < 0 || row > 3 || column < 0 || column > 3 {
					continue
				}
				for c := range in {
					want += x[((image*4+row)*4+column)*in+c] * w[(k*in+c)*p.Channels+o]
				}
			}
			near(t, fmt.Sprintf("layer %d, entry %d", layer, i), got[i], want, 1e-12)
		}
	}
}

// Ancestral samples, made position by position, have the probabilities of the whole network.
func TestPriorSamples(t *testing.T) {
	seed := testkit.Seed(t)
	b := open(t)
	p := PixelCNN{tiny(3)}
	store := newStore(seed)
	logProb := func() []float64 {
		return eval(t, b, store, func(_ *model.Scope, z *Node) *Node { return p.LogProb(store.Scope("/p"), z) }, p.latents())
	}
	logProb()
	sharpen(t, store, "/p", 3)
	probs := exps(logProb())
	const rows = 40_000
	codes := eval(t, b, store, func(_ *model.Scope, key *Node) *Node {
		return p.Sample(store.Scope("/p"), rng.In(key), rows)
	}, rng.Key(seed, "prior"))
	counts := make([]float64, len(probs))
	for i := range rows {
		number := 0
		for _, c := range codes[i*4 : i*4+4] {
			number = number*p.Codes + int(c)
		}
		counts[number]++
	}
	limit := quantile(len(probs) - 1)
	if v := chiSquare(counts, probs); !(v < limit) {
		t.Errorf("chi-square %g, at most %g", v, limit)
	}
	even := make([]float64, len(probs))
	for i := range even {
		even[i] = 0.9*probs[i] + 0.1/float64(len(probs))
	}
	if v := chiSquare(counts, even); v < limit {
		t.Errorf("samples pass for those of another prior: chi-square %g, at most %g", v, limit)
	}
}

// On a large grid the position-by-position network is the whole one: drawn from logits so sharp that nothing is left to
// chance, a sample is where every code is the whole network's choice.
func TestPriorSamplesLarge(t *testing.T) {
	b := open(t)
	p := paper4x4()
	store := newStore(11)
	codes := tensors.FromFlatDataAndDimensions(make([]int32, 16), 1, 16)
	f := func(_ *model.Scope, z *Node) *Node { return p.Logits(store.Scope("/p"), z) }
	eval(t, b, store, f, codes)
	sharpen(t, store, "/p", 40)
	z := eval(t, b, store, func(_ *model.Scope, key *Node) *Node {
		return p.Sample(store.Scope("/p"), rng.In(key), 3)
	}, rng.Key(1, "prior"))
	tokens := make([]int32, len(z))
	for i := range z {
		tokens[i] = int32(z[i])
	}
	logits := eval(t, b, store, f, tensors.FromFlatDataAndDimensions(tokens, 3, 16))
	decided := 0
	for i := range z {
		row := logits[i*p.Codes : (i+1)*p.Codes]
		top, gap := 0, math.Inf(1)
		for k := range row {
			if row[k] > row[top] {
				top = k
			}
		}
		for k := range row {
			if k != top {
				gap = min(gap, row[top]-row[k])
			}
		}
		if gap > 40 {
			decided++
			if top != int(z[i]) {
				t.Errorf("position %d of sample %d is %g, the whole network says %d", i%16, i/16, z[i], top)
			}
		}
	}
	if decided < 30 {
		t.Errorf("%d of %d codes are left to chance: the test shows too little", len(z)-decided, len(z))
	}
}
