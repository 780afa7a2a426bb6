package engine_test

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/support/testutil"
)

// boxes are slices of a tensor, each at a place that indices give.
type boxes struct {
	dims      []int // of the indices: two axes of a batch, and the indices of one slice along a third
	idx       []int32
	vector    int   // which axis that is
	axes      []int // of the tensor, which the indices are of
	sizes     []int // of a slice
	collapsed []int // axes of size 1 that are dropped
	offset    []int // axes of the result that are those of a slice
	result    []int // its dimensions
}

func drawBoxes(r *rand.Rand, dims []int) (b boxes) {
	b.axes = r.Perm(len(dims))[:2]
	b.sizes = make([]int, len(dims))
	n, m := 1+r.IntN(4), 1+r.IntN(3)
	b.vector = r.IntN(3)
	b.dims = slices.Insert([]int{n, m}, b.vector, 2)
	b.idx = make([]int32, 2*n*m)
	for i := range b.idx {
		b.idx[i] = int32(r.IntN(9) - 2)
	}
	var slice []int
	for i, d := range dims {
		b.sizes[i] = 1 + r.IntN(d)
		if slices.Contains(b.axes, i) && r.IntN(2) == 0 {
			b.sizes[i] = 1
			b.collapsed = append(b.collapsed, i)
		} else {
			slice = append(slice, b.sizes[i])
		}
	}
	// The axes of the slices lie among those of the batch.
	b.offset = r.Perm(len(slice) + 2)[:len(slice)]
	slices.Sort(b.offset)
	batch := []int{n, m}
	for i := range len(slice) + 2 {
		if slices.Contains(b.offset, i) {
			b.result, slice = append(b.result, slice[0]), slice[1:]
		} else {
			b.result, batch = append(b.result, batch[0]), batch[1:]
		}
	}
	return b
}

// each calls f for every element of every slice, with its place in the tensor, moved by clamped and by plain indices, and
// in the result.
func (b boxes) each(dims []int, f func(clamped, plain, place []int)) {
	n, m := 0, 0
	for i, d := range b.result {
		if slices.Contains(b.offset, i) {
			continue
		} else if n == 0 {
			n = d
		} else {
			m = d
		}
	}
	index := func(i, j, k int) int {
		at := slices.Insert([]int{i, j}, b.vector, k)
		return int(b.idx[(at[0]*b.dims[1]+at[1])*b.dims[2]+at[2]])
	}
	for i := range n {
		for j := range m {
			for _, e := range allIndices(b.sizes) {
				clamped, plain := slices.Clone(e), slices.Clone(e)
				for k, axis := range b.axes {
					at := index(i, j, k)
					plain[axis] += at
					clamped[axis] += max(0, min(at, dims[axis]-b.sizes[axis]))
				}
				var slice []int
				for axis, k := range e {
					if !slices.Contains(b.collapsed, axis) {
						slice = append(slice, k)
					}
				}
				var place []int
				batch := []int{i, j}
				for axis := range b.result {
					if slices.Contains(b.offset, axis) {
						place, slice = append(place, slice[0]), slice[1:]
					} else {
						place, batch = append(place, batch[0]), batch[1:]
					}
				}
				f(clamped, plain, place)
			}
		}
	}
}

// allIndices lists the places of a tensor.
func allIndices(dims []int) [][]int {
	out := [][]int{{}}
	for _, d := range dims {
		var next [][]int
		for _, e := range out {
			for i := range d {
				next = append(next, append(slices.Clone(e), i))
			}
		}
		out = next
	}
	return out
}

func flatIndex(dims, at []int) (k int) {
	for i, d := range dims {
		k = k*d + at[i]
	}
	return k
}

