package run

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/gfnem/gfnem/internal/crash"
)

// Grace is how long a step that has begun may go on after a signal, so that it can be saved.
var Grace = 10 * time.Second

// ErrBusy says that what was interrupted goes on in the background. What it uses must be neither used nor closed any more:
// a program that meets it had better end.
var ErrBusy = errors.New("in the middle of a step")

// Release closes a session unless an error says that it is busy still.
func Release(s Session, err error) {
	if !errors.Is(err, ErrBusy) {
		s.Close()
	}
}

// Await calls f, a step or something as long, and returns what it returns, or panics as it does. When ctx ends, f has a grace
// time left; then Await returns ErrInterrupted and ErrBusy, and f goes on in the background.
func Await[T any](ctx context.Context, grace time.Duration, f func() (T, error)) (T, error) {
	done := make(chan ending[T], 1)
	go func() {
		o := ending[T]{exited: true}
		defer func() {
			if p := recover(); p != nil {
				o.panicked = crash.Of(p)
			}
			done <- o
		}()
		o.value, o.err = f()
		o.exited = false
	}()
	select {
	case o := <-done:
		return o.results()
	case <-ctx.Done():
	}
	late := time.NewTimer(grace)
	defer late.Stop()
	select {
	case o := <-done:
		return o.results()
	case <-late.C:
		var none T
		return none, fmt.Errorf("%w %w", ErrInterrupted, ErrBusy)
	}
}

// ending is how a call ended.
type ending[T any] struct {
	value    T
	err      error
	panicked error
	exited   bool // it ended its goroutine, as the FailNow of a test does
}

func (o ending[T]) results() (T, error) {
	if o.panicked != nil {
		panic(o.panicked)
	} else if o.exited {
		runtime.Goexit()
	}
	return o.value, o.err
}
