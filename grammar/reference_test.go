package grammar

import (
	"math"
	"testing"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
)

// tiny is the grammar of the reference numbers.
func tiny(kind Kind) *Grammar {
	g := New(kind, []string{"A", "B"}, []string{"T0", "T1"}, []string{"0", "1", "2"})
	for x := range 2 {
		g.Root[x] = math.Exp(math.Sin(1 + float64(x)))
		for p := range g.parents() {
			row := g.RuleRow(x, p)
			for i := range row {
				row[i] = math.Sin(1 + 16*float64(x) + float64(i))
				if kind == NCFG {
					row[i] += math.Cos(2 + 16*float64(p) + float64(i))
				}
				row[i] = math.Exp(row[i])
			}
		}
	}
	for t := range 2 {
		for x := range g.hosts() {
			row := g.EmitRow(t, x)
			for w := range row {
				at := float64(3*t + w)
				row[w] = math.Cos(1 + at)
				if kind == NCFG {
					row[w] += 0.5 * math.Sin(1+6*float64(x+1)+at)
				}
				row[w] = math.Exp(row[w])
			}
		}
	}
	normalise(g.Root, 2)
	normalise(g.Rules, 16)
	normalise(g.Emit, 3)
	return g
}

// digits checks a reference number, which has ten decimals (eight for posteriors).
func digits(t *testing.T, what string, got, want, within float64) {
	t.Helper()
	if !(math.Abs(got-want) <= within) {
		t.Errorf("%s is %.10f, want %.10f", what, got, want)
	}
}

const ten, eight = 0.51e-10, 0.51e-8

func TestReferenceTables(t *testing.T) {
	g := tiny(CFG)
	digits(t, "p(A|ROOT)", math.Log(g.Root[0]), -0.7276353447, ten)
	digits(t, "p(B|ROOT)", math.Log(g.Root[1]), -0.6598089026, ten)
	digits(t, "p(T0 T0|A)", math.Log(g.RuleRow(0, 0)[2*4+2]), -4.0958011561, ten)
	digits(t, "p(A B|A)", math.Log(g.RuleRow(0, 0)[1]), -2.1865135228, ten)
	digits(t, "p(T1 A|B)", math.Log(g.RuleRow(1, 0)[3*4]), -3.6009200590, ten)
	for w, want := range []float64{-0.4704577401, -1.4269068825, -2.0007525425} {
		digits(t, "p(w|T0)", math.Log(g.EmitRow(0, 0)[w]), want, ten)
	}
	for w, want := range []float64{-2.1488535043, -1.2115476980, -0.5350395968} {
		digits(t, "p(w|T1)", math.Log(g.EmitRow(1, 0)[w]), want, ten)
	}
}

var tinySentences = []struct {
	words                                    []int32
	trees                                    int
	cfg, cfgViterbi, cfgTree, ncfg, ncfgTree float64
}{
	{[]int32{0, 1}, 2, -3.6943391255, -4.5380837715, -3.9352666270, -3.1839137624, -3.5149687648},
	{[]int32{0, 1, 2}, 8, -5.3716430540, -7.2474025133, -6.4913358324, -5.7657606164, -6.9873257334},
	{[]int32{2, 0, 1, 1}, 40, -7.1661027767, -10.4142155842, -9.4437178754, -7.2471364412, -9.7360535688},
	{[]int32{0, 1, 2, 0, 1}, 224, -8.5597130032, -13.1572323674, -11.9030269159, -8.6266247810, -11.6889032430},
}

// likelihoods are those of sentences and of their best derivations.
type likelihoods[T any] struct{ LogX, Viterbi T }

// TestReferenceSentences checks the table of sentences, as one padded batch.
func TestReferenceSentences(t *testing.T) {
	const n = 5
	words, lengths := make([]int32, len(tinySentences)*n), make([]int32, len(tinySentences))
	for b, s := range tinySentences {
		copy(words[b*n:], s.words)
		lengths[b] = int32(len(s.words))
	}
	w, l := tensors.FromFlatDataAndDimensions(words, len(lengths), n), tensors.FromFlatDataAndDimensions(lengths, len(lengths))
	for _, kind := range []Kind{CFG, NCFG} {
		g := tiny(kind)
		out := newProgram[likelihoods[*tensors.Tensor]](func(p Potentials) likelihoods[*Node] {
			return likelihoods[*Node]{LogLikelihood(p), p.Viterbi().LogWeight}
		}).run(t, g, w, l)
		logX, found := floats(out.LogX), floats(out.Viterbi)
		trees := treeProgram[*tensors.Tensor](func(p Potentials, z Trees, _ *Node) *Node { return p.LogTree(z) })
		for b, s := range tinySentences {
			like, viterbi, best := s.cfg, s.cfgViterbi, s.cfgTree
			if kind == NCFG {
				like, viterbi, best = s.ncfg, math.NaN(), s.ncfgTree
			}
			digits(t, "log p(x)", logX[b], like, ten)
			if kind == CFG {
				digits(t, "Viterbi", found[b], viterbi, ten)
			}
			all := labelledTrees(len(s.words), 2)
			if len(all) != s.trees {
				t.Errorf("%d trees, want %d", len(all), s.trees)
			}
			scores := scoreAll(t, trees, g, s.words, all)
			most := math.Inf(-1)
			for _, v := range scores {
				most = max(most, v)
			}
			digits(t, "best log p(x,z)", most, best, ten)
			digits(t, "sum of all log p(x,z)", logSumExp(scores), like, ten)
			checkShapes(t, kind, s.words, all, scores)
		}
	}
}

