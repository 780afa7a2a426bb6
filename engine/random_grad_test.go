package engine_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
)

// The gradients of random functions, through GoMLX's differentiation. How far two backends may be apart is not tried
// out but derived: every value carries a bound of its magnitude and of its error, in units of the rounding error u of
// its type, and so does every derivative. Both backends are within the bound of the exact result if they round as they
// should: 1 u for arithmetic, a few for functions, n u times the sum of magnitudes for a sum of n terms in any order.

// value is a tensor of a random function.
type value struct {
	name   string
	dims   []int
	ins    []*value
	build  func(in []*Node) *Node
	mag    float64 // bound of |element|
	err    float64 // bound of its error, in u
	frac   int     // it is a multiple of 2^-frac, without error; -1 if it is not
	onward []influence

	adjMag, adjErr float64 // the same bounds for the derivative of the loss by an element
	node           *Node
}

// influence says how a result depends on an operand.
type influence struct {
	slope float64 // bound of |d result / d operand|, elementwise
	err   float64 // bound of the error of that derivative as computed, in u
	count float64 // results that depend on one element of the operand
}

func (v *value) exact() bool { return v.frac >= 0 }

func (v *value) size() float64 {
	n := 1.0
	for _, d := range v.dims {
		n *= float64(d)
	}
	return n
}

// drawer makes up a function.
type drawer struct {
	r      *rand.Rand
	params []*value
	all    []*value
	long   bool // first axes are long enough for several blocks and threads
}

// allowed bounds what a function may come to: beyond it, a comparison would say little. With the error below this many
// u, twice that is below 1e-12 of the bound of the magnitude in float64; errors of derivatives are capped at that when compared.
const (
	maxMag = 200
	maxErr = 4000
)

// add takes a result into the function if its bounds are good enough.
func (d *drawer) add(v *value) {
	mag, size := float64(maxMag), 6000.0
	if d.long {
		mag, size = 50*maxMag, 60000
	}
	if v.mag > mag || v.err > maxErr*max(v.mag, 1e-3) || v.size() > size {
		return
	}
	if v.frac >= 0 && math.Ldexp(v.mag, v.frac) >= 1<<24 {
		v.frac = -1 // too many digits for float32
		v.err += v.mag
	}
	if v.frac >= 0 {
		v.err = 0
	}
	d.all = append(d.all, v)
}

// draw makes up a function of some parameters, quarters from -1.5 to 1.5.
func draw(seed uint64) *drawer {
	d := &drawer{r: rand.New(rand.NewPCG(seed, 11)), long: seed%10 == 0}
	for range 1 + d.r.IntN(3) {
		v := &value{name: "parameter", dims: d.dims(), mag: 1.5, frac: 2}
		d.params, d.all = append(d.params, v), append(d.all, v)
	}
	for range 3 + d.r.IntN(14) {
		d.grow()
	}
	return d
}

func (d *drawer) dims() []int {
	dims := make([]int, d.r.IntN(4))
	for i := range dims {
		dims[i] = pickOne(d.r, []int{1, 2, 3, 4, 6, 9})
	}
	if len(dims) > 0 && d.long {
		dims[0] = 1500
	} else if len(dims) > 1 && d.r.IntN(8) == 0 {
		dims[0] = 150
	}
	return dims
}

// quarters lists numbers as the parameters have them.
func quarters(seed uint64, dtype dtypes.DType, dims []int) *tensors.Tensor {
	r := rand.New(rand.NewPCG(seed, 5))
	n := 1
	for _, d := range dims {
		n *= d
	}
	wide, narrow := make([]float64, n), make([]float32, n)
	for i := range wide {
		wide[i] = float64(r.IntN(13)-6) / 4
		narrow[i] = float32(wide[i])
	}
	if dtype == dtypes.Float64 {
		return tensors.FromFlatDataAndDimensions(wide, dims...)
	}
	return tensors.FromFlatDataAndDimensions(narrow, dims...)
}

