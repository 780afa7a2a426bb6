package treebank

import "io"

// Limits of one tree. The longest trees of the usual treebanks have a few thousand bytes and some 50 levels; far
// beyond that, a bracket is missing.
const (
	maxTreeBytes = 1 << 20
	maxTreeDepth = 500
)

// Reader reads trees in brackets, one after the other: (S (NP (DT the) (NN dog)) (VP (VBZ sleeps))). A tree may take
// several lines, and the empty bracket that the Penn Treebank puts around each is removed. The memory it needs is
// bounded by the largest tree it accepts, of 1 MiB.
type Reader struct {
	text  *text
	start int // line of the first bracket of the last tree
	open  []*Tree
	err   error
}

// NewReader returns a reader of trees. Data in gzip format is recognised by its first bytes. The name is for
// messages.
func NewReader(r io.Reader, name string) (*Reader, error) {
	t, err := newText(r, name)
	if err != nil {
		return nil, err
	}
	return &Reader{text: t}, nil
}

// Line returns the line where the last tree began, counted from 1.
func (r *Reader) Line() int { return r.start }

// Next returns the next tree, or io.EOF after the last one. An error names the file and the line; after an error no
// more trees follow.
func (r *Reader) Next() (*Tree, error) {
	if r.err != nil {
		return nil, r.err
	}
	t, err := r.next()
	r.err = err
	return t, err
}

func (r *Reader) next() (*Tree, error) {
	r.open = r.open[:0]
	for {
		token, err := r.text.token()
		if err == io.EOF && len(r.open) > 0 {
			return nil, r.text.errorf("the file ends inside the tree that began in line %d: closing brackets are missing", r.start)
		} else if err != nil {
			return nil, err
		}
		switch token {
		case "(":
			err = r.begin()
		case ")":
			var t *Tree
			if t, err = r.end(); t != nil {
				return t, nil
			}
		default:
			err = r.atom(token)
		}
		if err != nil {
			return nil, err
		}
		if r.text.size > maxTreeBytes {
			return nil, r.text.errorf("the tree that began in line %d is larger than %d bytes: a closing bracket may be missing", r.start, maxTreeBytes)
		}
	}
}

func (r *Reader) begin() error {
	if len(r.open) == 0 {
		r.start, r.text.size = r.text.line, 0
	} else if top := r.open[len(r.open)-1]; top.Word != "" {
		return r.untagged(top.Word)
	}
	if len(r.open) == maxTreeDepth {
		return r.text.errorf("the tree that began in line %d is nested deeper than %d: a closing bracket may be missing", r.start, maxTreeDepth)
	}
	r.open = append(r.open, &Tree{})
	return nil
}

func (r *Reader) atom(word string) error {
	if len(r.open) == 0 {
		return r.text.errorf("%q stands outside brackets; a tree looks like (S (NN dogs) (VBP sleep))", shorten(word))
	}
	top := r.open[len(r.open)-1]
	switch {
	case len(top.Children) > 0:
		return r.untagged(word)
	case top.Label == "":
		top.Label = word
	case top.Word == "":
		top.Word = word
	default:
		return r.text.errorf("two words, %q and %q, in one leaf; a leaf is written (TAG word)", shorten(top.Word), shorten(word))
	}
	return nil
}

// end closes the innermost bracket and returns the tree if it was the outermost.
func (r *Reader) end() (*Tree, error) {
	last := len(r.open) - 1
	if last < 0 {
		return nil, r.text.errorf("closing bracket without an opening one")
	}
	top := r.open[last]
	switch empty := top.Word == "" && len(top.Children) == 0; {
	case empty && top.Label == "":
		return nil, r.text.errorf("empty brackets ()")
	case empty:
		return nil, r.text.errorf("nothing but a label in (%s); a leaf is written (TAG word)", shorten(top.Label))
	case top.Label == "" && last > 0:
		return nil, r.text.errorf("a bracket inside a tree has no label")
	}
	r.open = r.open[:last]
	if last > 0 {
		parent := r.open[last-1]
		parent.Children = append(parent.Children, top)
		return nil, nil
	}
	if top.Label == "" && len(top.Children) == 1 {
		top = top.Children[0]
	}
	return top, nil
}

func (r *Reader) untagged(word string) error {
	return r.text.errorf("the word %q has no tag; a leaf is written (TAG word)", shorten(word))
}
