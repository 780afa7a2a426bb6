package treebank

import "strings"

// Tree is a constituent, or a leaf if it holds a word.
type Tree struct {
	Label    string  // of the constituent, or the tag of the word
	Word     string  // of a leaf, else empty
	Children []*Tree // of a constituent, else empty
}

// Span is a constituent's first and last word, counted from 0.
type Span = [2]int

// String returns the tree in brackets on one line, as a [Reader] reads it.
func (t *Tree) String() string {
	var b strings.Builder
	t.write(&b)
	return b.String()
}

func (t *Tree) write(b *strings.Builder) {
	b.WriteString("(" + t.Label)
	if t.Word != "" {
		b.WriteString(" " + t.Word)
	}
	for _, c := range t.Children {
		b.WriteString(" ")
		c.write(b)
	}
	b.WriteString(")")
}

// Leaves returns the number of words below the tree, of any tag.
func (t *Tree) Leaves() int {
	if t.Word != "" {
		return 1
	}
	n := 0
	for _, c := range t.Children {
		n += c.Leaves()
	}
	return n
}

// rootLabels name brackets that only hold the tree of a sentence.
var rootLabels = map[string]bool{"": true, "ROOT": true, "TOP": true, "S1": true}

// unwrap returns the tree without brackets around it that are not constituents.
func (t *Tree) unwrap() *Tree {
	for rootLabels[t.Label] && len(t.Children) == 1 {
		t = t.Children[0]
	}
	return t
}
