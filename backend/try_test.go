package backend

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
)

func TestTryNothing(t *testing.T) {
	ran := false
	if err := Try(func() { ran = true }); err != nil || !ran {
		t.Errorf("Try = %v, ran = %v", err, ran)
	}
}

func TestTryGraph(t *testing.T) {
	b := open(t, "go")
	err := Try(func() {
		graph.MustExecOnce(b, func(x, y *graph.Node) *graph.Node { return graph.Add(x, y) },
			[]float32{1, 2}, []float32{1, 2, 3})
	})
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("Try = %v", err)
	}
	if strings.Contains(err.Error(), "\n") || err.Error() == "" {
		t.Errorf("message is not one line: %q", err)
	}
	if full := fmt.Sprintf("%+v", err); full != e.Detail() || !strings.Contains(full, "recovered at:") || !strings.Contains(full, ".go:") {
		t.Errorf("%%+v says too little: %s", full)
	}
	// Another error around it keeps the whole text within reach.
	if wrapped := fmt.Errorf("sleep update: %w", err); !errors.As(wrapped, &e) || strings.Contains(wrapped.Error(), "\n") {
		t.Errorf("wrapped: %v", wrapped)
	}
}

func TestTryValues(t *testing.T) {
	cause := fmt.Errorf("read x: %w", fs.ErrNotExist)
	if err := Try(func() { panic(cause) }); !errors.Is(err, fs.ErrNotExist) || err.Error() != cause.Error() {
		t.Errorf("an error: %v", err)
	}
	err := Try(func() { panic("\n  shapes differ\n[2] and [3]") })
	if err == nil || err.Error() != "shapes differ" || fmt.Sprintf("%s|%q", err, err) != `shapes differ|"shapes differ"` {
		t.Errorf("a text: %v", err)
	}
	if !strings.Contains(fmt.Sprintf("%+v", err), "[2] and [3]") {
		t.Errorf("%%+v lost the second line: %+v", err)
	}
	if err := Try(func() { panic(nil) }); err == nil {
		t.Error("panic(nil) went unseen")
	}
	if err := Try(func() { panic("") }); err == nil || err.Error() == "" {
		t.Errorf("an empty text: %v", err)
	}
	if err := (&Error{Op: `backend "xla"`, Cause: errors.New("no\nGPU")}); err.Error() != `backend "xla": no` || err.Detail() != "backend \"xla\": no\nGPU" {
		t.Errorf("%v; %+v", err, err)
	}
}

func ExampleTry() {
	err := Try(func() { panic(errors.New("model: 3 layers, want 2\nand lots of detail")) })
	fmt.Println(err)
	// Output: model: 3 layers, want 2
}
