package engine_test

import (
	"math"
	"slices"

	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/layers/activation"
)

// smooth is a function of one element.
type smooth struct {
	name        string
	f           func(x *Node) *Node
	mag, slope  func(m float64) float64 // bounds for |x| <= m
	curve       func(m float64) float64 // bound of the second derivative
	most        float64                 // greatest m it is for
	frac, digit int                     // result is exact: frac of x times frac, plus digit; frac is 0 if it is not
}

func always(v float64) func(float64) float64 { return func(float64) float64 { return v } }

// plusSquare is 1 + x^2.
func plusSquare(x *Node) *Node { return OnePlus(Square(x)) }

var smooths = []smooth{
	{name: "tanh", f: Tanh, mag: always(1), slope: always(1), curve: always(1), most: maxMag},
	{name: "wide tanh", f: func(x *Node) *Node { return ConvertDType(Tanh(ConvertDType(x, dtypes.Float64)), x.DType()) }, mag: always(1),
		slope: always(1), curve: always(1), most: maxMag},
	{name: "logistic", f: Sigmoid, mag: always(1), slope: always(0.25), curve: always(0.1), most: maxMag},
	{name: "sin", f: Sin, mag: always(1), slope: always(1), curve: always(1), most: 30},
	{name: "cos", f: Cos, mag: always(1), slope: always(1), curve: always(1), most: 30},
	{name: "erf", f: Erf, mag: always(1), slope: always(1.13), curve: always(1), most: 30},
	{name: "gelu", f: activation.Gelu, mag: func(m float64) float64 { return m + 1 }, slope: always(1.2), curve: always(1), most: 30},
	{name: "exp", f: Exp, mag: math.Exp, slope: math.Exp, curve: math.Exp, most: 3},
	{name: "log", f: func(x *Node) *Node { return Log(plusSquare(x)) }, mag: func(m float64) float64 { return 1 + math.Log1p(m*m) },
		slope: always(1), curve: always(2), most: maxMag},
	{name: "log1p", f: func(x *Node) *Node { return Log1P(Square(x)) }, mag: func(m float64) float64 { return 1 + math.Log1p(m*m) },
		slope: always(1), curve: always(2), most: maxMag},
	{name: "sqrt", f: func(x *Node) *Node { return Sqrt(plusSquare(x)) }, mag: func(m float64) float64 { return 1 + m },
		slope: always(1), curve: always(1), most: maxMag},
	{name: "inverse", f: func(x *Node) *Node { return Inverse(plusSquare(x)) }, mag: always(1), slope: always(1), curve: always(2), most: maxMag},
	{name: "pow", f: func(x *Node) *Node { return PowScalar(plusSquare(x), -0.5) }, mag: always(1), slope: always(1), curve: always(1), most: 30},
	{name: "neg", f: Neg, mag: func(m float64) float64 { return m }, slope: always(1), curve: always(0), most: maxMag, frac: 1},
	{name: "square", f: Square, mag: func(m float64) float64 { return m * m }, slope: func(m float64) float64 { return 2 * m },
		curve: always(2), most: 14, frac: 2},
	{name: "scale", f: func(x *Node) *Node { return MulScalar(x, -0.75) }, mag: func(m float64) float64 { return 0.75 * m },
		slope: always(0.75), curve: always(0), most: maxMag, frac: 1, digit: 2},
	{name: "stop", f: StopGradient, mag: func(m float64) float64 { return m }, slope: always(0), curve: always(0), most: maxMag, frac: 1},
}

// gradientOps are the names of all operations that grow draws.
var gradientOps = []string{"abs", "add", "sub", "mul", "div", "max", "min", "where", "reshape", "transpose", "slice", "broadcast",
	"concatenate", "sum", "mean", "reduce max", "reduce min", "softmax", "log softmax", "dot", "gather", "scatter", "convolve",
	"max pool", "mean pool", "choose", "one hot"}

