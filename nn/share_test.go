package nn

import (
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
)

// A parameter that exists is not taken for one of another shape or dtype, and the error names the line that asks.
func TestParamKeepsItsShape(t *testing.T) {
	type layer = func(*model.Scope, *Graph) *Node
	ones := func(g *Graph, dtype dtypes.DType, dims ...int) *Node {
		return OnePlus(Zeros(g, shapes.Make(dtype, dims...)))
	}
	linear := func(dtype dtypes.DType, in, out int) layer {
		return func(s *model.Scope, g *Graph) *Node { return Linear(s, ones(g, dtype, 2, in), out) }
	}
	for name, c := range map[string]struct {
		path          string
		first, second layer
	}{
		"Linear, width": {"/a/weights", linear(dtypes.Float32, 3, 4),
			linear(dtypes.Float32, 3, 5)},
		"Linear, input": {"/a/weights", linear(dtypes.Float32, 3, 4),
			linear(dtypes.Float32, 2, 4)},
		"Linear, dtype": {"/a/weights", linear(dtypes.Float32, 3, 4),
			linear(dtypes.Float64, 3, 4)},
		"Param": {"/a/w", func(s *model.Scope, g *Graph) *Node { return Param(s, g, dtypes.Float32, "w", 1, 3) },
			func(s *model.Scope, g *Graph) *Node { return Param(s, g, dtypes.Float32, "w", 1, 1, 3) }},
		"ParamLike": {"/a/w", func(s *model.Scope, g *Graph) *Node { return Param(s, g, dtypes.Float32, "w", 1, 3) },
			func(s *model.Scope, g *Graph) *Node { return ParamLike(s, g, dtypes.Float32, "w", "/b", 1) }},
		"Normal": {"/a/w", func(s *model.Scope, g *Graph) *Node { return Normal(s, g, dtypes.Float32, "w", 1) },
			func(s *model.Scope, g *Graph) *Node { return Normal(s, g, dtypes.Float32, "w", 1, 2) }},
		"LayerNorm": {"/a/scale", func(s *model.Scope, g *Graph) *Node { return LayerNorm(s, ones(g, dtypes.Float32, 2, 3)) },
			func(s *model.Scope, g *Graph) *Node { return LayerNorm(s, ones(g, dtypes.Float32, 2, 1)) }},
		"Conv": {"/a/weights", func(s *model.Scope, g *Graph) *Node {
			return Conv{Channels: 2, Window: SquareWindow(1, 1, 0)}.Apply(s, ones(g, dtypes.Float32, 1, 2, 2, 1))
		}, func(s *model.Scope, g *Graph) *Node {
			return Conv{Channels: 3, Window: SquareWindow(1, 1, 0)}.Apply(s, ones(g, dtypes.Float32, 1, 2, 2, 1))
		}},
	} {
		store, b := model.NewStore(), newBackend(t)
		call := func(f func(*model.Scope, *Graph) *Node) error {
			_, err := model.CallOnce(b, store, func(_ *model.Scope, g *Graph) *Node { return f(store.Scope("/a"), g) })
			return err
		}
		for range 2 { // the same again is the same
			if err := call(c.first); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		err := call(c.second)
		if err == nil || !strings.Contains(err.Error(), "share_test.go:") || !strings.Contains(err.Error(), c.path+" is ") {
			t.Errorf("%s: error %v, want one that names the place and %s", name, err, c.path)
		}
	}
}
