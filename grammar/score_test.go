package grammar

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/internal/program"
	"github.com/gfnem/gfnem/internal/testkit"
)

// randomTree merges random neighbours under random labels, and draws tags.
func randomTree(r *rand.Rand, n, nt, pt int) *Tree {
	t := RandomTree(r, n, nt)
	for range n {
		t.Tags = append(t.Tags, r.IntN(pt))
	}
	return t
}

// parsed is tables and sentences with trees and tags.
type parsed[G, Z, T any] struct {
	Given given[G, T]
	Trees Z
	Tags  T
}

type parsedTensors = parsed[LogProbTensors, TreeTensors, *tensors.Tensor]

// treeScorer runs a function of potentials, trees and tags.
type treeScorer[Out any] struct {
	*program.Program[parsedTensors, Out]
}

func treeProgram[Out, NodesOut any](f func(p Potentials, z Trees, tags *Node) NodesOut) treeScorer[Out] {
	set := program.NewSet(newBackend(), nil)
	return treeScorer[Out]{program.New[parsedTensors, Out](set, "test", func(in parsed[LogProbs, Trees, *Node]) NodesOut {
		return f(in.Given.Tables.For(in.Given.Words, in.Given.Lengths), in.Trees, in.Tags)
	})}
}

func (p treeScorer[Out]) run(t testing.TB, g *Grammar, words, lengths *tensors.Tensor, trees []*Tree, n int) Out {
	t.Helper()
	packed, err := PackTrees(trees, n)
	if err != nil {
		t.Fatal(err)
	}
	tags := make([]int32, len(trees)*n)
	for b, z := range trees {
		for i, v := range z.Tags {
			tags[b*n+i] = int32(v)
		}
	}
	return call(t, p.Program, parsedTensors{
		Given: given[LogProbTensors, *tensors.Tensor]{g.LogProbs(dtypes.Float64), words, lengths},
		Trees: packed, Tags: tensors.FromFlatDataAndDimensions(tags, len(trees), n),
	})
}

// score is a log-probability and its gradients.
type score[T any] struct{ LogP, Root, Rules, Terms T }

// scores are those of trees and of derivations.
type scores[T any] struct{ Tree, Derivation score[T] }

// The score of a tree is the sum over all its tags, the score of a derivation is that of the enumerated one, and
// gradients are expected counts given the tree.
func TestScoresAgainstEnumeration(t *testing.T) {
	r := rand.New(rand.NewPCG(testkit.Seed(t), 0))
	for _, s := range sizes {
		p := treeProgram[scores[*tensors.Tensor]](func(p Potentials, z Trees, tags *Node) scores[*Node] {
			of := func(x *Node) score[*Node] {
				finite := ReduceAllSum(Where(GreaterThan(x, ConstAs(x, never)), x, ZerosLike(x)))
				return program.Of[score[*Node]](append([]*Node{x}, Gradient(finite, p.Root, p.Rules, p.Terms)...))
			}
			return scores[*Node]{of(p.LogTree(z)), of(p.LogDerivation(z, tags))}
		})
		for i := range 60 {
			g := randomGrammar(r, s.kind, s.nt, s.pt, 3, []float64{0, 0.3}[i%2])
			flat, words, lens := sentences(r, s.n, 3, s.lengths)
			var trees []*Tree
			var tree, full []float64
			summed, given := newTally(g, s.n, len(s.lengths)), newTally(g, s.n, len(s.lengths))
			for b, l := range s.lengths {
				z := randomTree(r, int(l), s.nt, s.pt)
				trees = append(trees, z)
				var same, one []*derivation
				shape, fullName := z.Shape(), derive(g, z).full()
				for _, d := range enumerate(g, flat[b*s.n:][:l]) {
					if d.shape() != shape {
						continue
					}
					same = append(same, d)
					if d.full() == fullName {
						one = append(one, d)
					}
				}
				tree, full = append(tree, logTotal(same)), append(full, logTotal(one))
				summed.add(g, b, same, 1)
				given.add(g, b, one, 1)
			}
			out := p.run(t, g, words, lens, trees, s.n)
			same(t, "log p(x,z)", floats(out.Tree.LogP), tree)
			same(t, "log p(x,z,tags)", floats(out.Derivation.LogP), full)
			if i%2 == 0 { // without zeros there is a gradient
				same(t, "root", floats(out.Tree.Root), summed.root)
				same(t, "rules", floats(out.Tree.Rules), summed.rules)
				same(t, "terms", floats(out.Tree.Terms), summed.terms)
				same(t, "root with tags", floats(out.Derivation.Root), given.root)
				same(t, "rules with tags", floats(out.Derivation.Rules), given.rules)
				same(t, "terms with tags", floats(out.Derivation.Terms), given.terms)
			}
			if t.Failed() {
				t.Fatalf("%s with %d nonterminals, %d preterminals, %d words, grammar %d", s.kind, s.nt, s.pt, s.n, i)
			}
		}
	}
}

// Every tree is packed and unpacked without loss, whatever the width of the batch.
func TestPackTrees(t *testing.T) {
	r := rand.New(rand.NewPCG(testkit.Seed(t), 0))
	var trees []*Tree
	var lengths []int32
	for range 50 {
		n := 2 + r.IntN(9)
		trees, lengths = append(trees, RandomTree(r, n, 4)), append(lengths, int32(n))
	}
	for _, n := range []int{10, 13} {
		packed, err := PackTrees(trees, n)
		if err != nil {
			t.Fatal(err)
		}
		for i, z := range UnpackTrees(packed, nil, lengths) {
			if err := z.Check(); err != nil || z.Shape() != trees[i].Shape() {
				t.Errorf("%s became %s: %v", trees[i].Shape(), z.Shape(), err)
			}
		}
	}
	if _, err := PackTrees(trees, 5); err == nil {
		t.Error("trees of ten words fit into five")
	}
}

// There are Catalan(n-1) N^(n-1) labelled trees.
func TestCounts(t *testing.T) {
	r := rand.New(rand.NewPCG(testkit.Seed(t), 0))
	g := randomGrammar(r, CFG, 2, 1, 1, 0)
	for n, want := range map[int]int{2: 2, 3: 8, 4: 40, 5: 224} {
		seen := map[string]bool{}
		for _, d := range enumerate(g, make([]int32, n)) {
			seen[d.shape()] = true
		}
		if len(seen) != want {
			t.Errorf("%d labelled trees over %d words, want %d", len(seen), n, want)
		}
	}
}

// The probabilities of all sentences of a length add up to at most one over all lengths.
func TestTotalProbability(t *testing.T) {
	r := rand.New(rand.NewPCG(testkit.Seed(t), 0))
	for _, kind := range []Kind{CFG, NCFG} {
		g := randomGrammar(r, kind, 2, 2, 2, 0)
		total := 0.0
		for n := 2; n <= 5; n++ {
			for code := range 1 << n {
				words := make([]int32, n)
				for i := range words {
					words[i] = int32(code >> i & 1)
				}
				total += math.Exp(logTotal(enumerate(g, words)))
			}
		}
		if total > 1 || total < 1e-3 {
			t.Errorf("%s: sentences of up to five words have probability %v", kind, total)
		}
	}
}