func init() {
	for _, s := range smooths {
		gradientOps = append(gradientOps, s.name)
	}
}

// grow adds one random operation.
func (d *drawer) grow() {
	x := d.all[len(d.all)-1-d.r.IntN(min(5, len(d.all)))]
	switch k := d.r.IntN(24); {
	case k < 6:
		d.smooth(x, pickOne(d.r, smooths))
	case k < 10:
		d.pair(x)
	case k < 15:
		d.view(x)
	case k < 18:
		d.reduce(x)
	case k == 18:
		d.softmax(x)
	case k < 21:
		d.dot(x)
	case k == 21:
		d.rows(x)
	case k == 22:
		d.convolve(x)
	default:
		d.pool(x)
	}
}

func (d *drawer) smooth(x *value, s smooth) {
	if x.mag > s.most {
		return
	}
	y := &value{name: s.name, dims: x.dims, ins: []*value{x}, mag: s.mag(x.mag), frac: -1,
		build: func(in []*Node) *Node { return s.f(in[0]) }}
	y.err = s.slope(x.mag)*x.err + 16*y.mag
	if s.frac > 0 && x.exact() {
		y.frac = x.frac*s.frac + s.digit
	}
	if s.name == "stop" {
		y.err = x.err
	}
	y.onward = []influence{{s.slope(x.mag), s.curve(x.mag)*x.err + 16*(s.slope(x.mag)+s.curve(x.mag)*x.mag*0.1), 1}}
	d.add(y)
}

// partner returns a value that broadcasts with x, and the dimensions of both together.
func (d *drawer) partner(x *value) (*value, []int) {
	var fit []*value
	for _, y := range d.all {
		if len(y.dims) == 0 || len(x.dims) == 0 || len(y.dims) == len(x.dims) && !slices.ContainsFunc(axesUpTo(len(x.dims)), func(i int) bool {
			return x.dims[i] != y.dims[i] && x.dims[i] != 1 && y.dims[i] != 1
		}) {
			fit = append(fit, y)
		}
	}
	y := pickOne(d.r, fit)
	if len(x.dims) == 0 {
		return y, y.dims
	}
	dims := slices.Clone(x.dims)
	for i := range y.dims {
		dims[i] = max(dims[i], y.dims[i])
	}
	return y, dims
}

func axesUpTo(n int) []int {
	a := make([]int, n)
	for i := range a {
		a[i] = i
	}
	return a
}

