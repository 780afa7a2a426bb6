package grammar

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/internal/testkit"
)

func ExampleGrammar_ParseTree() {
	g := New(CFG, []string{"S", "NP"}, []string{"D", "A", "N"}, nil)
	t, words, err := g.ParseTree("(S (D the) (NP (A old) (N man)))")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(words, t.Shape(), t.Spans())
	t.Tags = nil
	fmt.Println(g.Format(t, words))
	// Output:
	// [the old man] 0(0 1(1 2)) [{1 2 1} {0 2 0}]
	// (S the (NP old man))
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
		back, read, err := g.ParseTree(text)
		if err != nil || back.Check() != nil || back.Shape() != z.Shape() || !slices.Equal(back.Tags, z.Tags) || !slices.Equal(read, words) {
			t.Fatalf("%s became %v %v: %v", text, back, read, err)
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

func TestParseTreeErrors(t *testing.T) {
	g := New(CFG, []string{"A"}, []string{"T"}, nil)
	for text, want := range map[string]string{
		"":                            "nothing there",
		"w":                           `"w" before the first bracket`,
		")":                           `")" before the first bracket`,
		"(":                           "a bracket without a label",
		"(A":                          "1 bracket(s) not closed",
		"(A w":                        "1 bracket(s) not closed",
		"()":                          "a bracket without a label",
		"((A v w))":                   "a bracket without a label",
		"(A)":                         `"A" has no children`,
		"(A w)":                       `"A" above the word "w" is not a preterminal`,
		"(T w)":                       "a single word",
		"(A v w) x":                   `"x" after the end`,
		"(A v w x)":                   `"A" has more than two children`,
		"(A (T v) w)":                 "1 of 2 words have tags",
		"(A v (T w))":                 `the word "w" has two tags, or words before it have none`,
		"(A (T (T v)) (T w))":         "has two tags",
		"(A (A v w))":                 `"A" has one child; nodes have two`,
		"(B v w)":                     `"B" above two nodes is not a nonterminal`,
		"(T v w)":                     `"T" above two nodes is not a nonterminal`,
		strings.Repeat("(A ", 50_000): "50000 bracket(s) not closed",
	} {
		_, _, err := g.ParseTree(text)
		var input *badinput.Error
		if err == nil || !strings.Contains(err.Error(), want) || !errors.As(err, &input) {
			t.Errorf("%.30q: error %v, want %q", text, err, want)
		}
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

// A tree that is read is a tree, and is read again from how it is written.
func FuzzParseTree(f *testing.F) {
	g := New(CFG, []string{"A", "B"}, []string{"T"}, nil)
	for _, s := range []string{"(A v w)", "(A (T v) (B (T w) (T x)))", "(A (B v w) (A x y))", "((("} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		z, words, err := g.ParseTree(text)
		if err != nil {
			return
		}
		if err := z.Check(); err != nil {
			t.Fatal(err)
		}
		back, again, err := g.ParseTree(g.Format(z, words))
		if err != nil || back.Shape() != z.Shape() || !slices.Equal(again, words) || !slices.Equal(back.Tags, z.Tags) {
			t.Errorf("%q: %v", text, err)
		}
	})
}
