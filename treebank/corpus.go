package treebank

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/gfnem/gfnem/internal/disk"
)

// parts are words in names of files that say which split they are.
var parts = regexp.MustCompile(`(?i)(^|[^a-z])(train|training|valid|validation|val|dev|development|test)([^a-z]|$)`)

// InputsAt are the files at a path: a file, or a folder, to be divided, or a folder whose files have train, valid or
// dev, and test in their names.
func InputsAt(path string, valid, test float64) (Inputs, error) {
	in := Inputs{All: []string{path}, ValidFraction: valid, TestFraction: test}
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		return in, err
	}
	files, err := expand([]string{path})
	if err != nil {
		return in, err
	}
	named := Inputs{}
	for _, f := range files {
		found := parts.FindStringSubmatch(filepath.Base(f))
		if found == nil {
			return in, nil
		}
		switch part := strings.ToLower(found[2]); {
		case strings.HasPrefix(part, "train"):
			named.Train = append(named.Train, f)
		case part == Test:
			named.Test = append(named.Test, f)
		default:
			named.Valid = append(named.Valid, f)
		}
	}
	if len(named.Train) == 0 || len(named.Valid)+len(named.Test) == 0 {
		return in, nil
	}
	return named, nil
}

// Preparation is what was done to the words of a data set, to be done to new text as well.
type Preparation struct {
	Tokens      string `json:"tokens"`      // TokensEnglish or TokensSpaces
	Punctuation bool   `json:"punctuation"` // it is kept
	KeepCase    bool   `json:"keep_case"`
	KeepNumbers bool   `json:"keep_numbers"`
}

// Preparation returns what new text needs to be like the data set. What was trees or CoNLL has words as in the Penn
// Treebank, which new text does not.
func (d *Dataset) Preparation() Preparation {
	o := d.Options
	p := Preparation{Tokens: o.Tokens, Punctuation: !o.DropPunctuation, KeepCase: o.KeepCase, KeepNumbers: o.KeepNumbers}
	if slices.ContainsFunc(d.Splits, func(s Split) bool { return s.Gold }) {
		p.Tokens, p.Punctuation = TokensEnglish, slices.Contains(o.KeepTags, AllTags)
	}
	if p.Tokens == "" {
		p.Tokens = TokensSpaces
	}
	return p
}

// Words cuts a line as the words of the data set were cut, and leaves out what was left out there.
func (p Preparation) Words(line string) []string {
	out := Options{Tokens: p.Tokens}.tokens(line)
	if p.Punctuation {
		return out
	}
	return slices.DeleteFunc(out, IsPunctuation)
}

// Word writes a word as it is in the vocabulary, if it is there.
func (p Preparation) Word(w string) string {
	return Options{KeepCase: p.KeepCase, KeepNumbers: p.KeepNumbers}.PrepareWord(w)
}

// Files are what Save writes, by name.
func (d *Dataset) Files() (map[string][]byte, error) {
	files := d.files()
	m := d.manifest(files)
	sealed, err := disk.Seal(&m, &m.SHA256)
	if err != nil {
		return nil, err
	}
	out := map[string][]byte{manifestName: sealed}
	for _, f := range files {
		out[f.name] = f.data
	}
	return out, nil
}
