// Package crash carries panics to who can report them: across goroutines, and as errors.
package crash

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sync"

	"github.com/gfnem/gfnem/badinput"
)

// Error is a panic: a mistake of the program.
type Error struct {
	Value any
	Stack []byte // of the goroutine that panicked
}

func (e *Error) Error() string { return fmt.Sprintf("internal error: %v", e.Value) }

func (e *Error) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// Recover, deferred, turns a panic into an error. An error of badinput that was panicked with stays what it is.
func Recover(err *error) {
	if p := recover(); p != nil {
		*err = Of(p)
	}
}

// Of is the error that a panic becomes, with the stack of who panicked. It is called where the panic is recovered.
func Of(p any) error {
	if err, ok := p.(error); ok && (errors.As(err, new(*badinput.Error)) || errors.As(err, new(*Error))) {
		return err
	}
	return &Error{p, debug.Stack()}
}

// Group is goroutines that are waited for.
type Group struct {
	wg    sync.WaitGroup
	once  sync.Once
	first error
}

// Go runs f in a goroutine.
func (g *Group) Go(f func()) {
	g.wg.Go(func() {
		defer func() {
			if p := recover(); p != nil {
				g.once.Do(func() { g.first = Of(p) })
			}
		}()
		f()
	})
}

// Wait waits for all goroutines, and panics with the error of the first that panicked.
func (g *Group) Wait() {
	g.wg.Wait()
	if g.first != nil {
		panic(g.first)
	}
}
