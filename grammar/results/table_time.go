package results

import (
	"context"
	"slices"
	"time"

	"github.com/gfnem/gfnem/grammar/induce"
	"github.com/gfnem/gfnem/run"
)

// time measures how long M-steps of every row take, now that no training is going on beside them.
func (r *reproduced) time(ctx context.Context, s run.Study, cells []run.Cell) error {
	for i := range r.Rows {
		first := slices.IndexFunc(cells, func(c run.Cell) bool { return c.Row == r.Rows[i].Key })
		took, err := timed(ctx, s, *cells[first].Config.(*induce.Config))
		if err != nil {
			return err
		}
		r.Rows[i].Milliseconds = float64(took) / float64(time.Millisecond)
	}
	r.Shown = r.of.show(r)
	return nil
}

// timed is the median time of an iteration of a training with an M-step, once the programs are compiled.
func timed(ctx context.Context, s run.Study, c induce.Config) (time.Duration, error) {
	const warmUp, measured = 30, 41 // programs come in several sizes
	c.Gate.Threshold, c.Gate.ThresholdEnd, c.Eval.Every, c.Eval.Patience, c.MaxIterations, c.Restarts, c.Prior.Updates = 1e300, 1e300, 0, 0, 0, 1, 0
	c.Updates = warmUp + measured
	session, err := induce.Task{}.Start(s.Backend, &c)
	if err != nil {
		return 0, err
	}
	defer session.Close()
	var times []time.Duration
	for !session.Done() && ctx.Err() == nil {
		before, _ := session.Counts()
		begin := time.Now()
		if _, err := session.Step(); err != nil {
			return 0, err
		}
		if now, _ := session.Counts(); now > max(before, warmUp) {
			times = append(times, time.Since(begin))
		}
	}
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	slices.Sort(times)
	return times[len(times)/2], nil
}