// backward bounds the derivatives of the loss: the sum of some values, weighted by quarters.
func (d *drawer) backward(out []*value) {
	for _, v := range d.all {
		v.adjMag, v.adjErr = 0, 0
	}
	for _, v := range out {
		v.adjMag += 1.5
		v.adjErr += v.adjMag
	}
	for i := len(d.all) - 1; i >= 0; i-- {
		y := d.all[i]
		for k, x := range y.ins {
			f := y.onward[k]
			mag := f.count * y.adjMag * f.slope
			err := f.count*(y.adjErr*f.slope+y.adjMag*f.err+8*y.adjMag*f.slope) + (f.count-1)*mag
			x.adjMag += mag
			x.adjErr += err + x.adjMag
		}
	}
}

// eval builds the function, the loss and its gradient on a backend.
func (d *drawer) eval(b compute.Backend, seed uint64, dtype dtypes.DType, out []*value) ([][]float64, error) {
	var in []any
	for i, p := range d.params {
		in = append(in, quarters(seed+uint64(i), dtype, p.dims))
	}
	var results [][]float64
	list, err := ExecOnceN(b, func(in []*Node) []*Node {
		g := in[0].Graph()
		for i, p := range d.params {
			p.node = in[i]
		}
		for _, v := range d.all[len(d.params):] {
			var args []*Node
			for _, x := range v.ins {
				args = append(args, x.node)
			}
			if v.node = v.build(args); fmt.Sprint(v.node.Shape().Dimensions) != fmt.Sprint(v.dims) {
				panic(fmt.Errorf("%s has shape %s, not %v", v.name, v.node.Shape(), v.dims))
			}
		}
		var results []*Node
		loss := ScalarZero(g, dtype)
		for i, v := range out {
			results = append(results, v.node)
			weight := Const(g, quarters(seed+100+uint64(i), dtype, v.dims))
			loss = Add(loss, ReduceAllSum(Mul(v.node, weight)))
		}
		return append(results, Gradient(loss, in...)...)
	}, in...)
	if err != nil {
		return nil, err
	}
	for _, t := range list {
		if dtype == dtypes.Float64 {
			results = append(results, tensors.MustCopyFlatData[float64](t))
			continue
		}
		var wide []float64
		for _, x := range tensors.MustCopyFlatData[float32](t) {
			wide = append(wide, float64(x))
		}
		results = append(results, wide)
	}
	return results, nil
}

// apart returns by how much two results differ, as a part of what their bounds allow, and where most.
func apart(want, got []float64, err float64, dtype dtypes.DType) (worst float64, at int) {
	u := 0x1p-24
	if dtype == dtypes.Float64 {
		u = 0x1p-53
	}
	if len(want) != len(got) {
		return math.Inf(1), 0
	}
	for i := range want {
		part := math.Abs(want[i]-got[i]) / (2*err*u + 0x1p-140)
		if !(part <= worst) { // NaN too
			worst, at = part, i
		}
	}
	return worst, at
}

// outputs draws what the loss is a sum of.
func (d *drawer) outputs() (out []*value) {
	for range 1 + d.r.IntN(2) {
		out = append(out, d.all[len(d.all)-1-d.r.IntN(min(3, len(d.all)))])
	}
	return out
}

// TestRandomGradients compares random functions and their gradients with the go backend. GRADIENT_GRAPHS is how many,
// GRADIENT_SEED the first of them.
func TestRandomGradients(t *testing.T) {
	n, seed := 2000, uint64(1)
	if testing.Short() {
		n = 100
	}
	if k, err := strconv.Atoi(os.Getenv("GRADIENT_GRAPHS")); err == nil {
		n = k
	}
	if s, err := strconv.ParseUint(os.Getenv("GRADIENT_SEED"), 10, 64); err == nil {
		seed = s
	}
	t.Logf("%d functions from seed %d (GRADIENT_GRAPHS, GRADIENT_SEED)", n, seed)
	backends := []compute.Backend{open(t, oracle), open(t, "simd"), open(t, "simd:nofusion")}
	count := gradientCount{ops: map[string]int{}}
	for k := range n {
		count.check(t, backends, seed+uint64(k))
		if t.Failed() {
			break
		}
	}
	t.Logf("%d compared, %d refused by the oracle, the largest difference %.2g of what is allowed", count.compared, count.refused, count.worst)
	if count.refused*5 > n {
		t.Errorf("the oracle refused %d of %d functions: %v", count.refused, n, count.last)
	}
	if n >= 2000 {
		for _, name := range gradientOps {
			if count.ops[name] == 0 {
				t.Errorf("no function with %s was compared", name)
			}
		}
	}
}

