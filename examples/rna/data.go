package main

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/gfnem/gfnem/badinput"
)

// strand is a sequence of a file.
type strand struct {
	Name    string
	Bases   []int32 // 0 to 3 for A, C, G, U
	Partner []int32 // of each base, -1 for none; nil if the file says nothing of structures
}

const letters = "ACGU"

// read returns the sequences of a Stockholm or FASTA file, which may be compressed (.gz). Gaps of alignments are left out.
// Structures are brackets: of each sequence in a Stockholm file (#=GR NAME SS), or else one for all (#=GC SS_cons); in a FASTA
// file on lines behind the bases.
func read(path string) (all []strand, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, badinput.Errorf("%w", err)
	}
	defer f.Close()
	var r io.Reader = f
	if strings.HasSuffix(path, ".gz") {
		if r, err = gzip.NewReader(f); err != nil {
			return nil, badinput.Errorf("%s: %w", path, err)
		}
	}
	if all, err = parse(r); err != nil {
		return nil, badinput.Errorf("%s: %w", path, err)
	}
	return all, nil
}

// rows are lines of an alignment by name, in the order in which names come.
type rows struct {
	names []string
	text  map[string]*entry
}

type entry struct{ bases, brackets strings.Builder }

func (r *rows) at(name string) *entry {
	if r.text[name] == nil {
		r.text[name] = &entry{}
		r.names = append(r.names, name)
	}
	return r.text[name]
}

func parse(r io.Reader) (all []strand, err error) {
	in := rows{text: map[string]*entry{}}
	var shared strings.Builder // brackets of all
	fasta, name := false, ""
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<26)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		words := strings.Fields(line)
		switch {
		case line == "" || line == "//":
		case n == 1 && strings.HasPrefix(line, ">"), fasta && line[0] == '>':
			fasta, name = true, fmt.Sprintf("%s (line %d)", strings.TrimPrefix(line, ">"), n)
			in.at(name)
		case n == 1 && strings.HasPrefix(line, "# STOCKHOLM"):
		case n == 1:
			return nil, errors.New("line 1 begins neither a Stockholm file (# STOCKHOLM 1.0) nor a FASTA file (>)")
		case fasta && strings.Trim(line, brackets) == "":
			in.at(name).brackets.WriteString(line)
		case fasta:
			in.at(name).bases.WriteString(line)
		case words[0] == "#=GR" && len(words) == 4 && words[2] == "SS":
			in.at(words[1]).brackets.WriteString(words[3])
		case words[0] == "#=GC" && len(words) == 3 && words[1] == "SS_cons":
			shared.WriteString(words[2])
		case line[0] == '#':
		case len(words) != 2:
			return nil, fmt.Errorf("line %d has %d words, not a name and a sequence", n, len(words))
		default:
			in.at(words[0]).bases.WriteString(words[1])
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	for _, name := range in.names {
		e := in.text[name]
		if e.brackets.Len() == 0 {
			e.brackets.WriteString(shared.String())
		}
		s, err := newStrand(name, e.bases.String(), e.brackets.String())
		if err != nil {
			return nil, fmt.Errorf("sequence %s: %w", name, err)
		}
		all = append(all, s)
	}
	if len(all) == 0 {
		return nil, errors.New("there is no sequence")
	}
	return all, nil
}

// brackets are what structures are written in: gaps and unpaired bases first, then pairs.
const brackets = ".,:_-~" + opening + closing

const opening, closing = "(<[{ABCD", ")>]}abcd"

// newStrand takes a row of an alignment apart. A base other than A, C, G, U or T is -1.
func newStrand(name, bases, structure string) (s strand, err error) {
	if structure != "" && len(structure) != len(bases) {
		return s, fmt.Errorf("%d letters, and %d brackets", len(bases), len(structure))
	}
	s.Name = name
	begun := make([][]int, len(opening))
	for i, c := range strings.ToUpper(bases) {
		at := len(s.Bases)
		gap := strings.ContainsRune(".-_~", c)
		if !gap {
			if c < 'A' || c > 'Z' {
				return s, fmt.Errorf("%q is no base", c)
			}
			s.Bases = append(s.Bases, int32(strings.IndexRune(letters, map[bool]rune{true: 'U', false: c}[c == 'T'])))
			s.Partner = append(s.Partner, -1)
		}
		if structure == "" {
			continue
		}
		if k := strings.IndexByte(opening, structure[i]); k >= 0 && !gap {
			begun[k] = append(begun[k], at)
		} else if k := strings.IndexByte(closing, structure[i]); k >= 0 && !gap {
			n := len(begun[k])
			if n == 0 {
				return s, fmt.Errorf("bracket %d closes nothing", i+1)
			}
			other := begun[k][n-1]
			begun[k] = begun[k][:n-1]
			s.Partner[at], s.Partner[other] = int32(other), int32(at)
		} else if k := strings.IndexByte(brackets, structure[i]); k < 0 {
			return s, fmt.Errorf("%q is no bracket", structure[i])
		}
	}
	if left := slices.Concat(begun...); len(left) > 0 {
		return s, fmt.Errorf("base %d is in a pair that nothing closes", left[0]+1)
	}
	if structure == "" {
		s.Partner = nil
	}
	return s, nil
}
