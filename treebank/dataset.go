package treebank

import (
	"crypto/sha256"
	"fmt"
	"strings"

	"github.com/gfnem/gfnem/badinput"
)

// Names of the usual splits, in this order.
const (
	Train = "train"
	Valid = "valid"
	Test  = "test"
)

// Dataset is prepared sentences in splits, over one vocabulary.
type Dataset struct {
	Source     string // where it comes from, for people
	Options    Options
	Vocabulary *Vocabulary
	Splits     []Split
	Notes      []string // what its files were, a line for each kind

	// Aside is empty, or the folder that Load found the data set in because a command that replaced it was killed.
	Aside string
}

// Split is a named part of a data set.
type Split struct {
	Name      string
	Sentences []Sentence
	Gold      bool    // whether the sentences have gold spans
	Leaves    int     // words before preparation, of any tag
	Dropped   Dropped // what the preparation left out

	// TrueLogProb is the sum over sentences of their true log p(x | length is in bounds), in nats, where the
	// distribution is known; else nil.
	TrueLogProb *float64
}

// Sentence is words, by their numbers in the vocabulary, and the spans of its gold tree.
type Sentence struct {
	Words []int32
	// Gold holds the constituents of two words or more in the order in which they close. Several constituents of
	// the same words are several equal spans. The last one is the whole sentence. It is nil without a tree.
	Gold []Span
}

// Split returns a split by its name.
func (d *Dataset) Split(name string) (*Split, error) {
	var names []string
	for i := range d.Splits {
		if d.Splits[i].Name == name {
			return &d.Splits[i], nil
		}
		names = append(names, d.Splits[i].Name)
	}
	return nil, badinput.Errorf("the data set has no split %q, only %s", name, strings.Join(names, ", "))
}

// Text returns a sentence as words.
func (d *Dataset) Text(s Sentence) string {
	words := make([]string, len(s.Words))
	for i, id := range s.Words {
		words[i] = d.Vocabulary.words[id]
	}
	return strings.Join(words, " ")
}

// Between returns a data set of the sentences with at least least and at most most words; the vocabulary stays.
func (d *Dataset) Between(least, most int) *Dataset {
	out := *d
	out.Splits = make([]Split, len(d.Splits))
	if d.Options.MaxLength == 0 || most < d.Options.MaxLength {
		out.Options.MaxLength = most
	}
	for i, split := range d.Splits {
		all := split.Sentences
		split.Sentences = nil
		for _, s := range all {
			switch n := len(s.Words); {
			case n < least:
				split.Dropped.Short++
			case n > most:
				split.Dropped.Long++
			default:
				split.Sentences = append(split.Sentences, s)
			}
		}
		if len(split.Sentences) < len(all) {
			split.TrueLogProb = nil
		}
		out.Splits[i] = split
	}
	return &out
}

// Compact returns the data set with a vocabulary of only those words that occur in it, in the same order, and <unk>
// if it was there. The words of all splits count, as in the published GFlowNet-EM code.
func (d *Dataset) Compact() *Dataset {
	used := make([]bool, d.Vocabulary.Size())
	if id := d.Vocabulary.ID(Unknown); id >= 0 {
		used[id] = true
	}
	for _, split := range d.Splits {
		for _, s := range split.Sentences {
			for _, id := range s.Words {
				used[id] = true
			}
		}
	}
	v := &Vocabulary{ids: make(map[string]int32)}
	renumber := make([]int32, len(used))
	for id, word := range d.Vocabulary.words {
		if used[id] {
			renumber[id] = int32(len(v.words))
			v.ids[word] = renumber[id]
			v.words = append(v.words, word)
		}
	}
	compact := *d
	compact.Vocabulary = v
	compact.Splits = make([]Split, len(d.Splits))
	for i, split := range d.Splits {
		split.Sentences = make([]Sentence, len(split.Sentences))
		for j, s := range d.Splits[i].Sentences {
			split.Sentences[j] = Sentence{Words: make([]int32, len(s.Words)), Gold: s.Gold}
			for k, id := range s.Words {
				split.Sentences[j].Words[k] = renumber[id]
			}
		}
		compact.Splits[i] = split
	}
	return &compact
}

// Hash returns the SHA-256 of the vocabulary, sentences and spans. It is the same for a data set in memory and the
// same one loaded from files.
func (d *Dataset) Hash() string {
	h := sha256.New()
	for _, f := range d.files() {
		fmt.Fprintf(h, "%s %d\n", f.name, len(f.data))
		h.Write(f.data)
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}
