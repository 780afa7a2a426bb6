package main

import (
	"bufio"
	"fmt"
	"os"
	"strings"

	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/rng"
)

// Sentence is a string without spaces, and behind which of its letters a word ends.
type Sentence struct {
	Letters string
	Ends    []bool
}

// without takes the spaces out of a sentence.
func without(spaces string) (s Sentence) {
	for _, word := range strings.Fields(spaces) {
		s.Letters += word
		s.Ends = append(append(s.Ends, make([]bool, len(word)-1)...), true)
	}
	return s
}

// String writes the sentence with its spaces.
func (s Sentence) String() string {
	var out strings.Builder
	for t, end := range s.Ends {
		out.WriteByte(s.Letters[t])
		if end && t < len(s.Letters)-1 {
			out.WriteByte(' ')
		}
	}
	return out.String()
}

// Observe turns sentences into observations, [B,Max] int32.
func (m *Lexicon) Observe(sentences ...Sentence) *tensors.Tensor {
	x := make([]int32, len(sentences)*m.Max)
	for i, s := range sentences {
		for t := range s.Letters {
			x[i*m.Max+t] = int32(code(s.Letters[t]))
		}
	}
	return tensors.FromFlatDataAndDimensions(x, len(sentences), m.Max)
}

// corpus are sentences to learn from, and others.
type corpus struct{ train, test []Sentence }

// made is a corpus of our own making, of sentences of at most so many letters.
func made(seed uint64, most int) corpus {
	draw := func(stream string, n int) (all []Sentence) {
		for r := rng.New(seed, stream); len(all) < n; {
			var expand func(symbol string) string
			expand = func(symbol string) string {
				lines, ok := rules[symbol]
				if !ok {
					return symbol
				}
				u := r.Float64()
				parts := strings.Fields(lines[int(u*u*float64(len(lines)))])
				for i, p := range parts {
					parts[i] = expand(p)
				}
				return strings.Join(parts, " ")
			}
			if s := without(expand("SENTENCE")); len(s.Letters) <= most {
				all = append(all, s)
			}
		}
		return all
	}
	return corpus{draw("train", 4000), draw("test", 1000)}
}

// rules are a small grammar. A symbol in capitals becomes one of its lines, the first ones more often.
var rules = map[string][]string{
	"SENTENCE": {"WHO DOES WHO", "WHO ACTS", "WHO ACTS WHERE", "WHO IS LIKE", "WHEN WHO ACTS", "WHO ACTS WHEN",
		"WHO DOES WHO WHEN"},
	"WHO": {"THE THING", "NAME", "THING", "THE LIKE THING", "LIKE THING"},
	"THE": strings.Fields("the a my this some her no our"),
	"THING": strings.Fields("bird horse child river house fish garden queen tree mouse friend boat window king letter " +
		"sister apple snow"),
	"NAME":  strings.Fields("she he it anna you tom peter mary we john"),
	"LIKE":  strings.Fields("small red happy young wise green quiet cold funny"),
	"DOES":  strings.Fields("sees likes finds has wants hears paints keeps helps"),
	"ACTS":  strings.Fields("sleeps sings waits runs plays swims works"),
	"IS":    strings.Fields("is was looks seems"),
	"WHERE": {"near WHO", "with WHO", "by WHO", "under WHO"},
	"WHEN":  strings.Fields("now often here today again then"),
}

// read takes sentences from a file, one from each line, of which every fifth is held out. It says which lines it skips.
func read(path string, most int) (c corpus, skipped string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return c, "", err
	}
	defer f.Close()
	var all, strange, long int
	for lines := bufio.NewScanner(f); ; {
		if !lines.Scan() {
			err = lines.Err()
			break
		}
		switch s := without(strings.ToLower(lines.Text())); {
		case s.Letters == "":
		case strings.IndexFunc(s.Letters, func(r rune) bool { return r < 'a' || r > 'z' }) >= 0:
			strange++
		case len(s.Letters) > most:
			long++
		default:
			if all++; all%5 == 0 {
				c.test = append(c.test, s)
			} else {
				c.train = append(c.train, s)
			}
		}
	}
	switch {
	case err != nil:
		return c, "", fmt.Errorf("read %s: %w", path, err)
	case len(c.train) < batch:
		return c, "", fmt.Errorf("%s has %d sentences to learn from, and %d are needed", path, len(c.train), batch)
	}
	return c, fmt.Sprintf("%d sentences; skipped %d with anything but letters from a to z, and %d of more than %d letters",
		all, strange, long, most), nil
}
