package forest_test

import (
	"testing"

	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/gfn/envtest"
	"github.com/gfnem/gfnem/grammar/forest"
)

func TestEnv(t *testing.T) {
	words := tensors.FromValue([][]int32{{0, 0, 0, 0}, {0, 0, 0, 0}, {0, 0, 0, 0}})
	envtest.Run(t, forest.Env{Words: 4, Labels: 2}, words, tensors.FromValue([]int32{4, 2, 3}))
}
