package main

import (
	"math"
	"slices"
)

// Lexicon lists the strings that may be words, as entries sorted by length.
type Lexicon struct {
	Max, Longest int      // sentences and words have at most so many letters
	Entries      []string // the last one of each length is "", for all other words of so many letters
	// LogLengths are log-probabilities of the number of letters of a sentence, [Max+1].
	LogLengths []float32

	start    []float32 // weights of entries at which all segmentations are about equally probable, [E]
	first    []int32   // entry of each length, and in the end the number of entries, [Longest+1]
	spelling []int32   // of entries, letter by letter, 0 where there is none, [E*Longest]
	// next leads from an entry and a letter to the entry that is longer by this letter, [(E+2)*27]. Behind the entries
	// come the empty string, from which all words are reached, and none, which is never left. No entry is missing on the
	// way: the beginning of a string is seen at least as often.
	next []int32
}

const letters = 26

// code is the number of a letter, from 1 on.
func code(letter byte) int { return int(letter-'a') + 1 }

// root is the number of the empty string.
func (m *Lexicon) root() int { return len(m.Entries) }

// NewLexicon takes from sentences of at most so many letters all strings that are seen often enough.
func NewLexicon(sentences []Sentence, most, longest, often int) Lexicon {
	seen, lengths := map[string]int{}, make([]int, most+1)
	for _, s := range sentences {
		lengths[len(s.Letters)]++
		for i := range s.Letters {
			for j := i + 1; j <= min(i+longest, len(s.Letters)); j++ {
				seen[s.Letters[i:j]]++
			}
		}
	}
	strings := make([][]string, longest)
	for s, n := range seen {
		if n >= often {
			strings[len(s)-1] = append(strings[len(s)-1], s)
		}
	}
	m := Lexicon{Max: most, Longest: longest, LogLengths: []float32{float32(math.Inf(-1))}}
	for _, n := range lengths[1:] { // none is impossible
		m.LogLengths = append(m.LogLengths, float32(math.Log(float64(n+1)/float64(len(sentences)+most))))
	}
	for _, some := range strings {
		slices.Sort(some)
		m.first = append(m.first, int32(len(m.Entries)))
		m.Entries = append(append(m.Entries, some...), "")
	}
	m.first = append(m.first, int32(len(m.Entries)))
	m.link()
	return m
}

// link makes what is not exported.
func (m *Lexicon) link() {
	none := int32(m.root() + 1)
	m.spelling = make([]int32, len(m.Entries)*m.Longest)
	m.next = slices.Repeat([]int32{none}, (len(m.Entries)+2)*(letters+1))
	number := map[string]int{"": m.root()}
	for l := range m.Longest {
		weight := float32(math.Exp(-2 * float64(l)))
		m.start = append(m.start, slices.Repeat([]float32{weight}, int(m.first[l+1]-m.first[l]))...)
	}
	for e, s := range m.Entries {
		for i := range s {
			m.spelling[e*m.Longest+i] = int32(code(s[i]))
		}
		if s != "" {
			last := len(s) - 1
			m.next[number[s[:last]]*(letters+1)+code(s[last])] = int32(e)
			number[s] = e
		}
	}
}
