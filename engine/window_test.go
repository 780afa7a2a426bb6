package engine_test

import (
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/support/testutil"
)

// TestWindows compares reductions of windows with loops over their definition: the operand is spread out by its
// dilation and padded with what changes nothing, then windows with gaps of their own move over it.
func TestWindows(t *testing.T) {
	const seed = 8
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	backend := open(t, "simd")
	done := 0
	for range 600 {
		rank := 1 + r.IntN(2)
		dims, window, strides, base, gaps := make([]int, rank), make([]int, rank), make([]int, rank), make([]int, rank), make([]int, rank)
		pads, out := make([][2]int, rank), make([]int, rank)
		fits := true
		for i := range rank {
			dims[i], window[i], strides[i] = 1+r.IntN(6), 1+r.IntN(4), 1+r.IntN(3)
			base[i], gaps[i] = 1+r.IntN(3), 1+r.IntN(3)
			pads[i] = [2]int{r.IntN(6), r.IntN(6)}
			whole := (dims[i]-1)*base[i] + 1 + pads[i][0] + pads[i][1]
			reach := (window[i]-1)*gaps[i] + 1
			fits = fits && whole >= reach
			out[i] = (whole-reach)/strides[i] + 1
		}
		if !fits {
			continue
		}
		done++
		x := make([]int32, len(allIndices(dims)))
		for i := range x {
			x[i] = int32(r.IntN(21) - 10)
		}
		kinds := []compute.ReduceOpType{compute.ReduceOpSum, compute.ReduceOpProduct, compute.ReduceOpMax, compute.ReduceOpMin}
		want := [4][]int32{}
		for _, at := range allIndices(out) {
			sum, product, most, least := int32(0), int32(1), int32(math.MinInt32), int32(math.MaxInt32)
			for _, k := range allIndices(window) {
				place, inside := make([]int, rank), true
				for i := range rank {
					p := at[i]*strides[i] + k[i]*gaps[i] - pads[i][0]
					inside = inside && p >= 0 && p%base[i] == 0 && p/base[i] < dims[i]
					place[i] = p / base[i]
				}
				if inside {
					v := x[flatIndex(dims, place)]
					sum, product, most, least = sum+v, product*v, max(most, v), min(least, v)
				}
			}
			for i, v := range []int32{sum, product, most, least} {
				want[i] = append(want[i], v)
			}
		}
		got, err := testutil.Exec(backend, nil, func(f compute.Function, _ []compute.Value) (list []compute.Value, err error) {
			v, err := f.Constant(x, dims...)
			if err != nil {
				return nil, err
			}
			for _, kind := range kinds {
				y, err := f.ReduceWindow(v, kind, window, strides, base, gaps, pads)
				if err != nil {
					return nil, err
				}
				if y, err = f.Reshape(y, len(allIndices(out))); err != nil {
					return nil, err
				}
				list = append(list, y)
			}
			return list, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for i := range kinds {
			if !reflect.DeepEqual(got[i], want[i]) {
				t.Fatalf("%s of %v, windows %v, strides %v, dilations %v and %v, padding %v: %v, want %v", kinds[i], dims, window, strides, base, gaps, pads, got[i], want[i])
			}
		}
	}
	if done < 300 {
		t.Errorf("only %d windows were compared", done)
	}
}

// TestSelections compares the derivative of a pooling with a loop: each element of a source goes to the first extreme of
// its window, and what several windows give is added.
func TestSelections(t *testing.T) {
	const seed = 9
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	backend := open(t, "simd")
	for range 300 {
		rank := 1 + r.IntN(2)
		dims, window, strides, out := make([]int, rank), make([]int, rank), make([]int, rank), make([]int, rank)
		pads := make([][2]int, rank)
		for i := range rank {
			dims[i] = 2 + r.IntN(5)
			window[i], strides[i] = 1+r.IntN(min(3, dims[i])), 1+r.IntN(3)
			pads[i] = [2]int{r.IntN(window[i]), r.IntN(window[i])}
			out[i] = (dims[i]+pads[i][0]+pads[i][1]-window[i])/strides[i] + 1
		}
		x, source := make([]int32, len(allIndices(dims))), make([]int32, len(allIndices(out)))
		for i := range x {
			x[i] = int32(r.IntN(6)) // with ties
		}
		for i := range source {
			source[i] = int32(r.IntN(100))
		}
		most, least := make([]int32, len(x)), make([]int32, len(x))
		for k, at := range allIndices(out) {
			high, low := -1, -1
			for _, w := range allIndices(window) {
				place, inside := make([]int, rank), true
				for i := range rank {
					place[i] = at[i]*strides[i] + w[i] - pads[i][0]
					inside = inside && place[i] >= 0 && place[i] < dims[i]
				}
				if !inside {
					continue
				}
				p := flatIndex(dims, place)
				if high < 0 || x[p] > x[high] {
					high = p
				}
				if low < 0 || x[p] < x[low] {
					low = p
				}
			}
			if high >= 0 {
				most[high] += source[k]
				least[low] += source[k]
			}
		}
		got, err := testutil.Exec(backend, []any{x, source}, func(f compute.Function, p []compute.Value) (list []compute.Value, err error) {
			v, err := f.Reshape(p[0], dims...)
			if err != nil {
				return nil, err
			}
			s, err := f.Reshape(p[1], out...)
			if err != nil {
				return nil, err
			}
			for _, op := range []func(x, source compute.Value, window, strides []int, paddings [][2]int) (compute.Value, error){
				f.SelectAndScatterMax, f.SelectAndScatterMin} {
				y, err := op(v, s, window, strides, pads)
				if err != nil {
					return nil, err
				}
				if y, err = f.Reshape(y, len(x)); err != nil {
					return nil, err
				}
				list = append(list, y)
			}
			return list, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, []any{most, least}) {
			t.Fatalf("%v, windows %v, strides %v, padding %v: %v, want %v and %v", dims, window, strides, pads, got, most, least)
		}
	}
}
