package run

import "fmt"

// InputError is an error that the user can mend: a key, a file or a folder that was named wrongly. Its message is
// one line. A program that meets one ends with exit code 2.
type InputError struct {
	Err error
}

func (e *InputError) Error() string { return e.Err.Error() }
func (e *InputError) Unwrap() error { return e.Err }

// Inputf returns an InputError made like fmt.Errorf makes its errors.
func Inputf(format string, args ...any) error {
	return &InputError{Err: fmt.Errorf(format, args...)}
}
