package run

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
)

// ErrInterrupted says that a signal ended the run, which can go on from what it has saved. A program that meets it ends
// with exit code 3.
var ErrInterrupted = errors.New("interrupted")

// WithSignals returns a context that SIGINT or SIGTERM cancels, with the cause ErrInterrupted. From then on these
// signals act as if nobody listened: a second one ends the process at once. The caller must call stop when it no
// longer listens.
func WithSignals(parent context.Context) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	done := make(chan struct{})
	go func() {
		defer close(done)
		cause := context.Canceled
		select {
		case <-signals:
			cause = ErrInterrupted
		case <-ctx.Done():
		}
		// Before cancelling, so that whoever sees the context cancelled can count on the second signal.
		signal.Stop(signals)
		cancel(cause)
	}()
	return ctx, func() {
		cancel(context.Canceled)
		<-done
	}
}
