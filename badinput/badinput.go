// Package badinput has the errors that the user of a program can mend: a key, a file or a folder that was named
// wrongly. A program that meets one prints its one line and ends with exit code 2.
package badinput

import "fmt"

// Error is an error that the user can mend. Its message is one line.
type Error struct {
	Err error
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// Errorf returns an Error made like fmt.Errorf makes its errors.
func Errorf(format string, args ...any) error {
	return &Error{Err: fmt.Errorf(format, args...)}
}
