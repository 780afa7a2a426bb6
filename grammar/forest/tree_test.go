package forest

import (
	"fmt"
	"math"
	"slices"

	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/grammar"
)

// tree is a tree on the host: a word, or a node with two children. A forest there is a list of them.
type tree struct {
	first, last int
	gap, label  int   // of a node
	left, right *tree // nil for a word
}

// closing is a step of a path: the gap that it closes, and the label of the new node.
type closing struct{ gap, label int }

// bareWords is the forest that paths begin with.
func bareWords(n int) (f []*tree) {
	for i := range n {
		f = append(f, &tree{first: i, last: i})
	}
	return f
}

// after returns the forest that a step leads to.
func after(f []*tree, s closing) (out []*tree) {
	for i := 0; i < len(f); i++ {
		v := f[i]
		if v.last == s.gap {
			r := f[i+1]
			v = &tree{first: v.first, last: r.last, gap: s.gap, label: s.label, left: v, right: r}
			i++
		}
		out = append(out, v)
	}
	return out
}

// forests are the states of a path from bare words.
func forests(n int, path []closing) [][]*tree {
	all := [][]*tree{bareWords(n)}
	for _, s := range path {
		all = append(all, after(all[len(all)-1], s))
	}
	return all
}

// visit calls f for the nodes of a forest; above is nil for tops.
func visit(trees []*tree, f func(v, above *tree)) {
	var down func(v, above *tree)
	down = func(v, above *tree) {
		if v.left != nil {
			f(v, above)
			down(v.left, v)
			down(v.right, v)
		}
	}
	for _, v := range trees {
		down(v, nil)
	}
}

// shape writes a tree without labels.
func (v *tree) shape() string {
	if v.left == nil {
		return fmt.Sprint(v.first)
	}
	return "(" + v.left.shape() + " " + v.right.shape() + ")"
}

// inner counts the nodes of a tree.
func (v *tree) inner() (n int) {
	visit([]*tree{v}, func(_, _ *tree) { n++ })
	return n
}

// orders is the number of paths that lead to a tree: (n-1)! over the product of the sizes of its subtrees.
func (v *tree) orders() int {
	n := 1
	for i := range v.inner() {
		n *= i + 1
	}
	visit([]*tree{v}, func(u, _ *tree) { n /= u.inner() })
	return n
}

// key tells forests over n words apart.
func key(trees []*tree, n int) string {
	rows := make([][3]int, n-1)
	number := func(v *tree) int {
		if v.left == nil {
			return v.first
		}
		return n + v.gap
	}
	visit(trees, func(v, _ *tree) { rows[v.gap] = [3]int{v.label + 1, number(v.left), number(v.right)} })
	return fmt.Sprint(rows)
}

// allPaths lists all paths from n bare words to whole trees.
func allPaths(n, labels int) (out [][]closing) {
	var extend func(path []closing)
	extend = func(path []closing) {
		if len(path) == n-1 {
			out = append(out, append([]closing{}, path...))
			return
		}
		for gap := range n - 1 {
			if slices.ContainsFunc(path, func(s closing) bool { return s.gap == gap }) {
				continue
			}
			for label := range labels {
				extend(append(path[:len(path):len(path)], closing{gap, label}))
			}
		}
	}
	extend(nil)
	return out
}

// tinyGrammar is the grammar of the reference numbers: logits are sines and cosines of where they stand.
func tinyGrammar(kind grammar.Kind) *grammar.Grammar {
	g := grammar.New(kind, []string{"A", "B"}, []string{"T0", "T1"}, []string{"0", "1", "2"})
	parents, hosts := 1, 1
	if kind == grammar.NCFG {
		parents, hosts = 3, 2
	}
	softmax := func(row []float64, logit func(i float64) float64) {
		total := 0.0
		for i := range row {
			row[i] = math.Exp(logit(float64(i)))
			total += row[i]
		}
		for i := range row {
			row[i] /= total
		}
	}
	softmax(g.Root, func(i float64) float64 { return math.Sin(1 + i) })
	for x := range 2 {
		for p := range parents {
			softmax(g.RuleRow(x, p), func(i float64) float64 {
				v := math.Sin(1 + 16*float64(x) + i)
				if kind == grammar.NCFG {
					v += math.Cos(2 + 16*float64(p) + i)
				}
				return v
			})
		}
	}
	for t := range 2 {
		for x := range hosts {
			softmax(g.EmitRow(t, x), func(i float64) float64 {
				v := math.Cos(1 + float64(3*t) + i)
				if kind == grammar.NCFG {
					v += 0.5 * math.Sin(1+6*float64(x+1)+float64(3*t)+i)
				}
				return v
			})
		}
	}
	return g
}