// scoreAll scores trees of one sentence.
func scoreAll(t *testing.T, p treeScorer[*tensors.Tensor], g *Grammar, words []int32, trees []*Tree) []float64 {
	t.Helper()
	n, b := len(words), len(trees)
	flat, lengths := make([]int32, 0, n*b), make([]int32, b)
	for i := range trees {
		flat = append(flat, words...)
		lengths[i] = int32(n)
	}
	repeated, lens := tensors.FromFlatDataAndDimensions(flat, b, n), tensors.FromFlatDataAndDimensions(lengths, b)
	return floats(p.run(t, g, repeated, lens, trees, n))
}

// labelledTrees lists all trees over n words.
func labelledTrees(n, nt int) []*Tree {
	var out []*Tree
	for _, s := range allShapes(0, n) {
		codes := 1
		for range n - 1 {
			codes *= nt
		}
		for code := range codes {
			t := &Tree{}
			rest := code
			var add func(d *derivation) int
			add = func(d *derivation) int {
				if d.left == nil {
					return d.start
				}
				l, r := add(d.left), add(d.right)
				t.Left, t.Right, t.Label = append(t.Left, l), append(t.Right, r), append(t.Label, rest%nt)
				rest /= nt
				return n + len(t.Left) - 1
			}
			add(s)
			out = append(out, t)
		}
	}
	return out
}

// bare writes a tree without labels.
func bare(t *Tree) string {
	z := *t
	z.Label = make([]int, len(t.Label))
	return z.Shape()
}

// checkShapes compares posteriors of unlabelled trees with reference numbers.
func checkShapes(t *testing.T, kind Kind, words []int32, all []*Tree, scores []float64) {
	t.Helper()
	total := logSumExp(scores)
	posterior := map[string]float64{}
	for i, z := range all {
		posterior[bare(z)] += math.Exp(scores[i] - total)
	}
	want := map[Kind]map[string]float64{
		CFG: {
			"0(0 0(1 2))":           0.48053753,
			"0(0 0(1 0(2 3)))":      0.19859532,
			"0(0 0(0(1 2) 3))":      0.17644093,
			"0(0(0 1) 0(2 3))":      0.18628300,
			"0(0(0 0(1 2)) 3)":      0.21725531,
			"0(0(0(0 1) 2) 3)":      0.22142544,
			"0(0 0(1 0(2 0(3 4))))": 0.06768646,
			"0(0(0(0(0 1) 2) 3) 4)": 0.07942488,
		},
		NCFG: {
			"0(0 0(1 2))":           0.46172128,
			"0(0 0(1 0(2 3)))":      0.18309933,
			"0(0 0(0(1 2) 3))":      0.18316936,
			"0(0(0 1) 0(2 3))":      0.27191064,
			"0(0(0 0(1 2)) 3)":      0.16038343,
			"0(0(0(0 1) 2) 3)":      0.20143725,
			"0(0 0(1 0(2 0(3 4))))": 0.04058576,
			"0(0(0(0(0 1) 2) 3) 4)": 0.06767863,
		},
	}
	found := 0
	for shape, p := range want[kind] {
		if got, ok := posterior[shape]; ok {
			found++
			digits(t, shape, got, p, eight)
		}
	}
	if want := []int{0, 1, 5, 2}[len(words)-2]; found != want {
		t.Errorf("%d shapes of %d words compared, want %d", found, len(words), want)
	}
}

// TestReferenceTrees checks the two trees whose probabilities are given; package chain does so by nodes.
func TestReferenceTrees(t *testing.T) {
	trees := treeProgram[*tensors.Tensor](func(p Potentials, z Trees, _ *Node) *Node { return p.LogTree(z) })
	one := &Tree{Left: []int{1, 0}, Right: []int{2, 3}, Label: []int{1, 0}}
	two := &Tree{Left: []int{0, 2, 4}, Right: []int{1, 3, 5}, Label: []int{0, 1, 1}}
	for _, c := range []struct {
		kind   Kind
		words  []int32
		tree   *Tree
		want   float64
		within float64
	}{
		{CFG, []int32{0, 1, 2}, one, -7.6649621084, ten},
		{NCFG, []int32{0, 1, 2}, one, -7.8710898728, ten},
		{CFG, []int32{2, 0, 1, 1}, two, -11.42282318, eight},
		{NCFG, []int32{2, 0, 1, 1}, two, -12.55193099, eight},
	} {
		g := tiny(c.kind)
		digits(t, "joint of "+c.tree.Shape(), scoreAll(t, trees, g, c.words, []*Tree{c.tree})[0], c.want, c.within)
	}
}
