package gfn

import (
	"fmt"
	"math"
	"slices"

	"github.com/gomlx/compute"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/support/xslices"

	"github.com/gfnem/gfnem/internal/blame"
	"github.com/gfnem/gfnem/internal/program"
)

// Table holds a policy's answers for one observation on every edge and state of a DAG, in float64.
type Table struct {
	LogPF []float64 // by edge
	LogPB []float64 // by edge
	Flow  []float64 // by state; nil if the policy has none
}

// asked is what a policy is asked: observations, and the states of each.
type asked[T any] struct{ X, States []T }

// tabulated is what it answers, by observation and state; the flow may be left out. Own says of which observations the
// states are.
type tabulated[T any] struct{ LogPF, LogPB, Flow, Own T }

// Tabulate evaluates a policy for every row of the observations x, on all states at once. All must have the initial state
// that was enumerated.
func (d *DAG) Tabulate(
	b compute.Backend, store *model.Store, scope string, p Policy, x []*tensors.Tensor,
) ([]Table, error) {
	n := Net{d.Env, p, store.Scope(scope)}
	ask := func(in asked[*Node]) tabulated[*Node] {
		x := Batch(in.X)
		all := State(in.States).Tile(x.Size()) // row b*S+i is state i for observation b
		start := State(xslices.Map(in.States, func(s *Node) *Node { return SliceAxis(s, 0, AxisElem(0)) }))
		own := Same(n.env().Initial(x), start.Repeat(x.Size()))
		if e, ok := p.(Encoder); ok {
			x = blame.Rows(blame.Method(e, "Encode"), e.Encode(n.Scope, x), x.Size())
		}
		h := n.heads(x, all, d.Len())
		legalBack := n.env().LegalBack(all)
		if h.Backward == nil {
			h.Backward = flatLogits(legalBack, h.Forward.DType())
		}
		out := tabulated[*Node]{logProbs(h.Forward, n.env().Legal(all)), logProbs(h.Backward, legalBack), h.Flow, own}
		return program.Map(out, func(n *Node) *Node { return ConvertDType(n, float64Type) })
	}
	for _, e := range d.Edges {
		if e.Back < 0 || e.Back >= d.Env.BackActions() {
			back := check(d.Env).method("Back")
			return nil, back.Errorf("is %d, and there are %d backward actions", e.Back, d.Env.BackActions())
		}
	}
	out, err := program.Once[asked[*tensors.Tensor], tabulated[*tensors.Tensor]](
		b, store, "tabulate policy", ask, asked[*tensors.Tensor]{x, d.states})
	if err != nil {
		return nil, err
	}
	flat := tensors.MustCopyFlatData[float64]
	if other := slices.Index(flat(out.Own), 0); other >= 0 {
		return nil, fmt.Errorf("tabulate policy: observation %d has another initial state than the one whose states were "+
			"enumerated; Enumerate lists those of one observation", other)
	}
	logPF, logPB, flow := flat(out.LogPF), flat(out.LogPB), []float64(nil)
	if out.Flow != nil {
		flow = flat(out.Flow)
	}
	na, nb := d.Env.Actions(), d.Env.BackActions()
	tables := make([]Table, x[0].Shape().Dim(0))
	for r := range tables {
		base := r * d.Len()
		t := &tables[r]
		for _, e := range d.Edges {
			t.LogPF = append(t.LogPF, logPF[(base+e.From)*na+e.Action])
			t.LogPB = append(t.LogPB, logPB[(base+e.To)*nb+e.Back])
		}
		if flow != nil {
			t.Flow = flow[base : base+d.Len()]
		}
	}
	return tables, nil
}

// Terminating returns the probability that a trajectory drawn by P_F ends in each object, in the order of Objects.
func (d *DAG) Terminating(t Table) []float64 {
	visits := d.visits(t)
	out := make([]float64, len(d.Objects))
	for i, s := range d.Objects {
		out[i] = visits[s]
	}
	return out
}

