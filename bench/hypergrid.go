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
	"github.com/gfnem/gfnem/internal/program"
	"github.com/gfnem/gfnem/nn"
	"github.com/gfnem/gfnem/optim"
	"github.com/gfnem/gfnem/rng"
)

// smallVariation is the exact total variation to the target at which an objective has learned it.
const smallVariation = 0.02

// gridPolicy is an MLP on one-hot coordinates, with a flow head and a scalar log Z.
type gridPolicy struct{ env envs.Hypergrid }

var (
	_ gfn.Policy    = gridPolicy{}
	_ gfn.Partition = gridPolicy{}
)

// Heads implements gfn.Policy.
func (p gridPolicy) Heads(scope *model.Scope, _ gfn.Batch, s gfn.State, _ int) gfn.Heads {
	n := s[0].Shape().Dim(0)
	x := Reshape(OneHot(s[0], p.env.Side, dtypes.Float32), n, p.env.Dims*p.env.Side)
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

func hypergrid(b compute.Backend, o Options, each func(Result) error) error {
	env := envs.Hypergrid{Side: 8, Dims: 2}
	blank := []*tensors.Tensor{tensors.FromFlatDataAndDimensions([]float32{0}, 1, 1)} // an observation of nothing
	dag, err := gfn.Enumerate(b, env, blank, 1000)
	if err != nil {
		return err
	}
	logR, err := program.Once[value[[]*tensors.Tensor], value[*tensors.Tensor]](
		b, nil, "reward", func(s value[gfn.State]) value[*Node] { return value[*Node]{env.LogReward(nil, s.Value)} },
		value[[]*tensors.Tensor]{dag.ObjectStates()})
	if err != nil {
		return err
	}
	target := gfn.Normalise(tensors.MustCopyFlatData[float64](logR.Value))
	for _, of := range []struct {
		name string
		gfn.Objective
	}{{"TB", gfn.TB{}}, {"DB", gfn.DB{}}, {"SubTB", gfn.SubTB{}}, {"VarGrad", gfn.VarGrad{}}} {
		r, err := learnGrid(b, gridPolicy{env}, of, o.Seed, func(store *model.Store) (float64, error) {
			tables, err := dag.Tabulate(b, store, "/phi", gridPolicy{env}, blank)
			if err != nil {
				return 0, err
			}
			return gfn.TotalVariation(dag.Terminating(tables[0]), target), nil
		})
		if err != nil {
			return fmt.Errorf("%s: %w", of.name, err)
		}
		r.Workload = of.name
		if err := each(r); err != nil {
			return err
		}
	}
	return nil
}

// learnGrid trains a policy until its variation is small.
func learnGrid(
	b compute.Backend, policy gridPolicy, o gfn.Objective, seed uint64, variation func(*model.Store) (float64, error),
) (Result, error) {
	const batch, most, check = 64, 20_000, 50
	s := program.NewSet(b, nn.NewStore(seed))
	defer s.Close()
	opt := optim.Optimizer{Groups: []optim.Group{
		{Scope: "/phi", Rate: optim.Rate{
			Base: 2e-3, Drops: []optim.Drop{{Step: 4000, Factor: 0.3}, {Step: 10_000, Factor: 0.3}},
		}},
		{Scope: "/phi/partition", Rate: optim.Rate{Base: 5e-2, Drops: []optim.Drop{{Step: 4000, Factor: 0.1}}}},
	}}
	p := update(s, opt, func(in inputs[*Node]) *Node {
		g := in.Key.Graph()
		net := gfn.Net{Env: policy.env, Policy: policy, Scope: s.Store.Scope("/phi")}
		x := gfn.Batch{Zeros(g, shapes.Make(dtypes.Float32, batch, 1))}
		tr := net.Rollout(rng.In(in.Key), x, nil, gfn.Behaviour{Epsilon: Const(g, float32(0.1))})
		logR := ConvertDType(policy.env.LogReward(x, tr.Last()), dtypes.Float32)
		return ReduceAllMean(o.Loss(net.Path(tr, net.Score(tr, gfn.Behaviour{}), logR, nil)))
	})
	var times []time.Duration
	tv := 1.0
	begin := time.Now()
	for tv > smallVariation && len(times) < most {
		start, at := time.Now(), uint64(len(times))
		in := inputs[*tensors.Tensor]{Key: rng.Key(seed, "hypergrid", at), Rates: tensors.FromValue(opt.Rates(at))}
		if _, err := p.Call(in); err != nil {
			return Result{}, err
		}
		if times = append(times, time.Since(start)); len(times)%check == 0 {
			var err error
			if tv, err = variation(s.Store); err != nil {
				return Result{}, err
			}
		}
	}
	r := summary(times)
	r.Values = map[string]float64{"seconds": time.Since(begin).Seconds(), "total_variation": tv}
	return r, nil
}
