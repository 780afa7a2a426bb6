package treebank

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gfnem/gfnem/badinput"
)

// readTreesOf returns the trees of a text, written again, and the lines where they began.
func readTreesOf(text string) (trees []string, begins []int, err error) {
	r, err := NewReader(strings.NewReader(text), "x.mrg")
	if err != nil {
		return nil, nil, err
	}
	for {
		t, err := r.Next()
		if err == io.EOF {
			return trees, begins, nil
		} else if err != nil {
			return trees, begins, err
		}
		trees, begins = append(trees, t.String()), append(begins, r.Line())
	}
}

func compressed(text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	io.WriteString(w, text)
	w.Close()
	return b.String()
}

func TestReader(t *testing.T) {
	penn := "\n( (S \n    (NP-SBJ (NNP Mr.) )\n    (VP (VBZ is) )\n    (. .) ))\n( (NP (NN N)) )\n"
	for name, c := range map[string]struct {
		text   string
		trees  []string
		begins []int
	}{
		"nothing":            {"", nil, nil},
		"blank":              {"\n \t\r\n", nil, nil},
		"one a line":         {"(S (A a) (B b))\n(S (C c))\n", []string{"(S (A a) (B b))", "(S (C c))"}, []int{1, 2}},
		"no last line end":   {"(S (A a))", []string{"(S (A a))"}, []int{1}},
		"several on a line":  {"(A a)(B b) (C c)", []string{"(A a)", "(B b)", "(C c)"}, []int{1, 1, 1}},
		"Penn Treebank":      {penn, []string{"(S (NP-SBJ (NNP Mr.)) (VP (VBZ is)) (. .))", "(NP (NN N))"}, []int{2, 6}},
		"two in one bracket": {"( (S (A a)) (S (B b)))", []string{"( (S (A a)) (S (B b)))"}, []int{1}},
		"other line ends":    {"(S\r\n(A a))\r\n", []string{"(S (A a))"}, []int{1}},
		"byte order mark":    {"\ufeff(A a)", []string{"(A a)"}, []int{1}},
		"no space":           {"(S(NP(A a))(B b))", []string{"(S (NP (A a)) (B b))"}, []int{1}},
		"other scripts":      {"(S (NN größe) (NN 木))", []string{"(S (NN größe) (NN 木))"}, []int{1}},
		"gzip":               {compressed(penn), []string{"(S (NP-SBJ (NNP Mr.)) (VP (VBZ is)) (. .))", "(NP (NN N))"}, []int{2, 6}},
	} {
		t.Run(name, func(t *testing.T) {
			trees, begins, err := readTreesOf(c.text)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.trees, trees); diff != "" {
				t.Error(diff)
			}
			if !slices.Equal(c.begins, begins) {
				t.Errorf("trees began in lines %v, want %v", begins, c.begins)
			}
		})
	}
}

func TestReaderErrors(t *testing.T) {
	deep := strings.Repeat("(S ", maxTreeDepth+1)
	for name, c := range map[string]struct{ text, want string }{
		"not closed":        {"(A a)\n\n(S (A a)\n", "x.mrg:4: the file ends inside the tree that began in line 3"},
		"closed twice":      {"(S (A a))\n)", "x.mrg:2: closing bracket without an opening one"},
		"empty":             {"(S (A a))\n()", "x.mrg:2: empty brackets"},
		"empty inside":      {"(S (A a) ())", "x.mrg:1: empty brackets"},
		"label only":        {"(S (A a)\n (NP))", "x.mrg:2: nothing but a label in (NP)"},
		"word after":        {"(S (A a) dog)", `x.mrg:1: the word "dog" has no tag`},
		"word before":       {"(S dog (A a))", `x.mrg:1: the word "dog" has no tag`},
		"word in the outer": {"( (A a)\ndog)", `x.mrg:2: the word "dog" has no tag`},
		"two words":         {"(NN hot dog)", `x.mrg:1: two words, "hot" and "dog", in one leaf`},
		"no label inside":   {"(S ( (A a)))", "x.mrg:1: a bracket inside a tree has no label"},
		"outside":           {"(A a)\nhello (B b)", `x.mrg:2: "hello" stands outside brackets`},
		"not UTF-8":         {"(A a)\n(NN caf\xe9)", `x.mrg:2: "caf\xe9" is not valid UTF-8`},
		"binary":            {"(A a)\n(NN \x00\x01)", "x.mrg:2: control character 0x00"},
		"deep":              {"(A a)\n" + deep, "x.mrg:2: the tree that began in line 2 is nested deeper than 500"},
		"large":             {"(S\n" + strings.Repeat("(A a)\n", maxTreeBytes/4), "the tree that began in line 1 is larger than 1048576 bytes"},
		"large word":        {"(S (A " + strings.Repeat("a", maxWordBytes+1), "x.mrg:1: a word of more than 4096 bytes"},
		"cut gzip":          {compressed("(S (A a))")[:20], "read x.mrg: unexpected EOF"},
		"wrong gzip":        {"\x1f\x8bhello, this is not it", "read x.mrg: gzip: invalid header"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := readTreesOf(c.text)
			var input *badinput.Error
			if !errors.As(err, &input) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want a bad input with %q", err, c.want)
			}
			if err != nil && (len(err.Error()) > 300 || strings.Contains(err.Error(), "\n")) {
				t.Errorf("not one short line: %q", err)
			}
		})
	}
}

func TestReaderStopsAtAnError(t *testing.T) {
	r, err := NewReader(strings.NewReader("() (A a)"), "x")
	if err != nil {
		t.Fatal(err)
	}
	_, first := r.Next()
	tree, second := r.Next()
	if first == nil || !errors.Is(second, first) || tree != nil {
		t.Errorf("after %v came %v and %v", first, tree, second)
	}
}

// endless gives the same tree for ever and counts what was asked for.
type endless struct{ given int }

func (e *endless) Read(p []byte) (int, error) {
	const tree = "(S (A a) (B b))\n"
	for i := range p {
		p[i] = tree[(e.given+i)%len(tree)]
	}
	e.given += len(p)
	return len(p), nil
}

func TestReaderReadsAhead(t *testing.T) {
	in := new(endless)
	r, err := NewReader(in, "x")
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := r.Next(); err != nil {
			t.Fatal(err)
		}
	}
	if in.given > 1<<17 {
		t.Errorf("%d bytes read for three trees", in.given)
	}
}

func FuzzReader(f *testing.F) {
	for _, seed := range []string{
		"", "(S (A a) (B b))", "( (S (A a)))", "( (A a) (B b))", "( ( (A a)))", "(A a", ")", "()", "(A)", "(A a b)", "x (A a)",
		"(S\n(NP\t(DT the)))", "(A \xff)", "\ufeff(A a)", compressed("(A a)"), "(S ((A a)))", "(A a))(",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		trees, begins, err := readTreesOf(string(data))
		if !slices.IsSorted(begins) {
			t.Errorf("lines %v", begins)
		}
		var input *badinput.Error
		if err != nil && !errors.As(err, &input) {
			t.Errorf("%T: %v", err, err)
		}
		again, _, err := readTreesOf(strings.Join(trees, "\n"))
		if err != nil || !slices.Equal(trees, again) {
			t.Errorf("%q became %q, %v", trees, again, err)
		}
	})
}
