package engine_test

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
)

// slowConv is the definition of a convolution, one product at a time.
func slowConv(x, k []float64, in, ker, out []int, ax compute.ConvolveAxesConfig, strides []int, pads [][2]int, dil, kdil []int,
	channelGroups, batchGroups int) []float64 {
	y := make([]float64, shapes.Make(dtypes.Float64, out...).Size())
	at := func(dims, idx []int) int {
		pos := 0
		for i, d := range dims {
			pos = pos*d + idx[i]
		}
		return pos
	}
	each := func(dims []int, f func(idx []int)) {
		idx := make([]int, len(dims))
		for {
			f(idx)
			d := len(dims) - 1
			for ; d >= 0; d-- {
				if idx[d]++; idx[d] < dims[d] {
					break
				}
				idx[d] = 0
			}
			if d < 0 {
				return
			}
		}
	}
	each(out, func(o []int) {
		each(ker, func(w []int) {
			i := make([]int, len(in))
			oc := o[ax.OutputChannels]
			if w[ax.KernelOutputChannels] != oc {
				return
			}
			perChannel, perBatch := out[ax.OutputChannels]/channelGroups, out[ax.OutputChannels]/batchGroups
			i[ax.InputBatch] = oc/perBatch*(in[ax.InputBatch]/batchGroups) + o[ax.OutputBatch]
			i[ax.InputChannels] = oc/perChannel*ker[ax.KernelInputChannels] + w[ax.KernelInputChannels]
			for d := range strides {
				p := o[ax.OutputSpatial[d]]*strides[d] - pads[d][0] + w[ax.KernelSpatial[d]]*kdil[d]
				if p < 0 || p%dil[d] != 0 || p/dil[d] >= in[ax.InputSpatial[d]] {
					return
				}
				i[ax.InputSpatial[d]] = p / dil[d]
			}
			y[at(out, o)] += x[at(in, i)] * k[at(ker, w)]
		})
	})
	return y
}

// floats converts flat data.
func floats(flat any) []float64 {
	v := reflect.ValueOf(flat)
	out := make([]float64, v.Len())
	for i := range out {
		out[i] = v.Index(i).Convert(reflect.TypeFor[float64]()).Float()
	}
	return out
}

// TestConvolutions compares random convolutions of whole numbers with their definition: any layout, strides, padding,
// dilations and groups.
func TestConvolutions(t *testing.T) {
	n := 400
	if testing.Short() {
		n = 100
	}
	done := 0
	for seed := range uint64(n) {
		r := rand.New(rand.NewPCG(seed, 11))
		g := &grower{t: t, r: r}
		dtype := pickOne(r, []dtypes.DType{dtypes.Float32, dtypes.Float32, dtypes.Float64, dtypes.Int32})
		space := 1 + r.IntN(2)
		rank := space + 2
		layout := func() (a, b int, rest []int) {
			p := r.Perm(rank)
			switch r.IntN(3) { // often the usual ones
			case 0:
				for i := range p {
					p[i] = i
				}
			case 1:
				p[0], p[1] = 0, rank-1
				for i := 2; i < rank; i++ {
					p[i] = i - 1
				}
			}
			return p[0], p[1], p[2:]
		}
		var ax compute.ConvolveAxesConfig
		ax.InputBatch, ax.InputChannels, ax.InputSpatial = layout()
		ax.KernelInputChannels, ax.KernelOutputChannels, ax.KernelSpatial = layout()
		ax.OutputBatch, ax.OutputChannels, ax.OutputSpatial = layout()
		channelGroups, batchGroups := 1, 1
		batch, inC, outC := 1+r.IntN(3), 1+r.IntN(5), 1+r.IntN(5)
		kernelIn := inC
		switch r.IntN(4) {
		case 0:
			channelGroups = 1 + r.IntN(3)
			inC, outC = kernelIn*channelGroups, outC*channelGroups
		case 1:
			batchGroups = 1 + r.IntN(3)
			batch, outC = batch*batchGroups, outC*batchGroups
		}
		in, ker := make([]int, rank), make([]int, rank)
		in[ax.InputBatch], in[ax.InputChannels] = batch, inC
		ker[ax.KernelInputChannels], ker[ax.KernelOutputChannels] = kernelIn, outC
		strides, dil, kdil := make([]int, space), make([]int, space), make([]int, space)
		pads := make([][2]int, space)
		for i := range space {
			in[ax.InputSpatial[i]], ker[ax.KernelSpatial[i]] = 3+r.IntN(7), 1+r.IntN(3)
			strides[i], dil[i], kdil[i] = 1+r.IntN(2), 1+r.IntN(2), 1+r.IntN(2)
			pads[i] = [2]int{r.IntN(3), r.IntN(3)}
		}
		si, sk := shapes.Make(dtype, in...), shapes.Make(dtype, ker...)
		data := []any{g.data(si), g.data(sk)}
		b := open(t, "simd")
		builder := b.Builder("convolution")
		f := builder.Main()
		x, _ := f.Parameter("x", si, nil)
		k, _ := f.Parameter("k", sk, nil)
		y, err := f.ConvGeneral(x, k, ax, strides, pads, dil, kdil, channelGroups, batchGroups)
		if err != nil {
			continue // the output would be empty
		}
		shape, _ := f.Shape(y)
		if err := f.Return([]compute.Value{y}, nil); err != nil {
			t.Fatal(err)
		}
		e, err := builder.Compile()
		if err != nil {
			t.Fatal(err)
		}
		bx, _ := b.BufferFromFlatData(0, data[0], si)
		bk, _ := b.BufferFromFlatData(0, data[1], sk)
		out, err := e.Execute([]compute.Buffer{bx, bk}, nil, 0)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		flat, _ := out[0].Data()
		done++
		want := slowConv(floats(data[0]), floats(data[1]), in, ker, shape.Dimensions, ax, strides, pads, dil, kdil, channelGroups, batchGroups)
		if got := floats(flat); !slices.Equal(want, got) {
			t.Fatalf("seed %d: %s * %s -> %s, %+v, strides %v, paddings %v, dilations %v %v, groups %d %d:\nwant %v\ngot  %v", seed,
				si, sk, shape, ax, strides, pads, dil, kdil, channelGroups, batchGroups, want, got)
		}
	}
	if done < n/2 {
		t.Errorf("only %d of %d convolutions ran", done, n)
	}
}