// pair combines two values elementwise.
func (d *drawer) pair(a *value) {
	b, dims := d.partner(a)
	y := &value{dims: dims, ins: []*value{a, b}, frac: -1}
	bothExact := a.exact() && b.exact()
	slope, slopeErr := [2]float64{1, 1}, [2]float64{}
	switch d.r.IntN(9) {
	case 0, 1:
		y.name, y.mag, y.build = "add", a.mag+b.mag, func(in []*Node) *Node { return Add(in[0], in[1]) }
	case 2:
		y.name, y.mag, y.build = "sub", a.mag+b.mag, func(in []*Node) *Node { return Sub(in[0], in[1]) }
	case 3, 4:
		y.name, y.mag, y.build = "mul", a.mag*b.mag, func(in []*Node) *Node { return Mul(in[0], in[1]) }
		slope, slopeErr = [2]float64{b.mag, a.mag}, [2]float64{b.err, a.err}
		if bothExact {
			y.frac = a.frac + b.frac
		}
	case 5:
		y.name, y.mag, y.build = "div", a.mag, func(in []*Node) *Node { return Div(in[0], plusSquare(in[1])) }
		slope = [2]float64{1, a.mag}
		slopeErr = [2]float64{b.err + 8, a.err + 4*a.mag*b.err + 16*a.mag}
	case 6, 7:
		y.name, y.mag, y.build = "max", max(a.mag, b.mag), func(in []*Node) *Node { return Max(in[0], in[1]) }
		if d.r.IntN(2) == 0 {
			y.name, y.build = "min", func(in []*Node) *Node { return Min(in[0], in[1]) }
		}
		if !bothExact {
			return // a tie would be broken by rounding
		}
	default:
		if d.r.IntN(4) == 0 && a.exact() {
			d.add(&value{name: "abs", dims: a.dims, ins: []*value{a}, mag: a.mag, frac: a.frac, onward: []influence{{1, 0, 1}},
				build: func(in []*Node) *Node { return Abs(in[0]) }})
			return
		}
		if bothExact && d.r.IntN(2) == 0 {
			y.name, y.mag = "choose", max(a.mag, b.mag)
			y.build = func(in []*Node) *Node {
				spread := func(x *Node) *Node { return BroadcastToDims(x, dims...) }
				return Where(LessThan(Abs(in[0]), in[1]), spread(in[0]), spread(in[1]))
			}
			break
		}
		mask := make([]bool, int(y.size()))
		for i := range mask {
			mask[i] = d.r.IntN(2) == 0
		}
		y.name, y.mag = "where", max(a.mag, b.mag)
		y.build = func(in []*Node) *Node {
			spread := func(x *Node) *Node { return BroadcastToDims(x, dims...) }
			return Where(Const(in[0].Graph(), tensors.FromFlatDataAndDimensions(mask, dims...)), spread(in[0]), spread(in[1]))
		}
	}
	if bothExact && y.frac < 0 && y.name != "div" {
		y.frac = max(a.frac, b.frac)
	}
	y.err = slope[0]*a.err + slope[1]*b.err + 8*y.mag
	for i, x := range y.ins {
		y.onward = append(y.onward, influence{slope[i], slopeErr[i], y.size() / x.size()})
	}
	d.add(y)
}

// moved adds a value whose elements are elements of x, each at most count times.
func (d *drawer) moved(name string, x *value, dims []int, count float64, build func(x *Node) *Node) {
	d.add(&value{name: name, dims: dims, ins: []*value{x}, mag: x.mag, err: x.err, frac: x.frac, onward: []influence{{1, 0, count}},
		build: func(in []*Node) *Node { return build(in[0]) }})
}

// view changes dimensions, or takes a part.
func (d *drawer) view(x *value) {
	rank := len(x.dims)
	switch d.r.IntN(5) {
	case 0:
		dims := []int{int(x.size())}
		if d.r.IntN(2) == 0 {
			dims = slices.Insert(slices.Clone(x.dims), d.r.IntN(rank+1), 1)
		} else if rank > 1 {
			dims = append([]int{x.dims[0] * x.dims[1]}, x.dims[2:]...)
		}
		d.moved("reshape", x, dims, 1, func(x *Node) *Node { return Reshape(x, dims...) })
	case 1:
		perm := d.r.Perm(rank)
		dims := make([]int, rank)
		for i, p := range perm {
			dims[i] = x.dims[p]
		}
		d.moved("transpose", x, dims, 1, func(x *Node) *Node { return TransposeAllAxes(x, perm...) })
	case 2:
		if rank == 0 {
			return
		}
		dims := slices.Clone(x.dims)
		spec := make([]SliceAxisSpec, rank)
		for i, n := range x.dims {
			lo := d.r.IntN(n)
			hi, step := lo+1+d.r.IntN(n-lo), 1+d.r.IntN(2)
			dims[i] = (hi - lo + step - 1) / step
			spec[i] = AxisRange(lo, hi).Stride(step)
		}
		d.moved("slice", x, dims, 1, func(x *Node) *Node { return Slice(x, spec...) })
	case 3:
		dims := slices.Clone(x.dims)
		for i, n := range dims {
			if n == 1 {
				dims[i] = 1 + d.r.IntN(4)
			}
		}
		n := 1 + d.r.IntN(3)
		dims = append([]int{n}, dims...)
		y := value{dims: dims}
		d.moved("broadcast", x, dims, y.size()/x.size(), func(x *Node) *Node { return BroadcastToDims(ExpandLeftToRank(x, len(dims)), dims...) })
	default:
		if rank == 0 {
			return
		}
		axis := d.r.IntN(rank)
		y := pickOne(d.r, d.all)
		if len(y.dims) != rank || slices.ContainsFunc(axesUpTo(rank), func(i int) bool { return i != axis && x.dims[i] != y.dims[i] }) {
			y = x
		}
		dims := slices.Clone(x.dims)
		dims[axis] += y.dims[axis]
		v := &value{name: "concatenate", dims: dims, ins: []*value{x, y}, mag: max(x.mag, y.mag), err: max(x.err, y.err),
			frac: max(x.frac, y.frac), onward: []influence{{1, 0, 1}, {1, 0, 1}},
			build: func(in []*Node) *Node { return Concatenate(in, axis) }}
		if !x.exact() || !y.exact() {
			v.frac = -1
		}
		d.add(v)
	}
}

