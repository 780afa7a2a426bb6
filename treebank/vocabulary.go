package treebank

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/gfnem/gfnem/badinput"
)

// Unknown stands for words that are not in the vocabulary.
const Unknown = "<unk>"

// Vocabulary numbers words.
//
// One made from text begins with <unk>, number 0; then come words in order of falling frequency, and among equals in
// order of their bytes.
type Vocabulary struct {
	words []string
	ids   map[string]int32
}

// NewVocabulary returns a vocabulary of the given words, numbered from 0.
func NewVocabulary(words []string) (*Vocabulary, error) {
	v := &Vocabulary{words: slices.Clone(words), ids: make(map[string]int32, len(words))}
	for i, w := range words {
		if w == "" || strings.ContainsAny(w, " \t\r\n\f\v") {
			return nil, badinput.Errorf("vocabulary: %q, number %d, is not a word", w, i)
		}
		if _, twice := v.ids[w]; twice {
			return nil, badinput.Errorf("vocabulary: %q, number %d, occurs twice", w, i)
		}
		v.ids[w] = int32(i)
	}
	return v, nil
}

// Size returns the number of words, <unk> included.
func (v *Vocabulary) Size() int { return len(v.words) }

// Words returns all words in order of their numbers; the caller must not change them.
func (v *Vocabulary) Words() []string { return v.words }

// ID returns the number of a word. If it is not in the vocabulary that is the number of its class, if not of <unk>, and
// -1 if that is not there either.
func (v *Vocabulary) ID(word string) int32 {
	if id, ok := v.ids[word]; ok {
		return id
	}
	for _, w := range []string{UnknownClass(word), Unknown} {
		if id, ok := v.ids[w]; ok {
			return id
		}
	}
	return -1
}

// makeVocabulary makes a vocabulary of <unk> and the most frequent words of training sentences.
func (o Options) makeVocabulary(sentences []raw) (*Vocabulary, error) {
	counts := make(map[string]int)
	for _, s := range sentences {
		if o.Rare > 0 && !o.fits(len(s.words)) {
			continue
		}
		for _, w := range s.words {
			counts[w]++
		}
	}
	delete(counts, Unknown)
	if o.Rare > 0 {
		o.forget(counts)
	}
	words := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	words = words[:min(o.VocabSize, len(words))]
	return NewVocabulary(append([]string{Unknown}, words...))
}

// forget leaves out rare words, and counts their classes instead.
func (o Options) forget(counts map[string]int) {
	classes := make(map[string]int)
	for w, n := range counts {
		if n <= o.Rare {
			classes[UnknownClass(w)] += n
			delete(counts, w)
		}
	}
	for class, n := range classes {
		if o.Suffixes && class != Unknown && n > o.Rare {
			counts[class] += n
		}
	}
}
