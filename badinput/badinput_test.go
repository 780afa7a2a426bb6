package badinput

import (
	"errors"
	"fmt"
	"testing"
)

func TestErrorf(t *testing.T) {
	cause := errors.New("cause")
	err := fmt.Errorf("outer: %w", Errorf("inner: %w", cause))
	if !errors.As(err, new(*Error)) || !errors.Is(err, cause) || err.Error() != "outer: inner: cause" {
		t.Errorf("got %v", err)
	}
}
