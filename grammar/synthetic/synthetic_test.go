package synthetic

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/rng"
	"github.com/gfnem/gfnem/treebank"
)

// randomGrammar returns a small grammar with random tables, some rules impossible, and few long sentences.
func randomGrammar(r *rand.Rand) *grammar.Grammar {
	g := grammar.New(grammar.NCFG, []string{"X", "Y"}, []string{"t", "u"}, []string{"a", "b", "c"})
	table := func(p []float64) {
		for i := range p {
			if r.IntN(5) > 0 {
				p[i] = r.Float64()
			}
		}
		p[len(p)-1]++ // of a binary rule: two preterminals
		normalize(p)
	}
	table(g.Root)
	for x := range 2 {
		for p := range 3 {
			table(g.RuleRow(x, p))
		}
		table(g.EmitRow(x, 0))
		table(g.EmitRow(x, 1))
	}
	return g
}

// bruteForce sums the probabilities of all trees over some words whose top is symbol c below parent p, by recursion
// without memory.
func bruteForce(g *grammar.Grammar, words []int32, c, p int) float64 {
	n := len(g.Nonterminals)
	if c >= n {
		if len(words) != 1 {
			return 0
		}
		return g.EmitRow(c-n, p-1)[words[0]]
	}
	var sum float64
	for k := 1; k < len(words); k++ {
		for i, rule := range g.RuleRow(c, p) {
			s := n + len(g.Preterminals)
			sum += rule * bruteForce(g, words[:k], i/s, c+1) * bruteForce(g, words[k:], i%s, c+1)
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
		lengths := lengthProbs(g, 4)
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
				got := math.Exp(LogProbs(g, []treebank.Sentence{{Words: words}})[0])
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
	g, err := English(grammar.NCFG)
	if err != nil {
		t.Fatal(err)
	}
	// "he liked the dog and the dog and ...": far too improbable to be a float64 without scaling.
	words := strings.Fields("he liked " + strings.Repeat("the small dog of ", 60) + "anna")
	s := treebank.Sentence{}
	for _, w := range words {
		s.Words = append(s.Words, int32(slices.Index(g.Words, w)))
	}
	if got := LogProbs(g, []treebank.Sentence{s})[0]; !(got < -400 && got > -2000) {
		t.Errorf("log p = %v", got)
	}
}

func TestSyntheticGrammars(t *testing.T) {
	for _, variant := range []grammar.Kind{grammar.CFG, grammar.NCFG} {
		g, err := English(variant)
		if err != nil {
			t.Fatal(err)
		}
		if err := check(g); err != nil {
			t.Error(err)
		}
		if len(g.Nonterminals) != 8 || len(g.Preterminals) != 12 || len(g.Words) != 144 {
			t.Errorf("%s: %d nonterminals, %d preterminals, %d words", variant, len(g.Nonterminals), len(g.Preterminals), len(g.Words))
		}
		lengths := manyLengths(g, 400)
		if total := sumOf(lengths); math.Abs(total-1) > 1e-9 { // proper: trees end with probability 1
			t.Errorf("%s: sentences of up to 400 words have probability %v", variant, total)
		}
		if usual := sumOf(lengths[4:15]); usual < 0.75 {
			t.Errorf("%s: P(4 to 14 words) = %.3f", variant, usual)
		}
		if p := sumOf(lengthProbs(g, maxLength)); p < 0.95 {
			t.Errorf("%s: P(at most 20 words) = %.3f", variant, p)
		}
		for n, p := range lengthProbs(g, maxLength) {
			if !(math.Abs(p-lengths[n]) <= 1e-15) {
				t.Errorf("%s: P(length %d) = %v, and %v by another recursion", variant, n, p, lengths[n])
			}
		}
	}
	if _, err := English("pcfg"); err == nil {
		t.Error("an unknown variant was made")
	}
}

// manyLengths is lengthProbs for longer sentences, by a recursion over lengths alone.
func manyLengths(g *grammar.Grammar, most int) []float64 {
	rules := rulesOf(g)
	byLength := make([][][]float64, most+1) // [n][X][P]
	// below is the probability that the child c of nonterminal x has n words.
	below := func(c, x, n int) float64 {
		if c < len(rules) {
			return byLength[n][c][x+1]
		} else if n == 1 {
			return 1
		}
		return 0
	}
	for n := range byLength {
		byLength[n] = newTable(len(rules), len(rules)+1)
		for x := range rules {
			for _, r := range rules[x] {
				var both float64
				for k := 1; k < n; k++ {
					both += below(r.left, x, k) * below(r.right, x, n-k)
				}
				addScaled(byLength[n][x], r.p, both)
			}
		}
	}
	total := make([]float64, most+1)
	for n := range total {
		for x, p := range g.Root {
			total[n] += p * byLength[n][x][0]
		}
	}
	return total
}

// check returns an error unless all tables of a grammar have the right shape and sum to 1.
func check(g *grammar.Grammar) error {
	n, t, v := len(g.Nonterminals), len(g.Preterminals), len(g.Words)
	parents, hosts := n+1, n
	if g.Kind == grammar.CFG {
		parents, hosts = 1, 1
	}
	if len(g.Root) != n || len(g.Rules) != n*parents*(n+t)*(n+t) || len(g.Emit) != t*hosts*v {
		return fmt.Errorf("grammar: %d, %d and %d probabilities of %d nonterminals and %d preterminals", len(g.Root), len(g.Rules), len(g.Emit), n, t)
	}
	if err := checkDistribution(g.Root, n, "ROOT"); err != nil {
		return err
	}
	for x := range g.Nonterminals {
		for p := range parents {
			if err := checkDistribution(g.RuleRow(x, p), (n+t)*(n+t), fmt.Sprintf("%s below parent %d", g.Nonterminals[x], p)); err != nil {
				return err
			}
		}
	}
	for i := range g.Preterminals {
		for x := range hosts {
			if err := checkDistribution(g.EmitRow(i, x), v, g.Preterminals[i]+" below "+g.Nonterminals[x]); err != nil {
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
	for name, spoil := range map[string]func(g *grammar.Grammar){
		"sum":      func(g *grammar.Grammar) { g.RuleRow(0, 0)[0] += 0.1 },
		"sign":     func(g *grammar.Grammar) { g.Root[0], g.Root[1] = 1.5, -0.5 },
		"not one":  func(g *grammar.Grammar) { g.EmitRow(1, 0)[0] = math.NaN() },
		"parents":  func(g *grammar.Grammar) { g.Rules = g.Rules[:5*16] },
		"words":    func(g *grammar.Grammar) { g.Words = append(g.Words, "d") },
		"no table": func(g *grammar.Grammar) { g.Emit = g.Emit[:6] },
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
	g, err := English(grammar.NCFG)
	if err != nil {
		t.Fatal(err)
	}
	counts, flat := expectedCounts(g), expectedCounts(project(g))
	for x, symbol := range slices.Concat(g.Nonterminals, g.Preterminals) {
		if a, b := sumOf(counts[x]), sumOf(flat[x]); !(math.Abs(a-b) <= 1e-9) {
			t.Errorf("%s: %v and %v of them expected", symbol, a, b)
		}
	}
}

// TestParentsMatter measures what a context-free grammar loses on the trees and on the sentences of the other variant.
func TestParentsMatter(t *testing.T) {
	g, err := English(grammar.NCFG)
	if err != nil {
		t.Fatal(err)
	}
	flat := project(g)
	counts := expectedCounts(g)
	var trees, length float64
	for x := range g.Nonterminals {
		for p, count := range counts[x] {
			trees += count * divergence(g.RuleRow(x, p), flat.RuleRow(x, p))
		}
	}
	for i := range g.Preterminals {
		below := counts[len(g.Nonterminals)+i]
		length += sumOf(below)
		for x, count := range below[1:] {
			trees += count * divergence(g.EmitRow(i, x), flat.EmitRow(i, x))
		}
	}
	d, err := Treebank(grammar.NCFG, 0)
	if err != nil {
		t.Fatal(err)
	}
	test := &d.Splits[2]
	tokens := float64(d.Stats(test).Tokens)
	sentences := (sumOf(LogProbs(g, test.Sentences)) - sumOf(LogProbs(flat, test.Sentences))) / tokens
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
	g, err := English(grammar.NCFG)
	if err != nil {
		t.Fatal(err)
	}
	const n = 20_000
	counts := make([]int, maxLength+1)
	for _, s := range sample(g, maxLength, n, rng.New(seed, "test")) {
		counts[len(s.Words)]++
	}
	chi2 := func(p []float64) (sum float64) {
		total := sumOf(p)
		for k := 2; k <= maxLength; k++ {
			e := n * p[k] / total
			sum += math.Pow(float64(counts[k])-e, 2) / e
		}
		return sum
	}
	const limit = 50.0 // 18 degrees of freedom: exceeded with probability 7e-5
	if got := chi2(lengthProbs(g, maxLength)); got > limit {
		t.Errorf("chi-square %.1f", got)
	}
	if got := chi2(lengthProbs(project(g), maxLength)); got < limit {
		t.Errorf("the lengths of another grammar fit too: chi-square %.1f", got)
	}
}

func TestTreebank(t *testing.T) {
	golden := []struct {
		variant grammar.Kind
		hash    string
	}{
		{grammar.CFG, "b58c70ce98ced3fb1dd97f3b2421e1f75476b87fb97fe67ba3a6503d1ca34049"},
		{grammar.NCFG, "1ecee598a7ae544c451a7dbb258c760542bfcc09b1780060497eeab7a223029f"},
	}
	for _, c := range golden {
		d, err := Treebank(c.variant, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := d.Hash(); got != c.hash {
			t.Errorf("%s: hash %s, want %s: the data set has changed", c.variant, got, c.hash)
		}
		for i, want := range []int{5000, 500, 500} {
			checkSplit(t, &d.Splits[i], want)
		}
	}
	other, err := Treebank(grammar.CFG, 1)
	if err != nil {
		t.Fatal(err)
	}
	if other.Hash() == golden[0].hash {
		t.Error("the seed changes nothing")
	}
}

func checkSplit(t *testing.T, s *treebank.Split, want int) {
	t.Helper()
	if len(s.Sentences) != want || !s.Gold {
		t.Errorf("%s: %d sentences", s.Name, len(s.Sentences))
	}
	for _, sentence := range s.Sentences {
		n := len(sentence.Words)
		if n < 2 || n > maxLength {
			t.Fatalf("%s: a sentence of %d words", s.Name, n)
		}
		checkBinary(t, sentence.Gold, n)
	}
	if s.TrueLogProb == nil || math.IsInf(*s.TrueLogProb, 0) || math.IsNaN(*s.TrueLogProb) {
		t.Errorf("%s: true log-likelihood %v", s.Name, s.TrueLogProb)
	}
}

// checkBinary fails unless spans are those of a binary tree over n words, each after those inside it.
func checkBinary(t *testing.T, spans []treebank.Span, n int) {
	t.Helper()
	if len(spans) != n-1 || spans[n-2] != (treebank.Span{0, n - 1}) {
		t.Fatalf("%d words: spans %v", n, spans)
	}
	for i, a := range spans {
		if a[0] < 0 || a[0] >= a[1] || a[1] >= n {
			t.Fatalf("%d words: span %v", n, a)
		}
		for _, b := range spans[i+1:] {
			inside := b[0] <= a[0] && a[1] <= b[1]
			apart := a[1] < b[0] || b[1] < a[0]
			if a == b || !inside && !apart {
				t.Fatalf("%v before %v in %v", a, b, spans)
			}
		}
	}
}

func TestParseErrors(t *testing.T) {
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

// parsed parses a grammar and returns what parse panics with.
func parsed(rules, words string) (err any) {
	defer func() { err = recover() }()
	parse(rules, words)
	return nil
}