// visits returns the probability that a trajectory drawn by P_F passes through each state.
func (d *DAG) visits(t Table) []float64 {
	fits("by edge", len(t.LogPF), len(d.Edges))
	p := make([]float64, d.Len())
	p[0] = 1
	for i, e := range d.Edges {
		p[e.To] += p[e.From] * math.Exp(t.LogPF[i])
	}
	return p
}

// fits stops a caller whose numbers are of other things: objects' for states', say.
func fits(what string, have, want int) {
	if have != want {
		fail("there are %d numbers %s, not %d", have, what, want)
	}
}

// Solve returns the flows and the forward policy that a reward and a backward policy determine: log F by state, with
// log F(0) = log Z, and log P_F by edge. LogR is by object, logPB by edge. Where nothing flows, since no object that can be
// reached has a reward, the policy is uniform.
func (d *DAG) Solve(logR, logPB []float64) (logF, logPF []float64) {
	fits("by object", len(logR), len(d.Objects))
	fits("by edge", len(logPB), len(d.Edges))
	logF = make([]float64, d.Len())
	for i := range logF {
		logF[i] = math.Inf(-1)
	}
	for i, s := range d.Objects {
		logF[s] = logR[i]
	}
	children := make([]float64, d.Len())
	for i := len(d.Edges) - 1; i >= 0; i-- {
		e := d.Edges[i]
		logF[e.From] = logAddExp(logF[e.From], logF[e.To]+logPB[i])
		children[e.From]++
	}
	logPF = make([]float64, len(d.Edges))
	for i, e := range d.Edges {
		if logPF[i] = logF[e.To] + logPB[i] - logF[e.From]; math.IsInf(logF[e.From], -1) {
			logPF[i] = -math.Log(children[e.From])
		}
	}
	return logF, logPF
}

// UniformBack returns the uniform backward policy, by edge.
func (d *DAG) UniformBack() []float64 {
	parents := make([]float64, d.Len())
	for _, e := range d.Edges {
		parents[e.To]++
	}
	logPB := make([]float64, len(d.Edges))
	for i, e := range d.Edges {
		logPB[i] = -math.Log(parents[e.To])
	}
	return logPB
}

// ELBO returns the expectation over trajectories drawn by P_F of log R + sum log P_B - sum log P_F, a lower bound of
// log Z that is tight for a perfect sampler.
func (d *DAG) ELBO(t Table, logR []float64) float64 {
	fits("by object", len(logR), len(d.Objects))
	fits("by edge", len(t.LogPB), len(d.Edges))
	p := d.visits(t)
	sum := 0.0
	for i, e := range d.Edges {
		if w := p[e.From] * math.Exp(t.LogPF[i]); w > 0 {
			sum += w * (t.LogPB[i] - t.LogPF[i])
		}
	}
	for i, s := range d.Objects {
		if p[s] > 0 {
			sum += p[s] * logR[i]
		}
	}
	return sum
}

// Normalise returns the distribution in proportion to exp(logR).
func Normalise(logR []float64) []float64 {
	logZ := LogSumExp(logR)
	p := make([]float64, len(logR))
	for i, l := range logR {
		p[i] = math.Exp(l - logZ)
	}
	return p
}

// TotalVariation returns half the sum of |p - q|.
func TotalVariation(p, q []float64) float64 {
	fits("in the second distribution", len(q), len(p))
	sum := 0.0
	for i := range p {
		sum += math.Abs(p[i] - q[i])
	}
	return sum / 2
}

// LogSumExp returns log sum exp(x) without overflow.
func LogSumExp(x []float64) float64 {
	sum := math.Inf(-1)
	for _, v := range x {
		sum = logAddExp(sum, v)
	}
	return sum
}

func logAddExp(a, b float64) float64 {
	if a < b {
		a, b = b, a
	}
	if math.IsInf(b, -1) {
		return a
	}
	return a + math.Log1p(math.Exp(b-a))
}
