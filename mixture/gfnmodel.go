package mixture

import (
	"math"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/gfn/envs"
	"github.com/gfnem/gfnem/lvm"
	"github.com/gfnem/gfnem/nn"
	"github.com/gfnem/gfnem/rng"
)

// gfnModel is the mixture as a model in graphs. Its latent is the pair (i,j), a state of envs.Sequence; its variable is
// "means" [S,2].
type gfnModel struct {
	Problem
	start Means
}

var _ lvm.Maximizer = gfnModel{}

const float = dtypes.Float32

func (m gfnModel) env() envs.Sequence { return envs.Sequence{Sizes: []int{len(m.start), m.Petals}} }

func (m gfnModel) means(scope *model.Scope) *model.Variable {
	if v := scope.GetVariable("means"); v != nil {
		return v
	}
	return scope.VariableWithValue("means", pointTensor(m.start))
}

// residual returns x - mu_i - o_j, [B,2], and the one-hot superclusters, [B,S].
func (m gfnModel) residual(scope *model.Scope, x gfn.Batch, z gfn.State) (residual, super *Node) {
	g := x[0].Graph()
	super = hot(z, 0, len(m.start))
	mu := Dot(super, m.means(scope).NodeValue(g)).Product()
	offset := Dot(hot(z, 1, m.Petals), Const(g, pointTensor(m.Offsets()))).Product()
	return Sub(Sub(x[0], offset), mu), super
}

// energy returns |x - mu_i - o_j|^2 / (2 sigma^2), [B].
func (m gfnModel) energy(scope *model.Scope, x gfn.Batch, z gfn.State) *Node {
	r, _ := m.residual(scope, x, z)
	return DivScalar(ReduceSum(Square(r), 1), 2*m.Sigma*m.Sigma)
}

// LogJoint implements lvm.Model.
func (m gfnModel) LogJoint(scope *model.Scope, x gfn.Batch, z gfn.State) *Node {
	norm := math.Log(2*math.Pi*m.Sigma*m.Sigma) + math.Log(float64(len(m.start)*m.Petals))
	return AddScalar(Neg(m.energy(scope, x, z)), -norm)
}

// reward returns the E-step's log-reward: minus the energy, but not below clip. The clip is part of the published
// algorithm: a point far from every component gets a uniform target, which pulls abandoned means back to the data.
func (m gfnModel) reward(clip float64) func(*model.Scope, gfn.Batch, gfn.State) *Node {
	return func(scope *model.Scope, x gfn.Batch, z gfn.State) *Node {
		return MaxScalar(Neg(m.energy(scope, x, z)), clip)
	}
}

// Sample implements lvm.Model.
func (m gfnModel) Sample(scope *model.Scope, r *rng.Stream, n int) (gfn.Batch, gfn.State) {
	noise := r.Normal(float, n, 2)
	g := noise.Graph()
	draw := func(size int) *Node { return InsertAxes(r.Categorical(Ones(g, shapes.Make(float, n, size))), 1) }
	z := gfn.State{Concatenate([]*Node{draw(len(m.start)), draw(m.Petals)}, 1)}
	origin, _ := m.residual(scope, gfn.Batch{ZerosLike(noise)}, z) // -mu_i - o_j
	return gfn.Batch{Sub(MulScalar(noise, m.Sigma), origin)}, z
}

// Maximize implements lvm.Maximizer: each mean moves to the average of x - o_j over the points assigned to it, and stays
// where it is if there are none.
func (m gfnModel) Maximize(scope *model.Scope, x gfn.Batch, z gfn.State) ([]*model.Variable, []*Node) {
	v := m.means(scope)
	old := v.NodeValue(x[0])
	r, super := m.residual(scope, x, z)
	count := InsertAxes(ReduceSum(super, 0), 1) // [S,1]
	shift := Div(DotGeneral(super, []int{0}, nil, r, []int{0}, nil), MaxScalar(BroadcastToShape(count, old.Shape()), 1))
	return []*model.Variable{v}, []*Node{Add(old, shift)}
}

// policy is the paper's network: one MLP that reads [x, one-hot i, one-hot j] and gives logits for i, logits for j and
// log Z(x), of which a state uses what it needs.
type policy struct {
	super, petals, hidden int
}

var _ gfn.Policy = policy{}

// Heads implements gfn.Policy.
func (p policy) Heads(scope *model.Scope, x gfn.Batch, s gfn.State, k int) gfn.Heads {
	in := Concatenate([]*Node{x.Repeat(k)[0], hot(s, 0, p.super), hot(s, 1, p.petals)}, 1)
	out := nn.MLP{Widths: []int{p.hidden, p.super + p.petals + 1}, Slope: 0.01}.Apply(scope, in)
	cut := func(from, size, width int) *Node { // columns from..from+size, padded with zeros to width
		c := SliceAxis(out, 1, AxisRange(from, from+size))
		if size < width {
			c = Concatenate([]*Node{c, Zeros(out.Graph(), shapes.Make(float, out.Shape().Dim(0), width-size))}, 1)
		}
		return c
	}
	width := max(p.super, p.petals)
	first := SliceAxis(s[0], 1, AxisElem(0)) // [N,1]
	atStart := BroadcastToDims(LessThan(first, ZerosLike(first)), out.Shape().Dim(0), width)
	return gfn.Heads{
		Forward: Where(atStart, cut(0, p.super, width), cut(p.super, p.petals, width)),
		Flow:    Squeeze(SliceAxis(out, 1, AxisElem(p.super+p.petals)), 1),
	}
}

// hot returns position pos of sequences as one-hot rows [N,size]; an unset token is all zero.
func hot(s gfn.State, pos, size int) *Node {
	return OneHot(Squeeze(SliceAxis(s[0], 1, AxisElem(pos)), 1), size, float)
}

// pointTensor copies points to a float32 tensor [n,2].
func pointTensor[P ~[]Point](points P) *tensors.Tensor {
	flat := make([]float32, 0, 2*len(points))
	for _, p := range points {
		flat = append(flat, float32(p[0]), float32(p[1]))
	}
	return tensors.FromFlatDataAndDimensions(flat, len(points), 2)
}
