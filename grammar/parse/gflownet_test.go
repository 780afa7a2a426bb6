package parse

import (
	"math"
	"slices"
	"testing"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/grammar/forest"
	"github.com/gfnem/gfnem/internal/testkit"
	"github.com/gfnem/gfnem/rng"
	"github.com/gfnem/gfnem/treebank"
)

// The trees that a GFlowNet draws are trees, those of a seed, and come with the probabilities of the steps that made
// them.
func TestGFNParse(t *testing.T) {
	seed := testkit.Seed(t)
	p := newTiny(t, seed, grammar.CFG)
	sentences := list(t, p, grammar.CFG, seed, 5, 2, 4, 3, 5)
	var x []treebank.Sentence
	for _, l := range sentences {
		x = append(x, l.sentence)
	}
	p.Rows, p.Bucket = 3, 4 // batches of 2, 3, 4 and of 5, 5, 5 words
	found, err := p.Parse(x, GFNSample, seed)
	if err != nil {
		t.Fatal(err)
	}
	again, err := p.Parse(x, GFNSample, seed)
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range found {
		if err := f.Tree.Check(); err != nil || f.Tree.Words() != len(x[i].Words) {
			t.Fatalf("sentence %d: %v, %d words", i, err, f.Tree.Words())
		}
		if again[i].Tree.Shape() != f.Tree.Shape() || again[i].LogForward != f.LogForward {
			t.Error("one seed gives two trees")
		}
		logPF, logPB := sentences[i].replay(t, f.Tree)
		// Single precision, a dozen terms of some nats.
		if !(math.Abs(f.LogForward-logPF) <= 1e-4) || !(math.Abs(f.LogBack-logPB) <= 1e-4) {
			t.Errorf("sentence %d: log P_F %v and log P_B %v, want %v and %v", i, f.LogForward, f.LogBack, logPF, logPB)
		}
	}
	other, err := p.Parse(x, GFNSample, seed+1)
	if err != nil {
		t.Fatal(err)
	}
	if slices.EqualFunc(found, other, func(a, b Found) bool { return a.Tree.Shape() == b.Tree.Shape() }) {
		t.Error("two seeds give the same trees")
	}
	if _, err := p.Parse(x, Viterbi, seed); err == nil {
		t.Error("a GFlowNet finds most probable derivations")
	}
	if _, err := p.Parse([]treebank.Sentence{{Words: make([]int32, p.Longest()+1)}}, GFNSample, seed); err == nil {
		t.Error("a sentence that is too long is read")
	}
}

// replay makes the merges of a tree, in their order, in the listed environment.
func (l listed) replay(t *testing.T, z *grammar.Tree) (logPF, logPB float64) {
	t.Helper()
	n, state := z.Words(), 0
	for m, span := range z.Spans() {
		gap := z.Left[m]
		if gap >= n {
			gap = z.Spans()[gap-n].Last
		}
		action := gap*3 + span.Label
		at := slices.IndexFunc(l.Edges, func(e gfn.Edge) bool { return e.From == state && e.Action == action })
		if at < 0 {
			t.Fatalf("merge %d of %s is not possible", m, z.Shape())
		}
		logPF, logPB, state = logPF+l.LogPF[at], logPB+l.LogPB[at], l.Edges[at].To
	}
	return logPF, logPB
}

// ballot is spanVotes with maps, for one sentence.
type ballot map[treebank.Span]int

func (v ballot) add(z *grammar.Tree) {
	for _, span := range Spans([]*grammar.Tree{z})[0] {
		v[span]++
	}
}

func (v ballot) of(z *grammar.Tree) (n int) {
	for _, span := range Spans([]*grammar.Tree{z})[0] {
		n += v[span]
	}
	return n
}

// check fails unless a tree has the most votes of all binary trees, and a weight that says so.
func (v ballot) check(t *testing.T, z *grammar.Tree, weight, trees float64) {
	t.Helper()
	all, err := listForests(simd(), forest.Env{Words: z.Words(), Labels: 1})
	if err != nil {
		t.Fatal(err)
	}
	most := 0
	for _, shape := range all.trees {
		most = max(most, v.of(shape))
	}
	if got := v.of(z); got != most || !(math.Abs(weight-float64(most)/trees) <= 1e-6) {
		t.Errorf("%s has %d votes, said to be %v of %v trees; the best tree has %d", z.Shape(), got, weight, trees, most)
	}
}

// Of all binary trees, the elected one has the most votes.
func TestElect(t *testing.T) {
	seed := testkit.Seed(t)
	p := newTiny(t, seed, grammar.CFG)
	p.Rows = 4
	r := rng.New(seed, "votes")
	var x []treebank.Sentence
	for _, n := range []int{5, 3, 2, 5, 4, 4, 5} {
		x = append(x, treebank.Sentence{Words: make([]int32, n)})
	}
	err := p.each(x, func(_ int, at []int, b Padded) error {
		votes, ballots := newSpanVotes(b), make([]ballot, len(at))
		for range 5 {
			trees := make([]*grammar.Tree, len(at))
			for i := range trees {
				trees[i] = grammar.RandomTree(r, len(b.Sentences[i].Words), 3)
				if ballots[i] == nil {
					ballots[i] = ballot{}
				}
				ballots[i].add(trees[i])
			}
			votes.add(trees)
		}
		trees, weights, err := p.elect(b, votes)
		for i, z := range trees {
			ballots[i].check(t, z, weights[i], 5)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// The tree by many samples is the best one by the spans of those samples.
func TestGFNMBR(t *testing.T) {
	seed := testkit.Seed(t)
	p := newTiny(t, seed, grammar.CFG)
	var x []treebank.Sentence
	for _, n := range []int{3, 4, 5, 5} { // one batch, in order
		x = append(x, treebank.Sentence{Words: make([]int32, n)})
	}
	found, err := p.Parse(x, GFNMBR, seed)
	if err != nil {
		t.Fatal(err)
	}
	ballots := []ballot{{}, {}, {}, {}}
	for k := range mbrSamples {
		d, err := p.draw(p.Pad(x), rng.Key(seed, "gfn/parse", 0, uint64(k)))
		if err != nil {
			t.Fatal(err)
		}
		for i, z := range d.trees(p.Pad(x)) {
			ballots[i].add(z)
		}
	}
	for i, f := range found {
		ballots[i].check(t, f.Tree, f.Spans, mbrSamples)
	}
}
