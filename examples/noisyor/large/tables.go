package main

import (
	"math"

	"github.com/gomlx/compute"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/em"
)

// # Tables
//
// The effects of a group depend on five causes alone. So there are 32 patterns of these, and a table of
// log p(effects of a group | pattern) says all about an observation. Mean field and annealing work with these tables.

// patterns is the number of subsets of the causes of a group. Bit j of a pattern says that the j-th of them is present.
const patterns = 1 << reach

// bits are the patterns as rows, [32,R].
func bits(g *Graph) *Node {
	rows := make([]float32, 0, patterns*reach)
	for pattern := range patterns {
		for j := range reach {
			rows = append(rows, float32(pattern>>j&1))
		}
	}
	return Reshape(Const(g, rows), patterns, reach)
}

// tables returns log p(effects of each group | pattern), [N,C,32].
func (m network) tables(theta *model.Scope, x *Node) *Node {
	r := m.rates(theta, x.Graph())
	total := Add(Einsum("kj,cje->cke", bits(x.Graph()), r.weights), Reshape(r.leak, m.causes, 1, group)) // [C,32,E]
	logOdds := Add(Log(OneMinus(Exp(Neg(total)))), total)
	return Sub(Einsum("nce,cke->nck", m.effects([]*Node{x}), logOdds), InsertAxes(ReduceSum(total, 2), 0))
}

// observation is what the model says of one, on the host.
type observation struct {
	prior []float32           // log odds of the causes
	group [][patterns]float32 // log p(effects of a group | pattern)
	plain []bool              // no effect of the group is seen: its causes do not compete
}

// tabler makes tables of observations, by the model as it is.
type tabler struct {
	network
	exec *model.Exec
}

func newTabler(b compute.Backend, store *model.Store, m network) tabler {
	return tabler{m, must(model.NewExec(b, store, func(_ *model.Scope, x *Node) (*Node, *Node) {
		theta := store.Scope(em.Theta)
		return m.tables(theta, x), m.rates(theta, x.Graph()).prior
	}))}
}

func (t tabler) of(x *tensors.Tensor) []observation {
	table, logOdds := t.exec.MustCall2(x)
	flat, prior := tensors.MustCopyFlatData[float32](table), tensors.MustCopyFlatData[float32](logOdds)
	seen := tensors.MustCopyFlatData[float32](x)
	all := make([]observation, x.Shape().Dim(0))
	for i := range all {
		o := observation{prior, make([][patterns]float32, t.causes), make([]bool, t.causes)}
		for g := range o.group {
			at := i*t.causes + g
			copy(o.group[g][:], flat[at*patterns:])
			o.plain[g] = true
			for _, x := range seen[at*group : (at+1)*group] {
				o.plain[g] = o.plain[g] && x == 0
			}
		}
		all[i] = o
	}
	return all
}

// place is the number of the j-th cause of a group.
func (o observation) place(g, j int) int {
	n := len(o.prior)
	return (g - j + n) % n
}

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

func softplus(x float64) float64 { return math.Max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) }
