package treebank

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gfnem/gfnem/badinput"
)

// reading reads the sentences of files, and remembers what they held.
type reading struct {
	Options
	format string
	kinds  []string            // what files held, in order of their first one
	files  map[string][]string // of each kind
	raw    bool                // some text had no spaces between tokens
	text   bool                // some file was text
}

// all reads and prepares the sentences of files and folders.
func (r *reading) all(paths []string) ([]raw, error) {
	files, err := expand(paths)
	if err != nil {
		return nil, err
	}
	var all []raw
	for _, path := range files {
		before := len(all)
		if err := r.file(path, func(s raw) { all = append(all, s) }); err != nil {
			return nil, err
		}
		if len(all) == before {
			return nil, badinput.Errorf("%s holds no sentence", path)
		}
	}
	return all, nil
}

// file calls visit with each sentence of a file.
func (r *reading) file(path string, visit func(raw)) (err error) {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	t, err := newText(f, path)
	if err != nil {
		return err
	}
	beginning, err := t.beginning()
	if err != nil {
		return err
	}
	format := r.format
	if format == FormatAuto {
		format = formatOf(path, beginning)
	}
	switch format {
	case FormatTrees:
		r.held(path, "trees in brackets")
		return readTrees(&Reader{text: t}, r.Options, visit)
	case FormatCoNLL:
		r.held(path, "CoNLL, of which words are used and dependencies are not")
		return readCoNLL(t, r.Options, visit)
	}
	o := r.Options
	if format == FormatSentences {
		o.Tokens, o.Sentences = TokensSpaces, SentencesLines
	}
	if o.Tokens == TokensAuto {
		o.Tokens = tokensOf(beginning)
	}
	if o.Sentences == SentencesAuto {
		o.Sentences = SentencesLines
		if o.Tokens == TokensEnglish {
			o.Sentences = sentencesOf(beginning)
		}
	}
	r.text, r.raw = true, r.raw || o.Tokens == TokensEnglish
	how := "text with spaces between tokens, which is taken as it is"
	if o.Tokens == TokensEnglish {
		how = "text, cut into tokens as English"
	}
	switch wrapped := isWrapped(beginning); {
	case o.Sentences != SentencesSplit:
		r.held(path, how+", one sentence a line")
		return t.eachLine(func(line []byte) error { return o.visit(string(line), t.at(t.line), visit) })
	case !wrapped:
		r.held(path, how+", several sentences a line")
		return t.eachLine(func(line []byte) error { return o.visitAll(string(line), t.at(t.line), visit) })
	}
	r.held(path, how+", with sentences that go on from line to line")
	return readParagraphs(t, o, visit)
}

func readTrees(r *Reader, o Options, visit func(raw)) error {
	keep := o.tagFilter()
	for {
		t, err := r.Next()
		if err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		words, gold := o.prepareTree(t, keep)
		visit(raw{words, gold, t.Leaves(), r.text.at(r.Line())})
	}
}

// readParagraphs joins lines up to an empty one.
func readParagraphs(t *text, o Options, visit func(raw)) error {
	var paragraph []string
	size, start := 0, ""
	end := func() error {
		err := o.visitAll(strings.Join(paragraph, " "), start, visit)
		paragraph, size = nil, 0
		return err
	}
	err := t.eachLine(func(line []byte) error {
		text := strings.TrimSpace(string(line))
		if text == "" {
			return end()
		}
		if paragraph == nil {
			start = t.at(t.line)
		}
		if size += len(text); size > 64*maxLineBytes {
			return t.errorf("the paragraph that begins at %s is longer than %d bytes: separate paragraphs by empty lines", start, 64*maxLineBytes)
		}
		paragraph = append(paragraph, text)
		return nil
	})
	if err != nil {
		return err
	}
	return end()
}

// visitAll visits the sentences of a paragraph.
func (o Options) visitAll(paragraph, where string, visit func(raw)) error {
	for _, s := range split(paragraph) {
		if err := o.visit(s, where, visit); err != nil {
			return err
		}
	}
	return nil
}

// visit visits a sentence, unless it is empty.
func (o Options) visit(sentence, where string, visit func(raw)) error {
	tokens := o.tokens(sentence)
	if len(tokens) == 0 {
		return nil
	}
	s := raw{leaves: len(tokens), where: where}
	for _, w := range tokens {
		if !o.DropPunctuation || !IsPunctuation(w) {
			s.words = append(s.words, o.PrepareWord(w))
		}
	}
	visit(s)
	return nil
}

// tokens cuts a sentence.
func (o Options) tokens(sentence string) []string {
	if o.Tokens == TokensEnglish {
		return english(sentence)
	}
	return plainWords(sentence)
}

// held remembers what a file was.
func (r *reading) held(path, kind string) {
	if r.files == nil {
		r.files = map[string][]string{}
	}
	if r.files[kind] == nil {
		r.kinds = append(r.kinds, kind)
	}
	r.files[kind] = append(r.files[kind], filepath.Base(path))
}

// notes say what files were, a line for each kind.
func (r *reading) notes() (out []string) {
	for _, kind := range r.kinds {
		files := r.files[kind]
		name := files[0]
		if len(files) > 1 {
			name += fmt.Sprintf(" and %d more", len(files)-1)
		}
		out = append(out, name+": "+kind)
	}
	return out
}

// resolved are the options, with what was found out about text.
func (r *reading) resolved() Options {
	o := r.Options
	if o.Tokens == TokensAuto {
		o.Tokens = TokensEnglish // of new text, where there was none
		if r.text && !r.raw {
			o.Tokens = TokensSpaces
		}
	}
	if o.Sentences == SentencesAuto {
		o.Sentences = ""
	}
	return o
}

// fitting is the length that nine tenths of the sentences have at most: between 20 and 40 words, or that of the
// longest.
func fitting(all []raw, least int) int {
	var lengths []int
	for _, s := range all {
		if n := len(s.words); n >= least {
			lengths = append(lengths, n)
		}
	}
	if len(lengths) == 0 {
		return fitsLeast
	}
	slices.Sort(lengths)
	most := lengths[len(lengths)-1]
	return max(least, min(most, fitsMost, max(fitsLeast, lengths[(9*len(lengths)+9)/10-1])))
}

// What FitLength is between: what the published experiments have read, and eight times its cost.
const fitsLeast, fitsMost = 20, 40
