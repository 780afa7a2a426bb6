package em

import (
	"errors"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/rng"
)

// checkBest refuses what MStep.Best leaves no room for.
func (s Spec) checkBest() error {
	m := s.MStep
	if !m.Best {
		return nil
	}
	if s.Gate != (Gate{}) || m.Data != nil || m.Samples > 1 || m.Greedy || m.Moves > 0 || m.ClosedForm {
		return errors.New("em: MStep.Best has the batches and latents of E-updates: leave Gate and MStep's Data, Samples, Greedy, Moves and ClosedForm at zero")
	}
	if s.Sleep.Alone || s.Sleep.Weight != 0 && !s.Sleep.Apart {
		return errors.New("em: MStep.Best needs wake updates, and Sleep to be Apart")
	}
	return nil
}

// best takes, of k states in a row, the one with the greatest reward.
func best(z gfn.State, logR *Node, k int) gfn.State {
	rows := logR.Shape().Dim(0) / k
	first := MulScalar(Iota(logR.Graph(), shapes.Make(dtypes.Int32, rows), 0), k)
	at := Add(first, ArgMax(Reshape(StopGradient(logR), rows, k), 1, dtypes.Int32))
	out := make(gfn.State, len(z))
	for i, t := range z {
		out[i] = Gather(t, InsertAxes(at, -1))
	}
	return out
}

// wakeAndMaximize makes an E- and an M-update with the same latents.
func (l *Learner) wakeAndMaximize(r *rng.Stream, x gfn.Batch, how gfn.Behaviour, rates *Node) *Node {
	wake, m := l.spec.Wake.Optimizer, l.spec.MStep.Optimizer
	u := l.seen(x)
	lossE, z, logR := l.wakeLoss(r, x, u, how)
	draw := func() gfn.State { return l.net().Rollout(r, u, nil, gfn.Behaviour{}).Last() }
	lossM := l.spec.MStep.Loss(l.theta(), x, best(z, logR, l.spec.Wake.Samples), draw)
	ofE, ofM := SliceAxis(rates, 0, AxisRange(0, len(wake.Groups))), SliceAxis(rates, 0, AxisRangeToEnd(len(wake.Groups)))
	return Concatenate([]*Node{
		numbers(lossE, wake.Minimize(l.store, lossE, ofE), nil), numbers(lossM, m.Minimize(l.store, lossM, ofM), nil),
	}, 0)
}
