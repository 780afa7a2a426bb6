package program_test

import (
	"errors"
	"runtime"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"

	"github.com/gfnem/gfnem/backend"
	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/internal/memory"
	"github.com/gfnem/gfnem/internal/program"
)

// A program whose values in between need petabytes is refused before it runs, by both backends of this process.
func TestTooLargeToRun(t *testing.T) {
	if runtime.GOOS != "linux" && runtime.GOOS != "darwin" {
		t.Skip("how much memory there is is not known here")
	}
	type nodes struct{ Graph *Graph }
	for _, name := range []string{"simd", "go"} {
		b, err := backend.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		for dim, refused := range map[int]bool{1 << 4: false, 1 << 22: true} {
			_, err = program.Once[struct{}, pair[float64]](b, nil, "wide", func(in nodes) pair[*Node] {
				x := Iota(in.Graph, shapes.Make(dtypes.Float32, dim, 2), 0)
				y := DotGeneral(Sin(x), []int{1}, nil, x, []int{1}, nil) // [dim,dim]
				sum := ReduceAllSum(Mul(y, Transpose(y, 0, 1)))
				return pair[*Node]{sum, sum}
			}, struct{}{})
			var e *memory.Error
			if got := errors.As(err, &e) && errors.As(err, new(*badinput.Error)); got != refused || err != nil && !refused {
				t.Errorf("%s, %d numbers squared: %v", name, dim, err)
			}
			if refused && e != nil && e.What != "program wide" {
				t.Errorf("%s names %q", name, e.What)
			}
		}
		b.Finalize()
	}
}
