package lvm_test

import (
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/backend"
	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/internal/program"
	"github.com/gfnem/gfnem/lvm"
	"github.com/gfnem/gfnem/rng"
)

// crooked is a model whose answers have the dimensions that a test asks for.
type crooked struct{ joint, x, z []int }

func floats(g *Graph, dims []int) *Node { return Zeros(g, shapes.Make(dtypes.Float32, dims...)) }

func (m crooked) LogJoint(_ *model.Scope, x gfn.Batch, _ gfn.State) *Node {
	return floats(x[0].Graph(), m.joint)
}

func (m crooked) Sample(_ *model.Scope, r *rng.Stream, n int) (gfn.Batch, gfn.State) {
	g := r.Uniform(dtypes.Float32, n).Graph()
	return gfn.Batch{floats(g, m.x)}, gfn.State{floats(g, m.z)}
}

// tabled scores tables by itself.
type tabled struct{ crooked }

func (m tabled) LogJointTable(_ *model.Scope, x gfn.Batch, _ gfn.State) *Node {
	return floats(x[0].Graph(), m.joint)
}

// What a model returns is not broadcast nor reshaped, and the error names the method.
func TestShapes(t *testing.T) {
	b, err := backend.Open("simd")
	if err != nil {
		t.Fatal(err)
	}
	defer b.Finalize()
	check := func(err error, want string) {
		t.Helper()
		if want == "" {
			if err != nil {
				t.Error(err)
			}
			return
		}
		if err == nil || !strings.Contains(err.Error(), "shape_test.go:") || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one at a line of shape_test.go with %q", err, want)
		}
	}

	for _, c := range []struct {
		m    lvm.Model
		want string
	}{
		{crooked{joint: []int{6}}, ""},
		{crooked{joint: []int{3, 2}}, "LogJoint is (Float32)[3, 2], not (floats)[6]"},
		{crooked{}, "LogJoint is (Float32), not (floats)[6]"},
		{tabled{crooked{joint: []int{3, 2}}}, ""},
		{tabled{crooked{joint: []int{6}}}, "LogJointTable is (Float32)[6], not (floats)[3, 2]"},
		{tabled{crooked{joint: []int{2, 3}}}, "LogJointTable is (Float32)[2, 3], not (floats)[3, 2]"},
	} {
		type both[T any] struct{ X, Z T }
		type table[T any] struct{ LogP T }
		type tensorsIn = both[*tensors.Tensor]
		in := tensorsIn{tensors.FromValue([]float32{1, 2, 3}), tensors.FromValue([]int32{1, 2})}
		score := func(in both[*Node]) table[*Node] {
			return table[*Node]{lvm.Table(c.m, model.NewStore().RootScope(), gfn.Batch{in.X}, gfn.State{in.Z})}
		}
		_, err := program.Once[tensorsIn, table[*tensors.Tensor]](b, nil, "table", score, in)
		check(err, c.want)
	}

	for _, c := range []struct {
		x, z []int
		want string
	}{
		{[]int{5, 2}, []int{5}, ""},
		{[]int{4, 2}, []int{5}, "Sample.x has (Float32)[4, 2] as tensor 0, not 5 rows"},
		{[]int{5, 2}, []int{1, 5}, "Sample.z has (Float32)[1, 5] as tensor 0, not 5 rows"},
		{nil, []int{5}, "Sample.x has (Float32) as tensor 0"},
	} {
		_, err := lvm.Draw(b, model.NewStore().RootScope(), crooked{x: c.x, z: c.z}, rng.Key(1, "draw"), 5)
		check(err, c.want)
	}
}