// TestBoxes compares gathers and scatters of all layouts with loops over their definition: a gather moves a slice that
// does not fit, a scatter leaves it out.
func TestBoxes(t *testing.T) {
	const seed = 4
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	backend := open(t, "simd")
	for range 400 {
		dims := make([]int, 2+r.IntN(3))
		for i := range dims {
			dims[i] = 1 + r.IntN(5)
		}
		b := drawBoxes(r, dims)
		x := make([]int32, len(allIndices(dims)))
		for i := range x {
			x[i] = int32(r.IntN(1000))
		}
		up := make([]int32, len(allIndices(b.result)))
		for i := range up {
			up[i] = int32(r.IntN(1000))
		}
		gathered := make([]int32, len(up))
		sum, most, least := slices.Clone(x), slices.Clone(x), slices.Clone(x)
		b.each(dims, func(clamped, plain, place []int) {
			k := flatIndex(b.result, place)
			gathered[k] = x[flatIndex(dims, clamped)]
			if slices.Equal(clamped, plain) {
				at := flatIndex(dims, plain)
				sum[at], most[at], least[at] = sum[at]+up[k], max(most[at], up[k]), min(least[at], up[k])
			}
		})
		got, err := testutil.Exec(backend, nil, func(f compute.Function, _ []compute.Value) ([]compute.Value, error) {
			v, _ := f.Constant(x, dims...)
			at, _ := f.Constant(b.idx, b.dims...)
			u, err := f.Constant(up, b.result...)
			if err != nil {
				return nil, err
			}
			out := make([]compute.Value, 4)
			if out[0], err = f.Gather(v, at, b.vector, b.offset, b.collapsed, b.axes, b.sizes, false); err != nil {
				return nil, err
			}
			for i, scatter := range []func(x, indices, updates compute.Value, vector int, window, inserted, axes []int, sorted, unique bool) (
				compute.Value, error){f.ScatterSum, f.ScatterMax, f.ScatterMin} {
				if out[1+i], err = scatter(v, at, u, b.vector, b.offset, b.collapsed, b.axes, false, false); err != nil {
					return nil, err
				}
			}
			for i, y := range out {
				n := len(x)
				if i == 0 {
					n = len(up)
				}
				if out[i], err = f.Reshape(y, n); err != nil {
					return nil, err
				}
			}
			return out, nil
		})
		if err != nil {
			t.Fatalf("%+v of %v: %v", b, dims, err)
		}
		for i, want := range [][]int32{gathered, sum, most, least} {
			if !reflect.DeepEqual(got[i], want) {
				t.Fatalf("%s, %+v of %v: %v, want %v", []string{"gather", "sum", "max", "min"}[i], b, dims, got[i], want)
			}
		}
	}
}

// TestFarIndices checks indices at the ends of their types: a gather and a slice take the nearest place, a scatter none.
func TestFarIndices(t *testing.T) {
	x := []int32{10, 20, 30}
	for _, c := range []struct {
		index any
		near  int32
	}{
		{[]int64{math.MaxInt64}, 30}, {[]int64{math.MinInt64}, 10}, {[]uint64{math.MaxUint64}, 30}, {[]int8{-128}, 10},
		{[]uint32{math.MaxUint32}, 30}, {[]int32{math.MinInt32}, 10}, {[]uint8{255}, 30}, {[]int16{3}, 30}, {[]uint16{1 << 15}, 30},
	} {
		got, err := testutil.Exec(open(t, "simd"), []any{x, c.index, []int32{7}}, func(f compute.Function, p []compute.Value) ([]compute.Value, error) {
			list, err := f.Reshape(p[1], 1, 1)
			if err != nil {
				return nil, err
			}
			a, err := f.Gather(p[0], list, 1, []int{}, []int{0}, []int{0}, []int{1}, false)
			if err != nil {
				return nil, err
			}
			b, err := f.ScatterSum(p[0], list, p[2], 1, []int{}, []int{0}, []int{0}, false, false)
			if err != nil {
				return nil, err
			}
			at, err := f.Reshape(p[1])
			if err != nil {
				return nil, err
			}
			d, err := f.DynamicSlice(p[0], []compute.Value{at}, []int{1})
			return []compute.Value{a, b, d}, err
		})
		if err != nil {
			t.Fatalf("%T %v: %v", c.index, c.index, err)
		}
		if want := []any{[]int32{c.near}, x, []int32{c.near}}; !reflect.DeepEqual(got, want) {
			t.Errorf("%T %v: %v, want %v", c.index, c.index, got, want)
		}
	}
}
