package forest

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/grammar"
)

// listing is all forests over a sentence, for exact answers.
type listing struct {
	*gfn.DAG
	words  []int32
	forest [][]*tree      // by state
	index  map[string]int // of states, by key
	edge   map[[2]int]int // by state and action
}

func list(t testing.TB, labels int, words ...int32) *listing {
	t.Helper()
	env := Env{Words: len(words), Labels: labels}
	d, err := gfn.Enumerate(shared(), env, observation(words), 100_000)
	if err != nil {
		t.Fatal(err)
	}
	l := &listing{DAG: d, words: words, index: map[string]int{}, edge: map[[2]int]int{}}
	l.forest = readForests(fromState(d.States()))
	for s, f := range l.forest {
		l.index[key(f, len(words))] = s
	}
	for i, e := range d.Edges {
		l.edge[[2]int{e.From, e.Action}] = i
	}
	if len(l.index) != d.Len() {
		t.Fatalf("%d forests, %d of them different", d.Len(), len(l.index))
	}
	return l
}

func observation(words []int32) []*tensors.Tensor {
	return []*tensors.Tensor{tensors.FromValue([][]int32{words}), tensors.FromValue([]int32{int32(len(words))})}
}

// fromState is FromState on the host.
func fromState(s []*tensors.Tensor) ForestTensors {
	return ForestTensors{Label: s[0], Left: s[1], Right: s[2], Root: s[3], First: s[4], Last: s[5], Length: s[6]}
}

// readForests makes trees of forests, row by row.
func readForests(f ForestTensors) (out [][]*tree) {
	gaps := f.Label.Shape().Dim(1)
	flat := tensors.MustCopyFlatData[int32]
	label, left, right := flat(f.Label), flat(f.Left), flat(f.Right)
	for row, length := range flat(f.Length) {
		of := func(x []int32) []int32 { return x[row*gaps:][:gaps] }
		out = append(out, readForest(of(label), of(left), of(right), int(length)))
	}
	return out
}

// readForest makes trees of what a forest says of each gap; words beyond length are padding.
func readForest(label, left, right []int32, length int) (tops []*tree) {
	n := len(label) + 1
	nodes := append(bareWords(n), make([]*tree, n-1)...)
	below := map[int32]bool{}
	for g, x := range label {
		if x > 0 {
			nodes[n+g] = &tree{gap: g, label: int(x) - 1}
			below[left[g]], below[right[g]] = true, true
		}
	}
	for g, x := range label {
		if x > 0 {
			nodes[n+g].left, nodes[n+g].right = nodes[left[g]], nodes[right[g]]
		}
	}
	var cover func(v *tree)
	cover = func(v *tree) {
		if v.left != nil {
			cover(v.left)
			cover(v.right)
			v.first, v.last = v.left.first, v.right.last
		}
	}
	for i, v := range nodes {
		if v != nil && !below[int32(i)] && (i >= n || i < length) {
			cover(v)
			tops = append(tops, v)
		}
	}
	slices.SortFunc(tops, func(a, b *tree) int { return cmp.Compare(a.first, b.first) })
	return tops
}

// edges are those that a path from bare words takes, and states those that it passes.
func (l *listing) edges(path []closing) (edges, states []int) {
	at := 0
	states = []int{0}
	for _, s := range path {
		e := l.edge[[2]int{at, s.gap*l.Env.(Env).Labels + s.label}]
		at = l.Edges[e].To
		edges, states = append(edges, e), append(states, at)
	}
	return edges, states
}

// rewards are log p(x,z), by object.
func (l *listing) rewards(g *grammar.Grammar) (logR []float64) {
	for _, s := range l.Objects {
		logR = append(logR, logJoint(g, l.words, l.forest[s][0]))
	}
	return logR
}

// paths are all paths from bare words, as those of a batch.
func (l *listing) paths() (out []hostPath) {
	for _, steps := range allPaths(len(l.words), l.Env.(Env).Labels) {
		out = append(out, hostPath{words: l.words, steps: steps})
	}
	return out
}

// TestCounting compares the environment with closed forms: labelled trees, paths, and the paths that lead to each tree.
func TestCounting(t *testing.T) {
	t.Parallel()
	catalan := []int{1, 1, 2, 5, 14}
	shapes := map[int]map[int]int{2: {1: 1}, 3: {1: 2}, 4: {1: 4, 2: 1}, 5: {1: 8, 2: 2, 3: 4}} // how many have so many orders
	for _, c := range []struct{ n, labels int }{{2, 3}, {3, 3}, {4, 2}, {5, 1}, {5, 2}} {
		l := list(t, c.labels, make([]int32, c.n)...)
		trees, paths := catalan[c.n-1], 1
		for i := range c.n - 1 {
			trees *= c.labels
			paths *= (i + 1) * c.labels
		}
		if len(l.Objects) != trees {
			t.Errorf("%+v: %d trees, want %d", c, len(l.Objects), trees)
		}
		ways := make([]int, l.Len())
		ways[0] = 1
		for _, e := range l.Edges {
			ways[e.To] += ways[e.From]
		}
		total, seen := 0, map[int]int{}
		kinds := map[string]bool{}
		for _, s := range l.Objects {
			z := l.forest[s][0]
			if len(l.forest[s]) != 1 || ways[s] != z.orders() {
				t.Errorf("%+v: %d paths lead to %s, want %d", c, ways[s], z.shape(), z.orders())
			}
			total += ways[s]
			if !kinds[z.shape()] {
				kinds[z.shape()] = true
				seen[ways[s]]++
			}
		}
		if total != paths || len(allPaths(c.n, c.labels)) != paths {
			t.Errorf("%+v: %d paths, want %d", c, total, paths)
		}
		if fmt.Sprint(seen) != fmt.Sprint(shapes[c.n]) {
			t.Errorf("%+v: numbers of orders %v, want %v", c, seen, shapes[c.n])
		}
	}
}
