package grammar

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/gfnem/gfnem/badinput"
)

// Tree is a binary tree over the words of one sentence, bottom-up: words are nodes 0 to n-1, and the t-th merge of two nodes
// makes node n+t with a label. The last merge makes the top.
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

// Shape writes the tree with numbers alone, such as "1(0 0(1 2))": labels before brackets, words by position. Two trees are
// equal, tags aside, exactly when their shapes are.
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

// Format writes the tree over its words in brackets, such as "(S the (NP old man))", or with tags "(S (D the) (NP (A old) (N man)))".
// Brackets in words become -LRB- and -RRB-.
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

// ParseTree reads what Format writes. Nodes have two children, and either all words have tags or none has. Words are
// returned as they stand.
func (g *Grammar) ParseTree(text string) (*Tree, []string, error) {
	p := &treeParser{
		tokens: strings.Fields(strings.NewReplacer("(", " ( ", ")", " ) ").Replace(text)),
		labels: numbered(g.Nonterminals), tags: numbered(g.Preterminals),
	}
	if err := p.read(); err != nil {
		return nil, nil, err
	}
	return p.tree(), p.words, nil
}

func numbered(names []string) map[string]int {
	m := make(map[string]int, len(names))
	for i, n := range names {
		m[n] = i
	}
	return m
}

// treeParser reads a bracketed tree without recursion, so that no input is too deep for it.
type treeParser struct {
	tokens       []string
	labels, tags map[string]int
	words        []string
	tagged       []int
	merges       []merge // children: word i is ^i, merge m is m
}

type merge struct{ left, right, label int }

// open is a bracket that is not closed yet.
type open struct {
	name     string
	children []int
}

func (p *treeParser) read() error {
	var stack []*open
	done := false
	for i := 0; i < len(p.tokens); i++ {
		token := p.tokens[i]
		if done {
			return badinput.Errorf("tree: %q after the end", token)
		}
		switch {
		case token == "(":
			if i++; i == len(p.tokens) || p.tokens[i] == "(" || p.tokens[i] == ")" {
				return badinput.Errorf("tree: a bracket without a label")
			}
			stack = append(stack, &open{name: p.tokens[i]})
		case len(stack) == 0:
			return badinput.Errorf("tree: %q before the first bracket", token)
		case token == ")":
			top := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			node, err := p.close(top)
			if err != nil {
				return err
			}
			if done = len(stack) == 0; done {
				if len(p.merges) == 0 {
					return badinput.Errorf("tree: a single word")
				}
			} else if err := stack[len(stack)-1].take(node); err != nil {
				return err
			}
		default:
			p.words = append(p.words, token)
			if err := stack[len(stack)-1].take(^(len(p.words) - 1)); err != nil {
				return err
			}
		}
	}
	switch {
	case len(p.tokens) == 0:
		return badinput.Errorf("tree: nothing there")
	case !done:
		return badinput.Errorf("tree: %d bracket(s) not closed", len(stack))
	case len(p.tagged) != 0 && len(p.tagged) != len(p.words):
		return badinput.Errorf("tree: %d of %d words have tags; give all or none", len(p.tagged), len(p.words))
	}
	return nil
}

func (o *open) take(child int) error {
	if len(o.children) == 2 {
		return badinput.Errorf("tree: %q has more than two children", o.name)
	}
	o.children = append(o.children, child)
	return nil
}

// close ends a bracket: a tag over a word, or a merge.
func (p *treeParser) close(o *open) (node int, err error) {
	switch {
	case len(o.children) == 0:
		return 0, badinput.Errorf("tree: %q has no children", o.name)
	case len(o.children) == 1 && o.children[0] < 0:
		tag, ok := p.tags[o.name]
		if !ok {
			return 0, badinput.Errorf("tree: %q above the word %q is not a preterminal", o.name, p.words[len(p.words)-1])
		}
		if len(p.tagged) != ^o.children[0] {
			return 0, badinput.Errorf("tree: the word %q has two tags, or words before it have none", p.words[len(p.words)-1])
		}
		p.tagged = append(p.tagged, tag)
		return o.children[0], nil
	case len(o.children) == 1:
		return 0, badinput.Errorf("tree: %q has one child; nodes have two", o.name)
	}
	label, ok := p.labels[o.name]
	if !ok {
		return 0, badinput.Errorf("tree: %q above two nodes is not a nonterminal", o.name)
	}
	p.merges = append(p.merges, merge{o.children[0], o.children[1], label})
	return len(p.merges) - 1, nil
}

func (p *treeParser) tree() *Tree {
	n := len(p.words)
	node := func(c int) int {
		if c < 0 {
			return ^c
		}
		return n + c
	}
	t := &Tree{Tags: p.tagged}
	for _, m := range p.merges {
		t.Left, t.Right, t.Label = append(t.Left, node(m.left)), append(t.Right, node(m.right)), append(t.Label, m.label)
	}
	return t
}
