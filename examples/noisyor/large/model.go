package main

import (
	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/gfn/envs"
	"github.com/gfnem/gfnem/lvm"
	"github.com/gfnem/gfnem/nn"
	"github.com/gfnem/gfnem/rng"
)

// # The model

const (
	group = 5 // effects that have the same causes
	reach = 5 // groups of effects that a cause can bring about
	float = dtypes.Float32
)

// network is p(x,z). Causes stand in a ring, and cause c can bring about the effects of groups c to c+4: so five causes
// compete to explain each effect, and neighbours share 20 of their 25. Effect e is absent with probability exp(-r_e),
// where the rates r_e = leak_e + sum_k z_k weight_ke add up over the causes that are present.
//
// By letters: N rows, C causes and as many groups, R=5 causes of a group, E=5 effects of a group.
type network struct {
	causes int
	// most is how many causes can be present at once. It is meant to be so large that more are as good as impossible; the
	// prior is not made smaller for them.
	most int
}

var _ lvm.Model = network{}

// env is how the causes are found: one after the other, in any order, and then a stop.
func (m network) env() envs.Set { return envs.Set{Items: m.causes, Most: m.most} }

// rates are what is learned.
type rates struct {
	prior   *Node // log odds of the causes, [1,C]
	weights *Node // [C,R,E]: entry g,j is of cause g-j on the effects of group g
	leak    *Node // [1,C,E]
}

func (m network) rates(theta *model.Scope, g *Graph) rates {
	prior := nn.Param(theta, g, float, "prior", 0.5, 1, m.causes)
	weights := nn.Param(theta, g, float, "weights", 0.5, m.causes, reach, group)
	leak := nn.Param(theta, g, float, "leak", 0.5, 1, m.causes, group)
	return rates{AddScalar(prior, -4), Exp(AddScalar(weights, -1.6)), AddScalar(Exp(AddScalar(leak, -4)), 1e-3)}
}

// of returns the weights of the j-th causes of all groups, [1,C,E].
func (r rates) of(j int) *Node {
	return InsertAxes(Squeeze(SliceAxis(r.weights, 1, AxisElem(j)), 1), 0)
}

// turn shifts causes or groups, the second axis, by so many places of the ring: entry i goes to i+by.
func turn(x *Node, by int) *Node {
	n := x.Shape().Dim(1)
	by = (by%n + n) % n
	if by == 0 {
		return x
	}
	return Concatenate([]*Node{SliceAxis(x, 1, AxisRange(n-by)), SliceAxis(x, 1, AxisRange(0, n-by))}, 1)
}

// effects are observations as [N,C,E].
func (m network) effects(x gfn.Batch) *Node { return Reshape(x[0], -1, m.causes, group) }

// present is 1 where a cause is in the set, [N,C].
func present(z gfn.State) *Node { return ConvertDType(z[0], float) }

// total is the rate of each effect, [N,C,E].
func (r rates) total(on *Node) *Node {
	sum := r.leak
	for j := range reach {
		sum = Add(sum, Mul(InsertAxes(turn(on, j), -1), r.of(j)))
	}
	return sum
}

// LogJoint is log p(x,z), [N].
func (m network) LogJoint(theta *model.Scope, x gfn.Batch, z gfn.State) *Node {
	seen, on := m.effects(x), present(z)
	r := m.rates(theta, seen.Graph())
	total := r.total(on)
	logOdds := Add(Log(OneMinus(Exp(Neg(total)))), total) // log p(x_e=1|z) - log p(x_e=0|z)
	logPrior := ReduceSum(Sub(Mul(on, r.prior), Softplus(r.prior)), 1)
	return Add(logPrior, ReduceSum(Sub(Mul(seen, logOdds), total), 1, 2))
}

