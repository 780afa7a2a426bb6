package main

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/gomlx/compute"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/rng"
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
		case fasta && strings.Trim(line, ".()<>[]{}") == "":
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

const gap = -1 // the place of what is no base

// newStrand takes a row of an alignment apart. A base other than A, C, G, U or T is -1.
func newStrand(name, bases, structure string) (s strand, err error) {
	if structure != "" && len(structure) != len(bases) {
		return s, fmt.Errorf("%d letters, and %d brackets", len(bases), len(structure))
	}
	s.Name = name
	begun := make([][]int, len(opening))
	for i, c := range strings.ToUpper(bases) {
		at := len(s.Bases)
		if strings.ContainsRune(".-_~", c) {
			at = gap
		} else {
			if c < 'A' || c > 'Z' {
				return s, fmt.Errorf("%q is no base", c)
			}
			s.Bases = append(s.Bases, int32(strings.IndexRune(letters, map[bool]rune{true: 'U', false: c}[c == 'T'])))
			s.Partner = append(s.Partner, -1)
		}
		if structure == "" {
			continue
		}
		if k := strings.IndexByte(opening, structure[i]); k >= 0 {
			begun[k] = append(begun[k], at)
		} else if k := strings.IndexByte(closing, structure[i]); k >= 0 {
			n := len(begun[k])
			if n == 0 {
				return s, fmt.Errorf("bracket %d closes nothing", i+1)
			}
			other := begun[k][n-1]
			begun[k] = begun[k][:n-1]
			if at != gap && other != gap {
				s.Partner[at], s.Partner[other] = int32(other), int32(at)
			}
		} else if k := strings.IndexByte(brackets, structure[i]); k < 0 {
			return s, fmt.Errorf("%q is no bracket", structure[i])
		}
	}
	if left := slices.Concat(begun...); len(left) > 0 {
		return s, fmt.Errorf("%d brackets are not closed", len(left))
	}
	if structure == "" {
		s.Partner = nil
	}
	return s, nil
}

// observed are sequences that a model can learn from, as tensors, and their strands.
type observed struct {
	X       []*tensors.Tensor
	Strands []strand
}

// covers reports whether a model covers a sequence: not too long, all bases known, and not too many candidates.
func (e Folding) covers(s strand) bool {
	n := len(s.Bases)
	if n > e.N || n < 1 || slices.Contains(s.Bases, -1) {
		return false
	}
	pair := func(i, j int) bool {
		for k := range left {
			if i < j && s.Bases[i] == left[k] && s.Bases[j] == right[k] {
				return true
			}
		}
		return false
	}
	candidates := 0
	for i := range n {
		for j := range n {
			for l := 0; l < e.Longest && j-i >= 2*l+hairpin+1 && pair(i+l, j-l); l++ {
				if l+1 >= e.Shortest {
					candidates++
				}
			}
		}
	}
	return candidates <= e.K
}

// observe makes tensors of sequences.
func (e Folding) observe(b compute.Backend, all []strand) (o observed, err error) {
	bases, partner := make([]int32, len(all)*e.N), make([]int32, len(all)*e.N)
	for i := range bases {
		bases[i], partner[i] = -1, -1
	}
	for i, s := range all {
		copy(bases[i*e.N:], s.Bases)
		copy(partner[i*e.N:], s.Partner)
	}
	flat := func(v []int32) *tensors.Tensor { return tensors.FromFlatDataAndDimensions(v, len(all), e.N) }
	exec, err := model.NewExec(b, model.NewStore(), func(_ *model.Scope, in []*Node) []*Node { return e.Observe(in[0], in[1]) })
	if err != nil {
		return o, err
	}
	defer exec.Finalize()
	x, err := exec.Call(flat(bases), flat(partner))
	return observed{x, all}, err
}

// dataset is what a model is learned from and measured on.
type dataset struct {
	seed               uint64
	model              RNA
	train, valid, test observed
}

const forValidation, forTests = 100, 200

// sequences reads them, or draws them from a model.
func (o options) sequences(b compute.Backend) (d dataset, err error) {
	e := Folding{N: 77, K: 128, Shortest: 4, Longest: 7}
	if o.data == "" {
		e.Knots = o.knots
		return o.made(b, RNA{e, uniform(60, e.N)}, 0.5)
	}
	all, err := read(o.data)
	if err != nil {
		return d, err
	}
	var some []strand
	seen := map[string]bool{}
	for _, s := range all {
		if key := fmt.Sprint(s.Bases); e.covers(s) && !seen[key] {
			seen[key] = true
			some = append(some, s)
		}
	}
	if len(some) < forValidation+forTests+1 {
		return d, badinput.Errorf("%s has %d different sequences of at most %d known bases and %d candidates; %d are needed", o.data,
			len(some), e.N, e.K, forValidation+forTests+1)
	}
	fmt.Printf("%s: %d sequences, of which %d are different ones of at most %d known bases and %d candidates\n", o.data, len(all),
		len(some), e.N, e.K)
	rng.New(o.seed, "split").Shuffle(len(some), func(i, j int) { some[i], some[j] = some[j], some[i] })
	d = dataset{seed: o.seed, model: RNA{e, lengths(e.N, some[forValidation+forTests:])}}
	for _, part := range []struct {
		to      *observed
		from, n int
	}{{&d.test, 0, forTests}, {&d.valid, forTests, forValidation}, {&d.train, forTests + forValidation, o.train}} {
		if *part.to, err = e.observe(b, some[part.from:min(len(some), part.from+part.n)]); err != nil {
			return d, err
		}
	}
	return d, nil
}

// lengths are smoothed log-probabilities of numbers of bases.
func lengths(most int, of []strand) []float32 {
	counts, shortest := make([]float64, most+1), most
	for _, s := range of {
		shortest = min(shortest, len(s.Bases))
	}
	total := 0.0
	for n := range counts {
		if n >= shortest {
			counts[n]++
		}
	}
	for _, s := range of {
		counts[len(s.Bases)]++
	}
	for _, c := range counts {
		total += c
	}
	out := make([]float32, most+1)
	for n, c := range counts {
		if out[n] = never; c > 0 {
			out[n] = float32(math.Log(c / total))
		}
	}
	return out
}
