package grammar

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/gfnem/gfnem/internal/testkit"
)

func ExampleGrammar_Format() {
	g := New(CFG, []string{"S", "NP"}, []string{"D", "A", "N"}, nil)
	t, words := &Tree{Left: []int{1, 0}, Right: []int{2, 3}, Label: []int{1, 0}, Tags: []int{0, 1, 2}}, strings.Fields("the old man")
	fmt.Println(t.Shape(), t.Spans())
	fmt.Println(g.Format(t, words))
	t.Tags = nil
	fmt.Println(g.Format(t, words))
	// Output:
	// 0(0 1(1 2)) [{1 2 1} {0 2 0}]
	// (S (D the) (NP (A old) (N man)))
	// (S the (NP old man))
}

// readTree reads what Format writes, of symbols A0, A1, ... and T0, T1, ...
func readTree(text string, n int) (t *Tree, words []string) {
	tokens := strings.Fields(strings.NewReplacer("(", "( ", ")", " )").Replace(text))
	number := func(name string) (i int) {
		fmt.Sscanf(name[1:], "%d", &i)
		return i
	}
	t = &Tree{}
	var read func() int
	read = func() (node int) {
		token := tokens[0]
		if tokens = tokens[1:]; token != "(" {
			words = append(words, token)
			return len(words) - 1
		}
		symbol := tokens[0]
		tokens = tokens[1:]
		if node = read(); symbol[0] == 'T' {
			t.Tags = append(t.Tags, number(symbol))
		} else {
			right := read()
			t.Left, t.Right, t.Label = append(t.Left, node), append(t.Right, right), append(t.Label, number(symbol))
			node = n + len(t.Left) - 1
		}
		tokens = tokens[1:] // the closing bracket
		return node
	}
	read()
	return t, words
}

// What is written in brackets is read back.
func TestFormatParse(t *testing.T) {
	r := rand.New(rand.NewPCG(testkit.Seed(t), 0))
	g := New(CFG, names("A", 3), names("T", 2), nil)
	for i := range 200 {
		n := 2 + r.IntN(12)
		z := RandomTree(r, n, 3)
		if i%2 == 0 {
			z = randomTree(r, n, 3, 2)
		}
		words := names("w", n)
		text := g.Format(z, words)
		back, read := readTree(text, n)
		if back.Check() != nil || back.Shape() != z.Shape() || !slices.Equal(back.Tags, z.Tags) || !slices.Equal(read, words) {
			t.Fatalf("%s became %v %v", text, back, read)
		}
		seen := map[Span]bool{}
		for _, s := range back.Spans() {
			if s.First >= s.Last || s.Last >= n || seen[s] {
				t.Errorf("%s: span %v", text, s)
			}
			seen[s] = true
		}
		if last := back.Spans()[n-2]; last.First != 0 || last.Last != n-1 {
			t.Errorf("%s: the last span is %v", text, last)
		}
	}
	if got := g.Format(&Tree{Left: []int{0}, Right: []int{1}, Label: []int{0}}, []string{"(", "a)b"}); got != "(A0 -LRB- a-RRB-b)" {
		t.Errorf("brackets in words: %s", got)
	}
}

func TestCheckTree(t *testing.T) {
	for name, z := range map[string]*Tree{
		"nothing":        {},
		"short":          {Left: []int{0, 3}, Right: []int{1}, Label: []int{0, 0}},
		"used twice":     {Left: []int{0, 0}, Right: []int{1, 2}, Label: []int{0, 0}},
		"from later":     {Left: []int{0, 3}, Right: []int{4, 2}, Label: []int{0, 0}},
		"negative":       {Left: []int{-1, 3}, Right: []int{1, 2}, Label: []int{0, 0}},
		"out of order":   {Left: []int{1, 3}, Right: []int{0, 2}, Label: []int{0, 0}},
		"not neighbours": {Left: []int{0, 3}, Right: []int{2, 1}, Label: []int{0, 0}},
		"tags":           {Left: []int{0}, Right: []int{1}, Label: []int{0}, Tags: []int{0}},
	} {
		if z.Check() == nil {
			t.Errorf("%s: %+v passes", name, z)
		}
	}
}