// reduce sums axes, or takes their extreme.
func (d *drawer) reduce(x *value) {
	rank := len(x.dims)
	if rank == 0 {
		return
	}
	axes := d.r.Perm(rank)[:1+d.r.IntN(rank)]
	var dims []int
	n := 1.0
	for i, k := range x.dims {
		if slices.Contains(axes, i) {
			n *= float64(k)
		} else {
			dims = append(dims, k)
		}
	}
	y := &value{dims: dims, ins: []*value{x}, frac: x.frac}
	switch d.r.IntN(5) {
	case 0:
		y.name, y.build = "sum", func(in []*Node) *Node { return ReduceSum(in[0], axes...) }
		y.mag, y.err, y.onward = n*x.mag, n*x.err+n*n*x.mag, []influence{{1, 0, 1}}
	case 1:
		y.name, y.build = "mean", func(in []*Node) *Node { return ReduceMean(in[0], axes...) }
		y.mag, y.err, y.onward, y.frac = x.mag, x.err+(n+2)*x.mag, []influence{{1 / n, 2 / n, 1}}, -1
	case 2:
		n := x.dims[rank-1]
		if x.exact() {
			d.add(&value{name: "one hot", dims: x.dims, ins: []*value{x}, mag: 1, onward: []influence{{0, 0, 1}}, build: func(in []*Node) *Node {
				return OneHot(ArgMax(in[0], -1, dtypes.Int32), n, in[0].DType())
			}})
		}
		return
	default:
		if !x.exact() {
			return
		}
		y.name, y.build = "reduce max", func(in []*Node) *Node { return ReduceMax(in[0], axes...) }
		if d.r.IntN(2) == 0 {
			y.name, y.build = "reduce min", func(in []*Node) *Node { return ReduceMin(in[0], axes...) }
		}
		// Ties may share the derivative, or each have all of it.
		y.mag, y.onward = x.mag, []influence{{1, 2, 1}}
	}
	d.add(y)
}

func (d *drawer) softmax(x *value) {
	if len(x.dims) == 0 || x.mag > 30 {
		return
	}
	axis := d.r.IntN(len(x.dims))
	n := float64(x.dims[axis])
	y := &value{name: "softmax", dims: x.dims, ins: []*value{x}, mag: 1, err: 2*x.err + 4*x.mag + n + 16, frac: -1,
		build: func(in []*Node) *Node { return Softmax(in[0], axis) }}
	// Of each derivative, two sums of n terms below 1 are taken.
	y.onward = []influence{{1, 8*x.err + 16*x.mag + 4*n + 64, n}}
	if d.r.IntN(2) == 0 {
		y.name, y.mag, y.build = "log softmax", 2*x.mag+math.Log(n)+1, func(in []*Node) *Node { return LogSoftmax(in[0], axis) }
		y.err += 4 * y.mag
	}
	d.add(y)
}
