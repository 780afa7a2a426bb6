package grammar

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/gfnem/gfnem/badinput"
)

// maxEntries is the greatest size of a table: 256 MiB. A short file could ask for much more with long lists of names.
const maxEntries = 1 << 25

// Load reads a grammar from a JSON file; see Read.
func Load(path string) (*Grammar, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, badinput.Errorf("grammar: %w", err)
	}
	defer f.Close()
	return Read(f, path)
}

// Read reads a grammar in JSON and checks it. The name of the file is for errors, which say the line.
//
//	{"kind": "cfg", "nonterminals": ["A"], "preterminals": ["T"], "words": ["w"], "root": {"A": 1},
//	 "binary": {"A": {"A T": 0.5, "T T": 0.5}}, "emit": {"T": {"w": 1}}}
//
// Rules that are absent have probability 0. In an "ncfg" the keys of binary and emit carry the parent after a bar:
// "A|ROOT", "A|A", "T|A". Every distribution that can be needed must be there, and sum to one within 1e-6.
func Read(r io.Reader, file string) (*Grammar, error) {
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, badinput.Errorf("%s: %w", file, err)
	}
	p := &fileReader{text: text, json: json.NewDecoder(bytes.NewReader(text)), file: file, known: map[string]string{}}
	p.json.UseNumber()
	if err := p.read(); err != nil {
		return nil, err
	}
	return p.grammar()
}

// fileReader reads JSON token by token: it sees duplicates, and knows where things are.
type fileReader struct {
	text  []byte
	json  *json.Decoder
	file  string
	known map[string]string // names of outcomes, each kept once

	kind                              Kind
	nonterminals, preterminals, words nameList
	root                              row
	binary, emit                      []row
}

// nameList is a list of names and their numbers, and row is a distribution with its name.
type (
	nameList struct {
		list []string
		at   map[string]int
	}
	row struct {
		name    string
		offset  int64 // in the text
		entries []entry
	}
	entry struct {
		name   string
		p      float64
		offset int64
	}
)

func (p *fileReader) fail(format string, args ...any) error {
	return p.failAt(p.json.InputOffset(), format, args...)
}

func (p *fileReader) failAt(offset int64, format string, args ...any) error {
	line := 1 + bytes.Count(p.text[:offset], []byte("\n"))
	return badinput.Errorf("%s:%d: %w", p.file, line, fmt.Errorf(format, args...))
}

// token reads a token; the end of the file is an error.
func (p *fileReader) token() (json.Token, error) {
	t, err := p.json.Token()
	switch {
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return nil, p.fail("the file ends too early")
	case err != nil:
		return nil, p.fail("%w", err)
	}
	return t, nil
}

func (p *fileReader) expect(want json.Delim, what string) error {
	t, err := p.token()
	if err == nil && t != want {
		return p.fail("%s: expected %q, found %v", what, want.String(), t)
	}
	return err
}

// object reads an object; each is called with a key, which is not met twice, to read its value.
func (p *fileReader) object(what string, each func(key string) error) error {
	if err := p.expect('{', what); err != nil {
		return err
	}
	seen := map[string]bool{}
	for p.json.More() {
		t, err := p.token()
		if err != nil {
			return err
		}
		key := t.(string) // the decoder allows nothing else
		if seen[key] {
			return p.fail("%s: %q twice", what, key)
		}
		seen[key] = true
		if err := each(key); err != nil {
			return err
		}
	}
	_, err := p.token()
	return err
}

func (p *fileReader) read() error {
	for at := 0; at < len(p.text); {
		r, size := utf8.DecodeRune(p.text[at:])
		if r == utf8.RuneError && size == 1 {
			return p.failAt(int64(at), "the text is not UTF-8")
		}
		at += size
	}
	left := map[string]func(key string) error{
		"kind":         p.readKind,
		"nonterminals": func(key string) error { return p.names(&p.nonterminals, key, true) },
		"preterminals": func(key string) error { return p.names(&p.preterminals, key, true) },
		"words":        func(key string) error { return p.names(&p.words, key, false) },
		"root":         func(key string) error { return p.row(&p.root, key) },
		"binary":       func(key string) error { return p.rows(&p.binary, key) },
		"emit":         func(key string) error { return p.rows(&p.emit, key) },
	}
	err := p.object("grammar", func(key string) error {
		part, ok := left[key]
		if !ok {
			return p.fail("unknown key %q", key)
		}
		delete(left, key)
		return part(key)
	})
	if err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(left)) {
		return p.fail("%q is missing", key)
	}
	if t, err := p.json.Token(); err == nil {
		return p.fail("%v after the end of the grammar", t)
	} else if !errors.Is(err, io.EOF) {
		return p.fail("after the end of the grammar: %w", err)
	}
	return nil
}

func (p *fileReader) readKind(string) error {
	t, err := p.token()
	if err != nil {
		return err
	}
	if p.kind = Kind(fmt.Sprint(t)); p.kind != CFG && p.kind != NCFG {
		return p.fail("kind %q: it is \"cfg\" or \"ncfg\"", p.kind)
	}
	return nil
}

// names reads a list of names. Symbols stand in brackets and before bars, so they hold neither.
func (p *fileReader) names(n *nameList, what string, symbols bool) error {
	n.at = map[string]int{}
	if err := p.expect('[', what); err != nil {
		return err
	}
	for p.json.More() {
		t, err := p.token()
		if err != nil {
			return err
		}
		name, ok := t.(string)
		switch _, twice := n.at[name]; {
		case !ok:
			return p.fail("%s: %v is not a name", what, t)
		case name == "":
			return p.fail("%s: an empty name", what)
		case strings.ContainsFunc(name, unicode.IsSpace):
			return p.fail("%s: the name %q has a space in it", what, name)
		case symbols && strings.ContainsAny(name, "|()"):
			return p.fail("%s: the name %q has a bar or a bracket in it", what, name)
		case symbols && name == RootName:
			return p.fail("%s: %s is what is above the top and cannot be listed", what, RootName)
		case twice:
			return p.fail("%s: %q twice", what, name)
		}
		n.at[name] = len(n.list)
		n.list = append(n.list, name)
	}
	_, err := p.token()
	if err == nil && len(n.list) == 0 {
		return p.fail("%s: the list is empty", what)
	}
	return err
}

func (p *fileReader) rows(to *[]row, what string) error {
	return p.object(what, func(key string) error {
		var r row
		err := p.row(&r, key)
		*to = append(*to, r)
		return err
	})
}

// row reads a distribution: an object of probabilities that sum to one.
func (p *fileReader) row(r *row, name string) error {
	r.name, r.offset = name, p.json.InputOffset()
	total := 0.0
	err := p.object(name, func(key string) error {
		t, err := p.token()
		if err != nil {
			return err
		}
		number, ok := t.(json.Number)
		if !ok {
			return p.fail("%s: the probability of %q is %v", name, key, t)
		}
		v, err := number.Float64()
		if err != nil || !(v >= 0 && v <= 1+sumTolerance) {
			return p.fail("%s: the probability of %q is %s", name, key, number)
		}
		if _, ok := p.known[key]; !ok {
			p.known[key] = key
		}
		total += v
		r.entries = append(r.entries, entry{p.known[key], v, p.json.InputOffset()})
		return nil
	})
	if err == nil && !(total > 1-sumTolerance && total < 1+sumTolerance) {
		return p.failAt(r.offset, "probabilities of %s sum to %.9g, not to 1", name, total)
	}
	return err
}
