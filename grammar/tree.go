package grammar

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// Tree is a binary tree over the words of one sentence, bottom-up: words are nodes 0 to n-1, and the t-th merge of two
// nodes makes node n+t with a label. The last merge makes the top.
type Tree struct {
	Left, Right, Label []int // of each merge
	Tags               []int // the preterminal of each word; nil if they are not known
}

// RandomTree merges two random neighbours until one tree is left, each time under a random nonterminal of nt.
func RandomTree(r *rand.Rand, n, nt int) *Tree {
	t := &Tree{}
	forest := make([]int, n)
	for i := range forest {
		forest[i] = i
	}
	for m := range n - 1 {
		i := r.IntN(len(forest) - 1)
		t.Left, t.Right, t.Label = append(t.Left, forest[i]), append(t.Right, forest[i+1]), append(t.Label, r.IntN(nt))
		forest[i] = n + m
		forest = append(forest[:i+1], forest[i+2:]...)
	}
	return t
}

// Words is n.
func (t *Tree) Words() int { return len(t.Left) + 1 }

// Span is a constituent: its first and last word, both inclusive, and its label.
type Span struct{ First, Last, Label int }

// Check says whether the arrays are a tree over a sentence of two words or more, words in order.
func (t *Tree) Check() error {
	n := t.Words()
	if n < 2 || len(t.Right) != n-1 || len(t.Label) != n-1 || t.Tags != nil && len(t.Tags) != n {
		return fmt.Errorf("grammar: a tree of %d left and %d right children, %d labels and %d tags",
			len(t.Left), len(t.Right), len(t.Label), len(t.Tags))
	}
	first, last := make([]int, 2*n-1), make([]int, 2*n-1)
	used := make([]bool, 2*n-1)
	for i := range n {
		first[i], last[i] = i, i
	}
	for m := range n - 1 {
		l, r := t.Left[m], t.Right[m]
		for _, c := range []int{l, r} {
			if c < 0 || c >= n+m || used[c] {
				return fmt.Errorf("grammar: merge %d of a tree takes node %d, which is not there", m, c)
			}
			used[c] = true
		}
		if last[l]+1 != first[r] {
			return fmt.Errorf("grammar: merge %d of a tree joins nodes %d and %d, which are not neighbours", m, l, r)
		}
		first[n+m], last[n+m] = first[l], last[r]
	}
	return nil
}

// Spans lists the constituents of two words or more in the order of merges, the whole sentence last.
func (t *Tree) Spans() []Span {
	n := t.Words()
	out := make([]Span, n-1)
	first := func(c int) int {
		if c < n {
			return c
		}
		return out[c-n].First
	}
	last := func(c int) int {
		if c < n {
			return c
		}
		return out[c-n].Last
	}
	for m := range out {
		out[m] = Span{first(t.Left[m]), last(t.Right[m]), t.Label[m]}
	}
	return out
}

// Shape writes the tree with numbers alone, such as "1(0 0(1 2))": labels before brackets, words by position. Two trees
// are equal, tags aside, exactly when their shapes are.
func (t *Tree) Shape() string {
	n := t.Words()
	text := make([]string, 2*n-1)
	for i := range n {
		text[i] = fmt.Sprint(i)
	}
	for m := range n - 1 {
		text[n+m] = fmt.Sprintf("%d(%s %s)", t.Label[m], text[t.Left[m]], text[t.Right[m]])
	}
	return text[2*n-2]
}

var brackets = strings.NewReplacer("(", "-LRB-", ")", "-RRB-")

// Format writes the tree over its words in brackets, such as "(S the (NP old man))", or with tags "(S (D the) (NP (A
// old) (N man)))". Brackets in words become -LRB- and -RRB-.
func (g *Grammar) Format(t *Tree, words []string) string {
	var b strings.Builder
	var write func(node int)
	write = func(node int) {
		if node < len(words) {
			w := brackets.Replace(words[node])
			if t.Tags != nil {
				w = "(" + g.Preterminals[t.Tags[node]] + " " + w + ")"
			}
			b.WriteString(w)
			return
		}
		m := node - len(words)
		b.WriteString("(" + g.Nonterminals[t.Label[m]] + " ")
		write(t.Left[m])
		b.WriteByte(' ')
		write(t.Right[m])
		b.WriteByte(')')
	}
	write(2*len(words) - 2)
	return b.String()
}
