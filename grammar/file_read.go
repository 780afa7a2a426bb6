package grammar

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"
	"unicode"
	"unicode/utf8"
	"unique"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/internal/input"
	"github.com/gfnem/gfnem/treebank"
)

// maxEntries is the greatest size of a table: 256 MiB. A short file could ask for much more with long lists of names.
const maxEntries = 1 << 25

// sumTolerance is how far the sum of a distribution in a file may be from one.
const sumTolerance = 1e-6

// Load reads a grammar from a JSON file; see Read.
func Load(path string) (*Grammar, error) {
	data, err := input.Read(path, 1<<32)
	if err != nil {
		return nil, badinput.Errorf("grammar: %w", err)
	}
	return Read(bytes.NewReader(data), path)
}

// Read reads a grammar in JSON and checks it. The name of the file is for errors, which say the line.
//
//	{"kind": "cfg", "nonterminals": ["A"], "preterminals": ["T"], "words": ["w"], "root": {"A": 1},
//	 "binary": {"A": {"A T": 0.5, "T T": 0.5}}, "emit": {"T": {"w": 1}}}
//
// Optional is {"prepared": {"tokens": "english", "punctuation": false, "keep_case": false, "keep_numbers": false}}:
// what became of the text that the grammar was learned from, and new text is to go through.
//
// Rules that are absent have probability 0. In an "ncfg" the keys of binary and emit carry the parent after a bar:
// "A|ROOT", "A|A", "T|A". Every distribution that can be needed must be there, and sum to one within 1e-6.
func Read(r io.Reader, file string) (g *Grammar, err error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, badinput.Errorf("%s: %w", file, err)
	}
	p := &fileReader{file: file, data: data, json: json.NewDecoder(bytes.NewReader(data))}
	p.json.UseNumber()
	defer func() {
		switch e := recover().(type) {
		case nil:
		case *badinput.Error:
			g, err = nil, e
		default:
			panic(e)
		}
	}()
	p.read()
	return p.grammar(), nil
}

// fileReader reads JSON token by token, since that sees duplicates and knows lines. It gives up by a panic, see fail.
type fileReader struct {
	file string
	data []byte
	json *json.Decoder

	kind                              Kind
	nonterminals, preterminals, words nameList
	root                              row
	binary, emit                      []row
	prepared                          *treebank.Preparation
}

// nameList is a list of names and their numbers, and row is a distribution with its name. Both know where they stand.
type (
	nameList struct {
		list []string
		at   map[string]int
	}
	row struct {
		name    string
		offset  int64
		entries []entry
	}
	entry struct {
		name   string
		p      float64
		offset int64
	}
)

// fail panics with an error of one line, for an offset into the file.
func (p *fileReader) fail(offset int64, format string, args ...any) {
	line := 1 + bytes.Count(p.data[:offset], []byte("\n"))
	text := strings.Join(strings.FieldsFunc(fmt.Sprintf(format, args...), func(r rune) bool { return r == '\n' || r == '\r' }), " ")
	panic(badinput.Errorf("%s:%d: %s", p.file, line, text))
}

// failHere is fail after the last token.
func (p *fileReader) failHere(format string, args ...any) {
	p.fail(p.json.InputOffset(), format, args...)
}

func (p *fileReader) token() json.Token {
	t, err := p.json.Token()
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		p.failHere("the file ends too early")
	} else if err != nil {
		p.failHere("%v", err)
	}
	return t
}

func (p *fileReader) expect(want json.Delim, what string) {
	if t := p.token(); t != want {
		p.failHere("%s: expected %q, found %v", what, want.String(), t)
	}
}

// object reads an object; each is called with a key, which is not met twice, to read its value.
func (p *fileReader) object(what string, each func(key string)) (keys map[string]bool) {
	p.expect('{', what)
	keys = map[string]bool{}
	for p.json.More() {
		key := p.token().(string) // the decoder allows nothing else
		if keys[key] {
			p.failHere("%s: %q twice", what, key)
		}
		keys[key] = true
		each(key)
	}
	p.expect('}', what)
	return keys
}

