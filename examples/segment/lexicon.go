package main

import (
	"math"
	"slices"
	"strings"
)

// Lexicon lists the strings that may be words, as entries sorted by length. The last entry of each length stands for all
// other strings of so many letters.
type Lexicon struct {
	Max, Longest int       // the number of letters of sentences and of words is at most that
	Entries      []string  // "" stands for other strings
	LogLengths   []float32 // log-probabilities of the number of letters of a sentence, [Max+1]

	first []int // the first entry of each length, and the number of entries
	// next leads from an entry (or the empty string, or none) and a letter to the entry that is one letter longer. All
	// beginnings of an entry are entries, too, since they are seen as often.
	next []int32
}

// NewLexicon takes from sentences all strings of up to so many letters that are seen often enough in them.
func NewLexicon(sentences []Sentence, largest, longest, often int) Lexicon {
	seen, lengths := map[string]int{}, make([]float64, largest+1)
	for _, s := range sentences {
		lengths[len(s.Letters)]++
		for i := range s.Letters {
			for j := i + 1; j <= min(i+longest, len(s.Letters)); j++ {
				seen[s.Letters[i:j]]++
			}
		}
	}
	byLength := make([][]string, longest)
	for w, n := range seen {
		if n >= often {
			byLength[len(w)-1] = append(byLength[len(w)-1], w)
		}
	}
	m := Lexicon{Max: largest, Longest: longest}
	for _, words := range byLength {
		m.first = append(m.first, len(m.Entries))
		slices.Sort(words)
		m.Entries = append(append(m.Entries, words...), "")
	}
	m.first = append(m.first, len(m.Entries))
	m.LogLengths = append(m.LogLengths, float32(math.Inf(-1)))
	for _, n := range lengths[1:] { // none is impossible
		m.LogLengths = append(m.LogLengths, float32(math.Log((n+1)/float64(len(sentences)+largest))))
	}
	m.link()
	return m
}

// root is the number of the empty string in next, and nowhere that of no entry.
func (m *Lexicon) root() int    { return len(m.Entries) }
func (m *Lexicon) nowhere() int { return len(m.Entries) + 1 }

func (m *Lexicon) link() {
	m.next = slices.Repeat([]int32{int32(m.nowhere())}, (len(m.Entries)+2)*(letters+1))
	number := map[string]int{"": m.root()}
	for i, w := range m.Entries {
		if w != "" {
			last := len(w) - 1
			m.next[number[w[:last]]*(letters+1)+code(w[last])] = int32(i)
			number[w] = i
		}
	}
}

// code is the number of a letter, from 1 on.
func code(letter byte) int { return int(letter-'a') + 1 }

// sizes returns a number for each entry, by its length.
func (m *Lexicon) sizes(of func(l int) float32) (all []float32) {
	for l := range m.Longest {
		all = append(all, slices.Repeat([]float32{of(l + 1)}, m.first[l+1]-m.first[l])...)
	}
	return all
}

// letters are those of all entries, [E*Longest], 0 where there is none.
func (m *Lexicon) letters() []int32 {
	all := make([]int32, len(m.Entries)*m.Longest)
	for i, w := range m.Entries {
		for j := range w {
			all[i*m.Longest+j] = int32(code(w[j]))
		}
	}
	return all
}

func (m *Lexicon) firsts() (all []int32) {
	for _, i := range m.first {
		all = append(all, int32(i))
	}
	return all
}

// Sentence is a string without spaces and where its words end.
type Sentence struct {
	Letters string
	Ends    []bool // behind each letter but the last; nil if not known
}

// spaced writes a sentence with spaces where words end.
func spaced(s string, ends func(i int) bool) string {
	var out strings.Builder
	for i := range s {
		out.WriteByte(s[i])
		if i < len(s)-1 && ends(i) {
			out.WriteByte(' ')
		}
	}
	return out.String()
}
