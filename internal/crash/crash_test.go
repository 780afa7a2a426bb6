package crash_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/internal/crash"
)

func fall(value any) { panic(value) }

// run returns the error that a panic becomes.
func run(f func()) (err error) {
	defer crash.Recover(&err)
	f()
	return nil
}

func TestRecover(t *testing.T) {
	cause := errors.New("cause")
	for _, f := range []func(){
		func() { fall(cause) },
		func() {
			var g crash.Group
			g.Go(func() {})
			g.Go(func() { fall(cause) })
			g.Wait()
		},
	} {
		err := run(f)
		var e *crash.Error
		if !errors.As(err, &e) || !errors.Is(err, cause) || err.Error() != "internal error: cause" {
			t.Fatalf("error %v", err)
		}
		if !strings.Contains(string(e.Stack), "crash_test.fall") {
			t.Errorf("the stack does not show where it happened:\n%s", e.Stack)
		}
	}
	var index []int
	if err := run(func() { fmt.Println(index[3]) }); !strings.Contains(err.Error(), "out of range") {
		t.Errorf("error %v", err)
	}
	input := fmt.Errorf("outer: %w", badinput.Errorf("inner"))
	if err := run(func() { fall(input) }); err != input {
		t.Errorf("bad input became %v", err)
	}
	if err := run(func() {}); err != nil {
		t.Errorf("no panic became %v", err)
	}
}
