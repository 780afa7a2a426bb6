package engine_test

import (
	"errors"
	"runtime"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"

	"github.com/gfnem/gfnem/engine"
	"github.com/gfnem/gfnem/internal/memory"
)

// A buffer that no memory holds is an error, not the end of the process.
func TestTooLargeBuffer(t *testing.T) {
	if runtime.GOOS != "linux" && runtime.GOOS != "darwin" {
		t.Skip("how much memory there is is not known here")
	}
	b, err := engine.New("")
	if err != nil {
		t.Fatal(err)
	}
	defer b.Finalize()
	_, _, err = b.NewSharedBuffer(0, shapes.Make(dtypes.Float32, 1<<21, 1<<21))
	if !errors.As(err, new(*memory.Error)) {
		t.Errorf("error %v", err)
	}
	if _, _, err = b.NewSharedBuffer(0, shapes.Make(dtypes.Float32, 4)); err != nil {
		t.Errorf("and then a small one: %v", err)
	}
}
