package bench

import (
	"fmt"
	"time"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/gfn/envs"
	"github.com/gfnem/gfnem/nn"
	"github.com/gfnem/gfnem/optim"
	"github.com/gfnem/gfnem/rng"
)

// Hypergrid trains an objective on the 8x8 hypergrid until the exact total variation to the target is small.
type Hypergrid struct {
	Objective string  `json:"objective"`
	Steps     int     `json:"steps"`
	Seconds   float64 `json:"seconds"`
	// TotalVariation is the distance reached, exact by enumeration of all states.
	TotalVariation float64 `json:"total_variation"`
}

// HypergridTarget is the total variation at which training stops.
const HypergridTarget = 0.02

// hypergridObjectives are compared, in this order.
var hypergridObjectives = []struct {
	name      string
	objective gfn.Objective
}{
	{"TB", gfn.TB{}}, {"DB", gfn.DB{}}, {"SubTB", gfn.SubTB{}}, {"VarGrad", gfn.VarGrad{}},
}

// gridPolicy is an MLP on one-hot coordinates, with a flow head and a scalar log Z.
type gridPolicy struct{ env envs.Hypergrid }

var (
	_ gfn.Policy    = gridPolicy{}
	_ gfn.Partition = gridPolicy{}
)

// Heads implements gfn.Policy.
func (p gridPolicy) Heads(scope *model.Scope, _ gfn.Batch, s gfn.State, _ int) gfn.Heads {
	n := s[0].Shape().Dim(0)
	shape := shapes.Make(dtypes.Int32, n, p.env.Dims, p.env.Side)
	hot := Equal(Iota(s[0].Graph(), shape, 2), BroadcastToShape(InsertAxes(s[0], 2), shape))
	x := Reshape(ConvertDType(hot, dtypes.Float32), n, p.env.Dims*p.env.Side)
	out := nn.MLP{Widths: []int{64, 64, p.env.Actions() + 1}, Slope: 0.01}.Apply(scope, x)
	return gfn.Heads{
		Forward: SliceAxis(out, 1, AxisRange(0, p.env.Actions())),
		Flow:    Squeeze(SliceAxis(out, 1, AxisElem(p.env.Actions())), 1),
	}
}

// LogZ implements gfn.Partition.
func (p gridPolicy) LogZ(scope *model.Scope, x gfn.Batch) *Node {
	return BroadcastToDims(nn.Param(scope.At("partition"), x[0].Graph(), dtypes.Float32, "logz", 0), x.Size())
}

// RunHypergrid trains every objective in turn and calls done after each.
func RunHypergrid(b compute.Backend, seed uint64, done func(Hypergrid) error) error {
	env := envs.Hypergrid{Side: 8, Dims: 2}
	row := tensors.FromFlatDataAndDimensions([]float32{0}, 1, 1)
	dag, err := gfn.Enumerate(b, env, []*tensors.Tensor{row}, 1000)
	if err != nil {
		return err
	}
	var states []any
	for _, t := range dag.ObjectStates() {
		states = append(states, t)
	}
	logR, err := CallOnce(b, func(s []*Node) *Node { return env.LogReward(nil, s) }, states...)
	if err != nil {
		return err
	}
	target := gfn.Normalise(tensors.MustCopyFlatData[float64](logR))
	for _, o := range hypergridObjectives {
		h, err := trainHypergrid(b, env, dag, target, o.objective, seed)
		if err != nil {
			return fmt.Errorf("hypergrid %s: %w", o.name, err)
		}
		h.Objective = o.name
		if err := done(h); err != nil {
			return err
		}
	}
	return nil
}

func trainHypergrid(b compute.Backend, env envs.Hypergrid, dag *gfn.DAG, target []float64, o gfn.Objective, seed uint64) (Hypergrid, error) {
	const batch, most, check = 64, 20_000, 50
	store := model.NewStore()
	store.RootScope().SetParam(nn.SeedParam, seed)
	policy := gridPolicy{env}
	opt := optim.Optimizer{Groups: []optim.Group{
		{Scope: "/phi", Rate: optim.Rate{Base: 2e-3, Drops: []optim.Drop{{Step: 4000, Factor: 0.3}, {Step: 10_000, Factor: 0.3}}}},
		{Scope: "/phi/partition", Rate: optim.Rate{Base: 5e-2, Drops: []optim.Drop{{Step: 4000, Factor: 0.1}}}},
	}}
	exec, err := model.NewExec(b, store, func(_ *model.Scope, in []*Node) *Node {
		g := in[0].Graph()
		net := gfn.Net{Env: env, Policy: policy, Scope: store.Scope("/phi")}
		x := gfn.Batch{Zeros(g, shapes.Make(dtypes.Float32, batch, 1))}
		how := gfn.Behaviour{Epsilon: Const(g, float32(0.1))}
		tr := net.Rollout(rng.In(in[0]), x, nil, how)
		logR := ConvertDType(env.LogReward(x, tr.Last()), dtypes.Float32)
		loss := ReduceAllMean(o.Loss(net.Path(tr, net.Score(tr, gfn.Behaviour{}), logR, nil)))
		opt.Minimize(store, loss, in[1])
		return loss
	})
	if err != nil {
		return Hypergrid{}, err
	}
	defer exec.Finalize()
	var h Hypergrid
	begin := time.Now()
	for h.Steps < most {
		if _, err := exec.Call(rng.Key(seed, "hypergrid", uint64(h.Steps)), opt.Rates(uint64(h.Steps))); err != nil {
			return h, err
		}
		h.Steps++
		if h.Steps%check != 0 {
			continue
		}
		row := tensors.FromFlatDataAndDimensions([]float32{0}, 1, 1)
		tables, err := dag.Tabulate(b, store, "/phi", policy, []*tensors.Tensor{row})
		if err != nil {
			return h, err
		}
		h.TotalVariation = gfn.TotalVariation(dag.Terminating(tables[0]), target)
		h.Seconds = time.Since(begin).Seconds()
		if h.TotalVariation <= HypergridTarget {
			break
		}
	}
	return h, nil
}
