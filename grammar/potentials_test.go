package grammar

import (
	"math"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
)

// Shapes that do not fit are errors that say so, not panics.
func TestBadPotentials(t *testing.T) {
	for name, c := range map[string]struct {
		root, rules, terms []int
		lengths            int
		want               string
	}{
		"one word":         {[]int{2}, []int{2, 5, 5}, []int{4, 1, 3}, 4, "no nonterminal covers a single word"},
		"root":             {[]int{3}, []int{2, 5, 5}, []int{4, 3, 3}, 4, "root"},
		"rules":            {[]int{2}, []int{2, 4, 5}, []int{4, 3, 3}, 4, "rules"},
		"no nonterminals":  {[]int{2}, []int{2, 3, 3}, []int{4, 3, 3}, 4, "rules"},
		"rules of parents": {[]int{2}, []int{2, 2, 5, 5}, []int{4, 3, 3, 2}, 4, "rules"},
		"terms":            {[]int{2}, []int{2, 3, 5, 5}, []int{4, 3, 3, 3}, 4, "terms"},
		"terms of rank 2":  {[]int{2}, []int{2, 5, 5}, []int{4, 3}, 4, "terms"},
		"lengths":          {[]int{2}, []int{2, 5, 5}, []int{4, 3, 3}, 3, "lengths"},
	} {
		_, err := CallOnceN(newBackend(), func(g *Graph) []*Node {
			zeros := func(dims []int) *Node { return Zeros(g, shapes.Make(dtypes.Float32, dims...)) }
			return []*Node{LogLikelihood(Potentials{
				Root: zeros(c.root), Rules: zeros(c.rules), Terms: zeros(c.terms), Lengths: Zeros(g, shapes.Make(dtypes.Int32, c.lengths)),
			})}
		})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// padded is likelihoods, their gradient to the words, and trees.
type padded[T any] struct{ LogX, Gradient, Left T }

// A sentence that is too short or too long for its batch has no derivations, and its neighbours do not mind.
func TestBadLengths(t *testing.T) {
	g := tiny(CFG)
	words := tensors.FromValue([][]int32{{0, 1, 2}, {0, 1, 2}, {0, 1, 2}, {0, 1, 2}})
	p := newProgram[padded[*tensors.Tensor]](func(p Potentials) padded[*Node] {
		like := LogLikelihood(p)
		finite := Where(GreaterThan(like, ConstAs(like, never)), like, ZerosLike(like))
		return padded[*Node]{like, Gradient(ReduceAllSum(finite), p.Terms)[0], p.MBR().Trees.Left}
	})
	out := p.run(t, g, words, tensors.FromValue([]int32{1, 3, 4, 2}))
	ok := p.run(t, g, words, tensors.FromValue([]int32{2, 3, 2, 2}))
	inf, logX := math.Inf(-1), floats(ok.LogX)
	same(t, "log p(x)", floats(out.LogX), []float64{inf, logX[1], inf, logX[3]})
	gradient := floats(out.Gradient)
	same(t, "gradient", gradient[6:12], floats(ok.Gradient)[6:12])
	same(t, "gradient of a bad sentence", gradient[12:18], make([]float64, 6))
}