func (p *fileReader) read() {
	start := int64(0)
	for line := range bytes.Lines(p.data) {
		if !utf8.Valid(line) {
			p.fail(start, "the text is not UTF-8")
		}
		start += int64(len(line))
	}
	keys := p.object("grammar", func(key string) {
		switch key {
		case "kind":
			if p.kind = Kind(fmt.Sprint(p.token())); p.kind != CFG && p.kind != NCFG {
				p.failHere("kind %q: it is \"cfg\" or \"ncfg\"", p.kind)
			}
		case "nonterminals":
			p.nonterminals = p.names(key, true)
		case "preterminals":
			p.preterminals = p.names(key, true)
		case "words":
			p.words = p.names(key, false)
		case "prepared":
			p.prepared = p.preparation(key)
		case "root":
			p.root = p.row(key)
		case "binary":
			p.object(key, func(name string) { p.binary = append(p.binary, p.row(name)) })
		case "emit":
			p.object(key, func(name string) { p.emit = append(p.emit, p.row(name)) })
		default:
			p.failHere("unknown key %q", key)
		}
	})
	for _, key := range []string{"kind", "nonterminals", "preterminals", "words", "root", "binary", "emit"} {
		if !keys[key] {
			p.failHere("%q is missing", key)
		}
	}
	if _, err := p.json.Token(); !errors.Is(err, io.EOF) {
		p.failHere("after the end of the grammar there is more text")
	}
}

// preparation reads how new text is to be read.
func (p *fileReader) preparation(what string) *treebank.Preparation {
	out := &treebank.Preparation{}
	flags := map[string]*bool{"punctuation": &out.Punctuation, "keep_case": &out.KeepCase, "keep_numbers": &out.KeepNumbers}
	keys := p.object(what, func(key string) {
		t, to := p.token(), flags[key]
		value, isBool := t.(bool)
		switch {
		case key == "tokens" && (t == treebank.TokensEnglish || t == treebank.TokensSpaces):
			out.Tokens = t.(string)
		case to == nil || !isBool:
			p.failHere("%s: %q is %v; it has tokens, \"english\" or \"spaces\", and punctuation, keep_case and keep_numbers, true or false", what, key, t)
		default:
			*to = value
		}
	})
	if !keys["tokens"] {
		p.failHere("%s: \"tokens\" is missing", what)
	}
	return out
}

// names reads a list of names. Symbols stand in brackets and before bars, so they hold neither.
func (p *fileReader) names(what string, symbols bool) nameList {
	n := nameList{at: map[string]int{}}
	p.expect('[', what)
	for p.json.More() {
		t := p.token()
		name, ok := t.(string)
		switch _, twice := n.at[name]; {
		case !ok:
			p.failHere("%s: %v is not a name", what, t)
		case name == "":
			p.failHere("%s: an empty name", what)
		case strings.ContainsFunc(name, unicode.IsSpace):
			p.failHere("%s: the name %q has a space in it", what, name)
		case symbols && strings.ContainsAny(name, "|()"):
			p.failHere("%s: the name %q has a bar or a bracket in it", what, name)
		case symbols && name == RootName:
			p.failHere("%s: %s is what is above the top and cannot be listed", what, RootName)
		case twice:
			p.failHere("%s: %q twice", what, name)
		}
		n.at[name] = len(n.list)
		n.list = append(n.list, name)
	}
	p.expect(']', what)
	if len(n.list) == 0 {
		p.failHere("%s: the list is empty", what)
	}
	return n
}

