package treebank

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gfnem/gfnem/rng"
)

// randomGrammar returns a small grammar with random tables, some rules impossible, and few long sentences.
func randomGrammar(r *rand.Rand) *Grammar {
	g := &Grammar{Nonterminals: []string{"X", "Y"}, Preterminals: []string{"t", "u"}, Words: []string{"a", "b", "c"}}
	table := func(n int) []float64 {
		p := make([]float64, n)
		for i := range p {
			if r.IntN(5) > 0 {
				p[i] = r.Float64()
			}
		}
		p[n-1]++ // of a binary rule: two preterminals
		return normalize(p)
	}
	g.Root = table(2)
	for range 2 {
		var byParent [][][]float64
		for range 3 {
			byParent = append(byParent, slices.Collect(slices.Chunk(table(16), 4)))
		}
		g.Binary = append(g.Binary, byParent)
		g.Emit = append(g.Emit, [][]float64{table(3), table(3)})
	}
	return g
}

// bruteForce sums the probabilities of all trees over some words whose top is symbol c below parent p, by recursion
// without memory.
func bruteForce(g *Grammar, words []int32, c, p int) float64 {
	n := len(g.Nonterminals)
	if c >= n {
		if len(words) != 1 {
			return 0
		}
		return g.Emit[c-n][p-1][words[0]]
	}
	var sum float64
	for k := 1; k < len(words); k++ {
		for l := range g.Binary[c][p] {
			for r, rule := range g.Binary[c][p][l] {
				sum += rule * bruteForce(g, words[:k], l, c+1) * bruteForce(g, words[k:], r, c+1)
			}
		}
	}
	return sum
}

// TestExactAgainstEnumeration compares likelihoods with the sum over all trees, and probabilities of lengths with the
// sum over all sentences.
func TestExactAgainstEnumeration(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 5 {
		g := randomGrammar(r)
		if err := check(g); err != nil {
			t.Fatal(err)
		}
		lengths := g.LengthProbs(4)
		for n := range 5 {
			var total float64
			for i := range int(math.Pow(3, float64(n))) {
				words := make([]int32, n)
				for j := range words {
					words[j] = int32(i % 3)
					i /= 3
				}
				var want float64
				for x, p := range g.Root {
					want += p * bruteForce(g, words, x, 0)
				}
				got := math.Exp(g.LogProbs([]Sentence{{Words: words}})[0])
				if !(math.Abs(got-want) <= 1e-12) {
					t.Fatalf("p(%v) = %v, want %v", words, got, want)
				}
				total += want
			}
			if !(math.Abs(lengths[n]-total) <= 1e-12) {
				t.Errorf("P(length %d) = %v, want %v", n, lengths[n], total)
			}
		}
	}
}

func TestLogProbsOfLongSentences(t *testing.T) {
	g, err := Synthetic(ParentDependent)
	if err != nil {
		t.Fatal(err)
	}
	// "he liked the dog and the dog and ...": far too improbable to be a float64 without scaling.
	words := strings.Fields("he liked " + strings.Repeat("the small dog of ", 60) + "anna")
	s := Sentence{}
	for _, w := range words {
		s.Words = append(s.Words, int32(slices.Index(g.Words, w)))
	}
	if got := g.LogProbs([]Sentence{s})[0]; !(got < -400 && got > -2000) {
		t.Errorf("log p = %v", got)
	}
}

func TestSyntheticGrammars(t *testing.T) {
	for _, variant := range []string{ContextFree, ParentDependent} {
		g, err := Synthetic(variant)
		if err != nil {
			t.Fatal(err)
		}
		if err := check(g); err != nil {
			t.Error(err)
		}
		if len(g.Nonterminals) != 8 || len(g.Preterminals) != 12 || len(g.Words) != 144 {
			t.Errorf("%s: %d nonterminals, %d preterminals, %d words", variant, len(g.Nonterminals), len(g.Preterminals), len(g.Words))
		}
		lengths := g.LengthProbs(400)
		if total := sumOf(lengths); math.Abs(total-1) > 1e-9 { // proper: trees end with probability 1
			t.Errorf("%s: sentences of up to 400 words have probability %v", variant, total)
		}
		if usual := sumOf(lengths[4:15]); usual < 0.75 {
			t.Errorf("%s: P(4 to 14 words) = %.3f", variant, usual)
		}
		if p := math.Exp(g.logInBounds()); p < 0.95 {
			t.Errorf("%s: P(at most 20 words) = %.3f", variant, p)
		}
	}
	if _, err := Synthetic("pcfg"); err == nil {
		t.Error("an unknown variant was made")
	}
}

