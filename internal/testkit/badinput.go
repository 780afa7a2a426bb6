package testkit

import (
	"errors"
	"testing"

	"github.com/gfnem/gfnem/badinput"
)

// BadInput checks that an error is one of bad input, with exactly this message.
func BadInput(t testing.TB, err error, want string) {
	t.Helper()
	if !errors.As(err, new(*badinput.Error)) {
		t.Errorf("error is none of bad input: %v", err)
	}
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}