// Sample draws n pairs (x,z): first the causes, then their effects.
func (m network) Sample(theta *model.Scope, random *rng.Stream, n int) (gfn.Batch, gfn.State) {
	u := random.Uniform(float, n, m.causes)
	r := m.rates(theta, u.Graph())
	on := ConvertDType(LessThan(u, Sigmoid(r.prior)), float)
	on = Mul(on, ConvertDType(LessOrEqual(CumSum(on, 1), ConstAs(on, m.most)), float))
	x := random.Bernoulli(OneMinus(Exp(Neg(r.total(on)))))
	return gfn.Batch{Reshape(ConvertDType(x, float), n, -1)}, m.env().Of(ConvertDType(on, dtypes.Int32))
}

// gains are log p(x, z and the cause) - log p(x,z) of all causes at once, [N,C]. Effects that are seen count for a cause
// by how much more probable they are with it, and effects that are not seen count against it.
func (m network) gains(theta *model.Scope, seen, on *Node) *Node {
	r := m.rates(theta, seen.Graph())
	absent := Exp(Neg(r.total(on))) // probability of no effect, [N,C,E]
	there := OneMinus(absent)
	sum := r.prior
	isSeen := GreaterThan(seen, ZerosLike(seen))
	for j := range reach {
		stays := Exp(Neg(r.of(j))) // by so much absence is less probable with the cause
		ratio := Where(isSeen, Div(OneMinus(Mul(absent, stays)), there), BroadcastToShape(stays, seen.Shape()))
		sum = Add(sum, turn(ReduceSum(Log(ratio), 2), -j))
	}
	return StopGradient(sum)
}

// # The policy

// policy adds causes to the set, or stops. It reads what the model, as it is, gains by each cause, and begins with what
// would be right if at most one of a few neighbours were present; a network learns the rest.
type policy struct{ network }

var _ gfn.Policy = policy{}

// Heads returns logits of adding each cause, and of stopping, in the states s, k of each observation: [N,C+1].
func (p policy) Heads(phi *model.Scope, x gfn.Batch, s gfn.State, k int) gfn.Heads {
	on := present(s)
	gain := p.gains(phi.Store().Scope(em.Theta), p.effects(x.Repeat(k)), on)
	gain = Sub(ClipScalar(gain, -15, 40), MulScalar(on, 30)) // what is in the set is not added again
	var gains, present []*Node                               // of a cause and its competitors, [N,C] each
	for by := 1 - reach; by < reach; by++ {
		gains, present = append(gains, turn(gain, by)), append(present, turn(on, by))
	}
	rivals := nn.LogSumExp(Stack(append(gains, ZerosLike(gain)), 2), 2) // [N,C], of these or none
	likely := Sub(gain, rivals)                                         // log p(it is present), if one of them is at most
	anything := InsertAxes(nn.LogSumExp(gain, 1), 1)                    // log odds that anything is missing, [N,1]
	share := Sub(likely, InsertAxes(nn.LogSumExp(likely, 1), 1))        // log of its share in what is missing

	near := append([]*Node{MulScalar(likely, 0.25), MulScalar(rivals, 0.25)}, present...)
	for _, g := range gains {
		near = append(near, MulScalar(g, 0.1))
	}
	missing, found := ReduceAndKeep(Exp(likely), ReduceSum, 1), ReduceAndKeep(on, ReduceSum, 1)
	all := Concatenate([]*Node{MulScalar(anything, 0.1), missing, MulScalar(found, 0.25)}, 1) // [N,3]

	hidden := Add(nn.Linear(phi.At("near"), Stack(near, 2), 24), InsertAxes(nn.Linear(phi.At("all"), all, 24), 1))
	add := Add(Squeeze(nn.Linear(phi.At("add"), nn.ReLU(hidden), 1), 2), Add(share, anything)) // [N,C]
	stop := nn.MLP{Widths: []int{24, 1}}.Apply(phi.At("stop"), all)
	return gfn.Heads{Forward: Concatenate([]*Node{add, stop}, 1)}
}
