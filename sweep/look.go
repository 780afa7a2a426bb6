package sweep

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// look sets cells back whose workers were silent for the time of a lease, posts again what nobody takes, and writes the
// status.
func (c *collection) look(ctx context.Context, now time.Time) error {
	for key := range c.claimed {
		s := c.seen[key]
		if now.Sub(s.at) < c.Lease {
			continue
		}
		if err := c.lose(ctx, key, c.entries[key], s.revision); err != nil && !errors.Is(err, errStale) {
			return err
		}
	}
	if len(c.open) > len(c.claimed) && now.Sub(c.posted) > c.Lease {
		c.posted = now
		if err := c.repost(ctx); err != nil {
			return err
		}
	}
	if now.Sub(c.swept) > 30*time.Minute {
		c.swept = now
		var err error
		if c.orphans, err = c.sweep(ctx); err != nil {
			return err
		}
	}
	return c.status.write(c, false)
}

// sweep removes what killed workers have left on the server.
func (c *collection) sweep(ctx context.Context) (orphans, error) {
	jobs := make([]job, 0, len(c.jobs))
	for _, j := range c.jobs {
		jobs = append(jobs, j)
	}
	return c.board.sweepBlobs(ctx, referred(c.entries, jobs), c.orphans)
}

// lose sets a cell back whose worker is gone.
func (c *collection) lose(ctx context.Context, key string, e entry, revision uint64) error {
	const most = 20 // workers in a row, without a checkpoint between
	e.Broken = nil
	if e.Lost++; e.Lost < most {
		return c.board.offer(ctx, key, e, revision)
	}
	e.State, e.Error = failed, fmt.Sprintf("%d workers in a row have ended while they made it: does it need too much memory?", most)
	return c.board.update(ctx, key, e, revision)
}

// repost tells workers of cells again if the queue is empty: a message was lost, when a disk lost what it had not
// written.
func (c *collection) repost(ctx context.Context) error {
	stream, err := c.board.js.Stream(ctx, bucket(c.board.id))
	if err != nil {
		return boardError(err)
	}
	if stream.CachedInfo().State.Msgs > 0 {
		return nil
	}
	for key := range c.open {
		if c.entries[key].State == todo {
			if err := c.board.post(ctx, key); err != nil {
				return err
			}
		}
	}
	return nil
}