// nodeScore is the log-probability of the rule of a node and of the words right below it, preterminals summed out;
// above is nil for the top of a sentence.
func nodeScore(g *grammar.Grammar, words []int32, v, above *tree) float64 {
	parent := 0
	if above != nil {
		parent = above.label + 1
	}
	nt, symbols := len(g.Nonterminals), len(g.Nonterminals)+len(g.Preterminals)
	// A child is its label, or a preterminal that emits its word.
	weights := func(c *tree) []float64 {
		w := make([]float64, symbols)
		if c.left != nil {
			w[c.label] = 1
			return w
		}
		for t := range g.Preterminals {
			w[nt+t] = g.EmitRow(t, v.label)[words[c.first]]
		}
		return w
	}
	l, r, total := weights(v.left), weights(v.right), 0.0
	for rule, p := range g.RuleRow(v.label, parent) {
		total += p * l[rule/symbols] * r[rule%symbols]
	}
	return math.Log(total)
}

// partialReward is that of a forest, as a logarithm: of all its nodes in a context-free grammar, and of those below
// others where the parent matters.
func partialReward(g *grammar.Grammar, words []int32, trees []*tree) (sum float64) {
	visit(trees, func(v, above *tree) {
		if g.Kind == grammar.CFG || above != nil {
			sum += nodeScore(g, words, v, above)
		}
	})
	return sum
}

// logJoint is log p(x,z).
func logJoint(g *grammar.Grammar, words []int32, z *tree) float64 {
	sum := math.Log(g.Root[z.label])
	visit([]*tree{z}, func(v, above *tree) { sum += nodeScore(g, words, v, above) })
	return sum
}

// hostPath is a path over a sentence; its first steps may be done before it begins.
type hostPath struct {
	words []int32
	steps []closing
	done  int
}

// historyTensors are a History on the host.
type historyTensors struct {
	Trees                                grammar.TreeTensors
	Leaves, Symbols, Length, When, Steps *tensors.Tensor
}

// pack makes tensors of paths, padded to n words.
func pack(n int, paths []hostPath) historyTensors {
	var left, right, label, when, leaves, length, steps []int32
	for _, p := range paths {
		l, r, x, w := make([]int32, n-1), make([]int32, n-1), make([]int32, n-1), make([]int32, n-1)
		number := func(v *tree) int32 {
			if v.left == nil {
				return int32(v.first)
			}
			return int32(n + v.gap)
		}
		visit(forests(len(p.words), p.steps)[len(p.steps)], func(v, _ *tree) {
			l[v.gap], r[v.gap], x[v.gap] = number(v.left), number(v.right), int32(v.label)
		})
		for i, s := range p.steps {
			w[s.gap] = int32(max(i-p.done, -1))
		}
		left, right, label, when = append(left, l...), append(right, r...), append(label, x...), append(when, w...)
		leaves = append(leaves, append(append([]int32{}, p.words...), make([]int32, n-len(p.words))...)...)
		length, steps = append(length, int32(len(p.words))), append(steps, int32(len(p.steps)-p.done))
	}
	two := func(x []int32, width int) *tensors.Tensor {
		return tensors.FromFlatDataAndDimensions(x, len(paths), width)
	}
	return historyTensors{
		Trees:  grammar.TreeTensors{Left: two(left, n-1), Right: two(right, n-1), Label: two(label, n-1)},
		Leaves: two(leaves, n), Length: tensors.FromValue(length), When: two(when, n-1), Steps: tensors.FromValue(steps),
	}
}

// pathsOf reads the paths that walks made.
func pathsOf(r *rig, walk WalkTensors) (out []hostPath) {
	labels := tensors.MustCopyFlatData[int32](walk.Forest.Label)
	return r.paths(labels, tensors.MustCopyFlatData[int32](walk.Made))
}

// paths are paths from bare words, given labels plus one and the step of each gap.
func (r *rig) paths(labels, when []int32) (out []hostPath) {
	words, lengths := tensors.MustCopyFlatData[int32](r.words), tensors.MustCopyFlatData[int32](r.lengths)
	for b, length := range lengths {
		p := hostPath{words: words[b*r.n:][:length], steps: make([]closing, length-1)}
		for gap := range int(length) - 1 {
			at := b*(r.n-1) + gap
			p.steps[when[at]] = closing{gap, int(labels[at]) - 1}
		}
		out = append(out, p)
	}
	return out
}

// potentials are those of a grammar for the sentences of histories, in double precision.
func potentials(g *grammar.Grammar, h History) grammar.Potentials {
	tables := g.LogProbs(dtypes.Float64)
	c := func(t *tensors.Tensor) *Node { return ConstCachedTensor(h.Leaves.Graph(), t) }
	return grammar.LogProbs{Root: c(tables.Root), Rules: c(tables.Rules), Emit: c(tables.Emit)}.For(h.Leaves, h.Length)
}
