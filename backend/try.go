package backend

import (
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strings"
)

// Error is a failure inside GoMLX or a plugin. Its message is one line; %+v, or Detail, gives the whole text with the
// stack, and Unwrap the cause.
type Error struct {
	Op    string // what was being done, or ""
	Cause error
	Stack []byte // where a panic was recovered, or nil

	root bool // whether the message is that of the innermost cause, the others only repeating Op
}

var (
	_ error         = (*Error)(nil)
	_ fmt.Formatter = (*Error)(nil)
)

// Error returns the operation and the first line of the cause.
func (e *Error) Error() string {
	cause := e.Cause
	for inner := errors.Unwrap(cause); e.root && inner != nil; inner = errors.Unwrap(cause) {
		cause = inner
	}
	msg := firstLine(cause.Error())
	if e.Op == "" {
		return msg
	}
	return e.Op + ": " + msg
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Detail returns the whole text of the cause, its own stack if it carries one, and the stack of the panic.
func (e *Error) Detail() string {
	var s strings.Builder
	if e.Op != "" {
		s.WriteString(e.Op + ": ")
	}
	fmt.Fprintf(&s, "%+v", e.Cause)
	if len(e.Stack) > 0 {
		fmt.Fprintf(&s, "\n\nrecovered at:\n%s", e.Stack)
	}
	return s.String()
}

// Format prints Detail for %+v and the message for every other verb.
func (e *Error) Format(f fmt.State, verb rune) {
	switch {
	case verb == 'v' && f.Flag('+'):
		io.WriteString(f, e.Detail())
	case verb == 'q':
		fmt.Fprintf(f, "%q", e.Error())
	default:
		io.WriteString(f, e.Error())
	}
}

// Try runs f and returns the panic that ended it, if any, as an *Error; errors.Is and errors.As reach a panic value
// that is an error. It is the one place where panics of GoMLX become errors: call it where our packages meet a graph.
//
// A panic in another goroutine is out of its reach. A function that builds a graph must panic with an error
// (panic(fmt.Errorf(...))), never with a text: GoMLX v0.28 leaves the compilation pending after the latter, and the next
// call or the Finalize of that graph.Exec waits for ever.
func Try(f func()) (err error) {
	defer func() {
		switch v := recover().(type) {
		case nil:
		case error:
			err = &Error{Cause: v, Stack: debug.Stack()}
		default:
			err = &Error{Cause: errors.New(fmt.Sprint(v)), Stack: debug.Stack()}
		}
	}()
	f()
	return nil
}

// firstLine returns the first line of s that says something.
func firstLine(s string) string {
	for line := range strings.Lines(s) {
		if line = strings.TrimSpace(line); line != "" {
			return line
		}
	}
	return "failed without a message"
}

// oneLine joins the words of s with single spaces.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
