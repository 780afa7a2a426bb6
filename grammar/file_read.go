package grammar

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"

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
// Rules that are absent have probability 0. In an "ncfg" the keys of binary and emit carry the parent after a bar: "A|ROOT",
// "A|A", "T|A". Every distribution that can be needed must be there, and sum to one within 1e-6.
func Read(r io.Reader, file string) (*Grammar, error) {
	text := &textReader{r: r, line: 1}
	p := &fileReader{text: text, json: json.NewDecoder(text), file: file, parts: map[string]bool{}, known: map[string]string{}}
	p.json.UseNumber()
	if err := p.read(); err != nil {
		var input *badinput.Error
		if errors.As(err, &input) {
			return nil, err
		}
		return nil, p.fail("%w", err)
	}
	return p.grammar()
}

// fileReader reads JSON token by token: it sees duplicates, knows lines, and holds no more than the entries of the file.
type fileReader struct {
	text  *textReader
	json  *json.Decoder
	file  string
	parts map[string]bool   // keys met so far
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
		line    int
		entries []entry
	}
	entry struct {
		name string
		p    float64
		line int
	}
)

func (p *fileReader) fail(format string, args ...any) error {
	return p.failAt(p.text.lineAt(p.json.InputOffset()), format, args...)
}

func (p *fileReader) failAt(line int, format string, args ...any) error {
	return badinput.Errorf("%s:%d: %w", p.file, line, fmt.Errorf(format, args...))
}

// token reads a token; the end of the file is an error.
func (p *fileReader) token() (json.Token, error) {
	t, err := p.json.Token()
	switch {
	case p.text.bad != nil:
		return nil, p.failAt(p.text.badLine, "%w", p.text.bad)
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
	if err := p.object("grammar", p.part); err != nil {
		return err
	}
	for _, key := range []string{"kind", "nonterminals", "preterminals", "words", "root", "binary", "emit"} {
		if !p.parts[key] {
			return p.fail("%q is missing", key)
		}
	}
	if t, err := p.json.Token(); err == nil {
		return p.fail("%v after the end of the grammar", t)
	} else if !errors.Is(err, io.EOF) {
		return p.fail("after the end of the grammar: %w", err)
	}
	return nil
}

func (p *fileReader) part(key string) (err error) {
	p.parts[key] = true
	switch key {
	case "kind":
		var t json.Token
		if t, err = p.token(); err != nil {
			return err
		}
		if p.kind = Kind(fmt.Sprint(t)); p.kind != CFG && p.kind != NCFG {
			return p.fail("kind %q: it is \"cfg\" or \"ncfg\"", p.kind)
		}
	case "nonterminals":
		p.nonterminals, err = p.names(key, true)
	case "preterminals":
		p.preterminals, err = p.names(key, true)
	case "words":
		p.words, err = p.names(key, false)
	case "root":
		p.root, err = p.row(key)
	case "binary":
		p.binary, err = p.rows(key)
	case "emit":
		p.emit, err = p.rows(key)
	default:
		return p.fail("unknown key %q", key)
	}
	return err
}

// names reads a list of names. Symbols stand in brackets and before bars, so they hold neither.
func (p *fileReader) names(what string, symbols bool) (nameList, error) {
	n := nameList{at: map[string]int{}}
	if err := p.expect('[', what); err != nil {
		return n, err
	}
	for p.json.More() {
		t, err := p.token()
		if err != nil {
			return n, err
		}
		name, ok := t.(string)
		switch _, twice := n.at[name]; {
		case !ok:
			return n, p.fail("%s: %v is not a name", what, t)
		case name == "":
			return n, p.fail("%s: an empty name", what)
		case strings.ContainsFunc(name, unicode.IsSpace):
			return n, p.fail("%s: the name %q has a space in it", what, name)
		case symbols && strings.ContainsAny(name, "|()"):
			return n, p.fail("%s: the name %q has a bar or a bracket in it", what, name)
		case symbols && name == RootName:
			return n, p.fail("%s: %s is what is above the top and cannot be listed", what, RootName)
		case twice:
			return n, p.fail("%s: %q twice", what, name)
		}
		n.at[name] = len(n.list)
		n.list = append(n.list, name)
	}
	if _, err := p.token(); err != nil {
		return n, err
	}
	if len(n.list) == 0 {
		return n, p.fail("%s: the list is empty", what)
	}
	return n, nil
}

func (p *fileReader) rows(what string) (out []row, err error) {
	err = p.object(what, func(key string) error {
		r, err := p.row(key)
		out = append(out, r)
		return err
	})
	return out, err
}

// row reads a distribution: an object of probabilities that sum to one.
func (p *fileReader) row(name string) (row, error) {
	r := row{name: name, line: p.text.lineAt(p.json.InputOffset())}
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
		total += v
		r.entries = append(r.entries, entry{p.once(key), v, p.text.lineAt(p.json.InputOffset())})
		return nil
	})
	if err == nil && !(total > 1-sumTolerance && total < 1+sumTolerance) {
		return r, p.failAt(r.line, "probabilities of %s sum to %.9g, not to 1", name, total)
	}
	return r, err
}

// once returns the same text, held in memory once however often it is met.
func (p *fileReader) once(text string) string {
	if have, ok := p.known[text]; ok {
		return have
	}
	p.known[text] = text
	return text
}