// check returns an error unless all tables of a grammar have the right shape and sum to 1.
func check(g *Grammar) error {
	n, t := len(g.Nonterminals), len(g.Preterminals)
	if len(g.Binary) != n || len(g.Emit) != t {
		return fmt.Errorf("grammar: rules of %d nonterminals and %d preterminals, want %d and %d",
			len(g.Binary), len(g.Emit), n, t)
	}
	if err := checkDistribution(g.Root, n, "ROOT"); err != nil {
		return err
	}
	for x, byParent := range g.Binary {
		if len(byParent) != n+1 {
			return fmt.Errorf("grammar: %s has rules for %d parents, want %d", g.Nonterminals[x], len(byParent), n+1)
		}
		for p, table := range byParent {
			var flat []float64
			for _, row := range table {
				flat = append(flat, row...)
			}
			if err := checkDistribution(flat, (n+t)*(n+t), fmt.Sprintf("%s below parent %d", g.Nonterminals[x], p)); err != nil {
				return err
			}
		}
	}
	for i, byParent := range g.Emit {
		if len(byParent) != n {
			return fmt.Errorf("grammar: %s has words for %d parents, want %d", g.Preterminals[i], len(byParent), n)
		}
		for x, words := range byParent {
			name := g.Preterminals[i] + " below " + g.Nonterminals[x]
			if err := checkDistribution(words, len(g.Words), name); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkDistribution(p []float64, size int, name string) error {
	if len(p) != size {
		return fmt.Errorf("grammar: %s has %d probabilities, want %d", name, len(p), size)
	}
	var sum float64
	for _, v := range p {
		if !(v >= 0) {
			return fmt.Errorf("grammar: %s has the probability %v", name, v)
		}
		sum += v
	}
	if math.Abs(sum-1) > 1e-12 {
		return fmt.Errorf("grammar: the probabilities of %s sum to %v", name, sum)
	}
	return nil
}

func TestGrammarCheckFindsErrors(t *testing.T) {
	for name, spoil := range map[string]func(g *Grammar){
		"sum":      func(g *Grammar) { g.Binary[0][0][0][0] += 0.1 },
		"sign":     func(g *Grammar) { g.Root[0], g.Root[1] = 1.5, -0.5 },
		"not one":  func(g *Grammar) { g.Emit[1][0][0] = math.NaN() },
		"parents":  func(g *Grammar) { g.Binary[1] = g.Binary[1][:2] },
		"words":    func(g *Grammar) { g.Words = append(g.Words, "d") },
		"no table": func(g *Grammar) { g.Emit = g.Emit[:1] },
	} {
		g := randomGrammar(rand.New(rand.NewPCG(1, 1)))
		spoil(g)
		if err := check(g); err == nil {
			t.Errorf("%s: not found", name)
		}
	}
}

// TestProjectKeepsCounts checks what makes a context-free grammar the closest one: the expected count of every symbol,
// and so the expected length, is that of the grammar.
func TestProjectKeepsCounts(t *testing.T) {
	g, err := Synthetic(ParentDependent)
	if err != nil {
		t.Fatal(err)
	}
	flat := g.Project()
	visits, leaves := g.expectedCounts()
	flatVisits, flatLeaves := flat.expectedCounts()
	for x := range visits {
		if a, b := sumOf(visits[x]), sumOf(flatVisits[x]); !(math.Abs(a-b) <= 1e-9) {
			t.Errorf("%s: %v and %v of them expected", g.Nonterminals[x], a, b)
		}
	}
	for i := range leaves {
		if a, b := sumOf(leaves[i]), sumOf(flatLeaves[i]); !(math.Abs(a-b) <= 1e-9) {
			t.Errorf("%s: %v and %v of them expected", g.Preterminals[i], a, b)
		}
	}
}

// TestParentsMatter measures what a context-free grammar loses on the trees and on the sentences of the other variant.
func TestParentsMatter(t *testing.T) {
	g, err := Synthetic(ParentDependent)
	if err != nil {
		t.Fatal(err)
	}
	flat := g.Project()
	visits, leaves := g.expectedCounts()
	var trees, length float64
	for x := range visits {
		for p := range visits[x] {
			for l := range g.Binary[x][p] {
				trees += visits[x][p] * divergence(g.Binary[x][p][l], flat.Binary[x][p][l])
			}
		}
	}
	for i := range leaves {
		length += sumOf(leaves[i])
		for x := range leaves[i] {
			trees += leaves[i][x] * divergence(g.Emit[i][x], flat.Emit[i][x])
		}
	}
	d, err := SyntheticDataset(ParentDependent, 0)
	if err != nil {
		t.Fatal(err)
	}
	test := &d.Splits[2]
	tokens := float64(d.Stats(test).Tokens)
	sentences := (sumOf(g.LogProbs(test.Sentences)) - sumOf(flat.LogProbs(test.Sentences))) / tokens
	t.Logf("expected length %.2f; loss of the context-free grammar, nats per word: trees %.3f, test sentences %.3f", length, trees/(length+1), sentences)
	if sentences < 0.1 || sentences > 0.3 {
		t.Errorf("a context-free grammar loses %.3f nats per word", sentences)
	}
	if trees/(length+1) < sentences-0.02 { // trees hold more information than sentences; 0.02 for the sample
		t.Errorf("trees show less, %.3f", trees/(length+1))
	}
}

// divergence is the part of a Kullback-Leibler divergence that comes from some entries.
func divergence(p, q []float64) (sum float64) {
	for i := range p {
		if p[i] > 0 {
			sum += p[i] * math.Log(p[i]/q[i])
		}
	}
	return sum
}

// TestSampleLengths compares lengths of samples with their exact truncated distribution.
func TestSampleLengths(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	g, err := Synthetic(ParentDependent)
	if err != nil {
		t.Fatal(err)
	}
	const n = 20_000
	counts := make([]int, SyntheticMaxLength+1)
	for _, tree := range g.Sample(n, rng.New(seed, "test")) {
		counts[tree.Leaves()]++
	}
	chi2 := func(p []float64) (sum float64) {
		total := sumOf(p)
		for k := 2; k <= SyntheticMaxLength; k++ {
			e := n * p[k] / total
			sum += math.Pow(float64(counts[k])-e, 2) / e
		}
		return sum
	}
	const limit = 50.0 // 18 degrees of freedom: exceeded with probability 7e-5
	if got := chi2(g.LengthProbs(SyntheticMaxLength)); got > limit {
		t.Errorf("chi-square %.1f", got)
	}
	if got := chi2(g.Project().LengthProbs(SyntheticMaxLength)); got < limit {
		t.Errorf("the lengths of another grammar fit too: chi-square %.1f", got)
	}
}

func TestSyntheticDataset(t *testing.T) {
	golden := []struct{ variant, hash string }{
		{ContextFree, "b58c70ce98ced3fb1dd97f3b2421e1f75476b87fb97fe67ba3a6503d1ca34049"},
		{ParentDependent, "1ecee598a7ae544c451a7dbb258c760542bfcc09b1780060497eeab7a223029f"},
	}
	for _, c := range golden {
		d, err := SyntheticDataset(c.variant, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := d.Hash(); got != c.hash {
			t.Errorf("%s: hash %s, want %s: the data set has changed", c.variant, got, c.hash)
		}
		for i, want := range []int{5000, 500, 500} {
			checkSyntheticSplit(t, &d.Splits[i], want)
		}
	}
	other, err := SyntheticDataset(ContextFree, 1)
	if err != nil {
		t.Fatal(err)
	}
	if other.Hash() == golden[0].hash {
		t.Error("the seed changes nothing")
	}
}

func checkSyntheticSplit(t *testing.T, s *Split, want int) {
	t.Helper()
	if len(s.Sentences) != want || !s.Gold {
		t.Errorf("%s: %d sentences", s.Name, len(s.Sentences))
	}
	for _, sentence := range s.Sentences {
		n := len(sentence.Words)
		if n < 2 || n > SyntheticMaxLength {
			t.Fatalf("%s: a sentence of %d words", s.Name, n)
		}
		checkBinary(t, sentence.Gold, n)
	}
	if s.TrueLogProb == nil || math.IsInf(*s.TrueLogProb, 0) || math.IsNaN(*s.TrueLogProb) {
		t.Errorf("%s: true log-likelihood %v", s.Name, s.TrueLogProb)
	}
}

func TestParseGrammarErrors(t *testing.T) {
	const rules, words = "ROOT: S 1\nS < *: A A 1", "A < *: a"
	if err := parsed(rules, words); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string][2]string{
		"no colon":       {"ROOT S 1", words},
		"no root":        {"S < *: A A 1", words},
		"no weight":      {"ROOT: S", words},
		"bad weight":     {"ROOT: S x", words},
		"unknown symbol": {"ROOT: S 1\nS < *: A B 1", words},
		"three symbols":  {"ROOT: S 1\nS < *: A A A 1", words},
		"no other":       {"ROOT: S 1\nS < S: A A 1", words},
		"negative":       {"ROOT: S 1\nS < *: A A -1, S A 2", words},
	} {
		if parsed(c[0], c[1]) == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// parsed parses a grammar and returns what parseGrammar panics with.
func parsed(rules, words string) (err any) {
	defer func() { err = recover() }()
	parseGrammar(rules, words)
	return nil
}