// gradientCount sums up what was compared.
type gradientCount struct {
	compared, refused int
	worst             float64
	last              error
	ops               map[string]int
}

func (c *gradientCount) check(t *testing.T, backends []compute.Backend, seed uint64) {
	d := draw(seed)
	dtype := dtypes.Float64
	if seed%3 == 0 {
		dtype = dtypes.Float32
	}
	out := d.outputs()
	d.backward(out)
	bounds := append([]*value{}, out...)
	want, err := d.eval(backends[0], seed, dtype, out)
	if err != nil {
		c.refused, c.last = c.refused+1, err
		return
	}
	c.compared++
	for _, v := range d.all {
		c.ops[v.name]++
	}
	bounds = append(bounds, d.params...)
	for _, b := range backends[1:] {
		got, err := d.eval(b, seed, dtype, out)
		if err != nil {
			t.Errorf("seed %d: %+v\n%s", seed, err, d)
			return
		}
		for i, v := range bounds {
			limit := v.err
			if i >= len(out) {
				limit = v.adjErr
				if dtype == dtypes.Float64 { // 1e-12 of the bound of the magnitude: tighter than what is derived, rarely
					limit = min(limit, 4500*v.adjMag)
				}
			}
			worst, at := apart(want[i], got[i], limit, dtype)
			c.worst = max(c.worst, worst)
			if !(worst <= 1) {
				t.Errorf("seed %d: %s: output %d (%d values, then gradients), element %d: want %v, got %v, allowed %g u\n%s", seed, dtype,
					i, len(out), at, want[i][at], got[i][at], 2*limit, d)
				return
			}
		}
	}
}

// String lists the function.
func (d *drawer) String() (s string) {
	at := map[*value]int{}
	for i, v := range d.all {
		at[v] = i
		s += fmt.Sprintf("#%d %s", i, v.name)
		for _, x := range v.ins {
			s += fmt.Sprintf(" #%d", at[x])
		}
		s += fmt.Sprintf(" %v, magnitude %.3g, error %.3g, derivative %.3g, error %.3g\n", v.dims, v.mag, v.err, v.adjMag, v.adjErr)
	}
	return s
}

// TestGradientBounds checks that the bounds are worth something: a loss whose weights differ by a thousandth, and
// results that are the same but for their order, are told apart in float64.
func TestGradientBounds(t *testing.T) {
	b := open(t, "simd")
	missed, swapped, total := 0, 0, 0
	for seed := uint64(1); seed <= 70; seed++ {
		d := draw(seed)
		if d.long {
			continue // their bounds are wide: a sum may be as large as the number of its terms
		}
		out := d.outputs()
		d.backward(out)
		got, err := d.eval(b, seed, dtypes.Float64, out)
		if err != nil {
			t.Fatal(err)
		}
		for i, p := range d.params {
			g := got[len(out)+i]
			wrong, turned, flat, zero := make([]float64, len(g)), make([]float64, len(g)), true, true
			for j, x := range g {
				wrong[j], turned[len(g)-1-j] = x*1.001, x
				flat, zero = flat && g[len(g)-1-j] == x, zero && x == 0
			}
			if zero {
				continue
			}
			total++
			if worst, _ := apart(g, wrong, p.adjErr, dtypes.Float64); worst <= 1 {
				missed++
			}
			if worst, _ := apart(g, turned, p.adjErr, dtypes.Float64); !flat && worst <= 1 {
				swapped++
			}
		}
	}
	if total < 60 || missed > 0 || swapped > 0 {
		t.Errorf("of %d gradients, %d that are a thousandth off and %d that are turned around pass", total, missed, swapped)
	}
}
