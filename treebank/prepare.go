package treebank

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/gfnem/gfnem/badinput"
)

// Names of sets of tags for Options.KeepTags.
const (
	KimTags = "kim" // the 36 tags of words in the Penn Treebank
	AllTags = "all" // every tag but -NONE-, which marks traces
)

var kimTags = strings.Fields(`CC CD DT EX FW IN JJ JJR JJS LS MD NN NNS NNP NNPS PDT POS PRP PRP$ RB RBR RBS RP SYM TO UH
	VB VBD VBG VBN VBP VBZ WDT WP WP$ WRB`)

// Options say how sentences are prepared. The zero value is the usual preprocessing of Kim, Dyer and Rush (2019).
type Options struct {
	KeepTags    []string `json:"keep_tags"`    // leaves to keep, by tag; KimTags and AllTags stand for many; nil means KimTags
	KeepCase    bool     `json:"keep_case"`    // do not change words to lower case
	KeepNumbers bool     `json:"keep_numbers"` // do not write numbers as N
	VocabSize   int      `json:"vocab_size"`   // most frequent words of the training split; the others are <unk>; 0 means 10,000
	MinLength   int      `json:"min_length"`   // of a sentence, in words; 0 means 2
	MaxLength   int      `json:"max_length"`   // of a sentence, in words; 0 means no limit
	Strict      bool     `json:"strict"`       // a sentence of another length is an error instead of left out and counted

	// Of text and CoNLL.
	Tokens          string `json:"tokens,omitempty"`           // how text is cut into words; "" means TokensSpaces
	Sentences       string `json:"sentences,omitempty"`        // how its sentences are found; "" means SentencesLines
	DropPunctuation bool   `json:"drop_punctuation,omitempty"` // leave out words without a letter or a digit

	// Words that kept training sentences have at most so often become <unk>. 0 means that all training words count for
	// the vocabulary, in sentences that are left out, too.
	Rare        int  `json:"rare,omitempty"`
	Suffixes    bool `json:"suffixes,omitempty"`     // with Rare, classes of unknown words by their endings, see UnknownClass
	LearnLength int  `json:"learn_length,omitempty"` // with Rare, training sentences of more words do not count either; 0 means no limit

	// Vocabulary, if not nil, is used instead of one made from the training split, to measure a trained model on
	// other texts.
	Vocabulary *Vocabulary `json:"-"`
}

// FitLength, as Options.LearnLength, is what nine tenths of the sentences of each split have at most, but from 20 to 40
// words.
const FitLength = -1

// CorpusOptions prepare text to learn a grammar from: without punctuation, and with <unk> for words that are seen once.
func CorpusOptions() Options {
	return Options{LearnLength: FitLength, Tokens: TokensAuto, Sentences: SentencesAuto, DropPunctuation: true, Rare: 1}
}

// filled returns the options with zeros replaced by what they mean.
func (o Options) filled() Options {
	if o.KeepTags == nil {
		o.KeepTags = []string{KimTags}
	}
	if o.VocabSize == 0 {
		o.VocabSize = 10_000
	}
	if o.MinLength == 0 {
		o.MinLength = 2
	}
	return o
}

// check returns an error for filled options that make no sense.
func (o Options) check() error {
	switch {
	case o.VocabSize < 1:
		return badinput.Errorf("a vocabulary of %d words: give at least 1", o.VocabSize)
	case o.MinLength < 1:
		return badinput.Errorf("minimum length %d: give at least 1", o.MinLength)
	case o.MaxLength != 0 && o.MaxLength < o.MinLength:
		return badinput.Errorf("maximum length %d is below the minimum length %d", o.MaxLength, o.MinLength)
	case o.Rare < 0:
		return badinput.Errorf("words seen at most %d times: give at least 0", o.Rare)
	case !slices.Contains([]string{"", TokensSpaces, TokensEnglish, TokensAuto}, o.Tokens):
		return badinput.Errorf("unknown tokens %q; known: %s, %s, %s", o.Tokens, TokensAuto, TokensEnglish, TokensSpaces)
	case !slices.Contains([]string{"", SentencesLines, SentencesSplit, SentencesAuto}, o.Sentences):
		return badinput.Errorf("unknown sentences %q; known: %s, %s, %s", o.Sentences, SentencesAuto, SentencesLines, SentencesSplit)
	case len(o.KeepTags) == 0:
		return badinput.Errorf("no tags to keep: give some, %q or %q", KimTags, AllTags)
	}
	return nil
}

// tagFilter returns which leaves to keep, by tag.
func (o Options) tagFilter() func(tag string) bool {
	kept := make(map[string]bool)
	for _, tag := range o.KeepTags {
		kept[tag] = true
	}
	if kept[KimTags] {
		for _, tag := range kimTags {
			kept[tag] = true
		}
	}
	if kept[AllTags] {
		return func(tag string) bool { return tag != "-NONE-" || kept[tag] }
	}
	return func(tag string) bool { return kept[tag] }
}

// raw is a prepared sentence before words become numbers.
type raw struct {
	words  []string
	gold   []Span // nil without a tree
	leaves int    // words before preparation
	where  string // file and line
}

// prepareTree returns the words to keep of a tree and its gold spans: one for each constituent of two words or more,
// in the order in which constituents close, so that the last one is the whole sentence. Constituents that hold the
// same words give the same span several times.
func (o Options) prepareTree(t *Tree, keep func(tag string) bool) (words []string, gold []Span) {
	gold = []Span{}
	var visit func(t *Tree)
	visit = func(t *Tree) {
		if t.Word != "" {
			if keep(t.Label) {
				words = append(words, o.PrepareWord(t.Word))
			}
			return
		}
		first := len(words)
		for _, c := range t.Children {
			visit(c)
		}
		if last := len(words) - 1; last > first {
			gold = append(gold, Span{first, last})
		}
	}
	visit(t.unwrap())
	return words, gold
}

// PrepareWord changes case and numbers as the options say, and a space that is not plain ASCII to an underscore.
func (o Options) PrepareWord(w string) string {
	if !o.KeepCase {
		w = strings.ToLower(w)
	}
	if !o.KeepNumbers {
		w = numbers.ReplaceAllString(w, "N")
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return '_'
		}
		return r
	}, w)
}

// numbers matches what [0-9]+([,.]?[0-9]*)* does: a digit, with all digits, commas and periods that follow.
var numbers = regexp.MustCompile(`[0-9][0-9,.]*`)

// Dropped counts sentences that were left out.
type Dropped struct {
	Short int `json:"short"` // fewer words than MinLength, after preparation
	Long  int `json:"long"`  // more words than MaxLength
}

// fits says whether sentences of so many words are learned from.
func (o Options) fits(n int) bool {
	return n >= o.MinLength && (o.MaxLength == 0 || n <= o.MaxLength) && (o.LearnLength <= 0 || n <= o.LearnLength)
}

// selectLengths returns the sentences of the right length.
func (o Options) selectLengths(all []raw) (kept []raw, d Dropped, err error) {
	for _, s := range all {
		n := len(s.words)
		short, long := n < o.MinLength, o.MaxLength > 0 && n > o.MaxLength
		switch {
		case o.Strict && short:
			return nil, d, badinput.Errorf("%s: the sentence has %d words to keep, the minimum is %d", s.where, n, o.MinLength)
		case o.Strict && long:
			return nil, d, badinput.Errorf("%s: the sentence has %d words to keep, the maximum is %d", s.where, n, o.MaxLength)
		case short:
			d.Short++
		case long:
			d.Long++
		default:
			kept = append(kept, s)
		}
	}
	return slices.Clip(kept), d, nil
}