// row reads a distribution: an object of probabilities that sum to one.
func (p *fileReader) row(name string) row {
	r := row{name: name, offset: p.json.InputOffset()}
	total := 0.0
	p.object(name, func(key string) {
		t := p.token()
		number, _ := t.(json.Number)
		v, err := number.Float64()
		if err != nil || !(v >= 0 && v <= 1+sumTolerance) {
			p.failHere("%s: the probability of %q is %v", name, key, t)
		}
		total += v
		r.entries = append(r.entries, entry{unique.Make(key).Value(), v, p.json.InputOffset()})
	})
	if !(total > 1-sumTolerance && total < 1+sumTolerance) {
		p.fail(r.offset, "probabilities of %s sum to %.9g, not to 1", name, total)
	}
	return r
}

// grammar makes tables of what was read.
func (p *fileReader) grammar() *Grammar {
	n, s, v := len(p.nonterminals.list), len(p.nonterminals.list)+len(p.preterminals.list), len(p.words.list)
	symbols := maps.Clone(p.nonterminals.at)
	for i, name := range p.preterminals.list {
		if _, both := symbols[name]; both {
			p.fail(0, "%q is both a nonterminal and a preterminal", name)
		}
		symbols[name] = n + i
	}
	rules, emissions := float64(n)*float64(s)*float64(s), float64(s-n)*float64(v)
	if p.kind == NCFG {
		rules, emissions = rules*float64(n+1), emissions*float64(n)
	}
	if rules > maxEntries || emissions > maxEntries {
		p.fail(0, "%d nonterminals, %d preterminals and %d words need tables of %.3g rules and %.3g emissions; at most %d fit",
			n, s-n, v, rules, emissions, maxEntries)
	}
	g := New(p.kind, p.nonterminals.list, p.preterminals.list, p.words.list)
	g.Prepared = p.prepared
	p.fill(g.Root, p.root, "root: %q is not a nonterminal", p.nonterminals.number)
	for _, r := range p.binary {
		x, parent := p.head("binary", r, p.nonterminals)
		p.fill(g.RuleRow(x, parent), r, "binary: %q is not two symbols with a space between", func(name string) (int, bool) {
			left, right, ok := strings.Cut(name, " ")
			l, okLeft := symbols[left]
			r, okRight := symbols[right]
			return l*s + r, ok && okLeft && okRight
		})
	}
	for _, r := range p.emit {
		t, parent := p.head("emit", r, p.preterminals)
		if p.kind == NCFG && parent == 0 {
			p.fail(r.offset, "emit: %q: a preterminal is below a nonterminal", r.name)
		}
		p.fill(g.EmitRow(t, max(parent-1, 0)), r, "emit: unknown word %q", p.words.number)
	}
	if err := g.reachable(); err != nil {
		p.fail(0, "%v", err)
	}
	return g
}

func (n nameList) number(name string) (int, bool) {
	i, ok := n.at[name]
	return i, ok
}

// fill writes a row, given the numbers of its outcomes.
func (p *fileReader) fill(to []float64, r row, unknown string, number func(name string) (int, bool)) {
	for _, e := range r.entries {
		i, ok := number(e.name)
		if !ok {
			p.fail(e.offset, unknown, e.name)
		}
		to[i] = e.p
	}
}

// head reads the name of a distribution, "symbol" or in an NCFG "symbol|parent"; ROOT is parent 0.
func (p *fileReader) head(what string, r row, symbols nameList) (symbol, parent int) {
	name, above, bar := strings.Cut(r.name, "|")
	symbol, known := symbols.at[name]
	x, isParent := p.nonterminals.at[above]
	switch {
	case bar && p.kind == CFG:
		p.fail(r.offset, "%s: %q names a parent, but the kind is \"cfg\"", what, r.name)
	case !bar && p.kind == NCFG:
		p.fail(r.offset, "%s: %q names no parent; write %q or the like", what, r.name, r.name+"|"+p.nonterminals.list[0])
	case !known:
		p.fail(r.offset, "%s: unknown symbol %q", what, name)
	case !bar || above == RootName:
		return symbol, 0
	case !isParent:
		p.fail(r.offset, "%s: the parent %q of %q is not a nonterminal", what, above, name)
	}
	return symbol, x + 1
}
