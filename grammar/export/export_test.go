package export

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/gfnem/gfnem/grammar"
)

const exported = `{"kind": "cfg", "nonterminals": ["S"], "preterminals": ["D", "N"], "words": ["the", "a", "dog's", "cat"],
 "prepared": {"tokens": "english", "punctuation": false, "keep_case": true, "keep_numbers": false},
 "root": {"S": 1}, "binary": {"S": {"D N": 0.9, "D S": 0.06, "S N": 0.04}},
 "emit": {"D": {"the": 0.999, "a": 0.001}, "N": {"dog's": 0.5, "cat": 0.5}}}`

func read(t *testing.T, text string) *grammar.Grammar {
	t.Helper()
	g, err := grammar.Read(strings.NewReader(text), "test.json")
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// What is written of a grammar for people, for NLTK and above a threshold.
func TestExport(t *testing.T) {
	g := read(t, exported)
	var text, nltk, json strings.Builder
	if err := Text(&text, g, 0.05); err != nil {
		t.Fatal(err)
	}
	want := "ROOT -> S  1\nS -> D N  0.9\nS -> D S  0.06\nD -> the  0.999\nN -> dog's  0.5\nN -> cat  0.5\n"
	if text.String() != want {
		t.Errorf("%s\nwant %s", text.String(), want)
	}
	if err := NLTK(&nltk, Above(g, 0.5)); err != nil {
		t.Fatal(err)
	}
	want = "ROOT -> S [1.000000000000]\nS -> D N [1.000000000000]\nD -> 'the' [1.000000000000]\n" +
		"N -> \"dog's\" [0.500000000000]\nN -> 'cat' [0.500000000000]\n"
	if nltk.String() != want {
		t.Errorf("%s\nwant %s", nltk.String(), want)
	}
	above := Above(g, 0.05)
	if err := above.Write(&json); err != nil {
		t.Fatal(err)
	}
	again := read(t, json.String())
	if p := again.RuleRow(0, 0)[1*3+2]; math.Abs(p-0.9/0.96) > 1e-15 {
		t.Errorf("D N has probability %v", p)
	}
	if again.Prepared == nil || *again.Prepared != *g.Prepared || !g.Prepared.KeepCase {
		t.Errorf("the file says that text was prepared as %+v", again.Prepared)
	}
	if p := g.RuleRow(0, 0)[2]; p != 0.04 && g.Root[0] != 1 {
		t.Error("Above changed its grammar")
	}
	g.Preterminals[0] = "D$"
	if err := NLTK(&nltk, g); err == nil || !strings.Contains(err.Error(), `the symbol "D$"`) {
		t.Errorf("error %v", err)
	}
}

// Productions are as the regular expressions of NLTK want them, and those of a symbol sum to one as it demands.
func TestNLTK(t *testing.T) {
	line := regexp.MustCompile(`^([\w/][\w/^<>-]*) -> ((?:[\w/][\w/^<>-]* ?)+|"[^"]+"|'[^']+') \[([\d.]+)\]$`)
	for _, kind := range []grammar.Kind{grammar.CFG, grammar.NCFG} {
		g := grammar.New(kind, []string{"NT-1", "NT-2"}, []string{"T-1"}, []string{"it's", `"'`, "x"})
		for row := range rows(g) {
			for i := range row {
				row[i] = 1 / float64(len(row))
			}
		}
		var out strings.Builder
		if err := NLTK(&out, g); err != nil {
			t.Fatal(err)
		}
		sums := map[string]float64{}
		for text := range strings.Lines(out.String()) {
			m := line.FindStringSubmatch(strings.TrimSuffix(text, "\n"))
			if m == nil {
				t.Fatalf("%s: %q", kind, text)
			}
			p, err := strconv.ParseFloat(m[3], 64)
			if err != nil {
				t.Fatal(err)
			}
			sums[m[1]] += p
		}
		want := map[grammar.Kind]int{grammar.CFG: 1 + 2 + 1, grammar.NCFG: 1 + 2*3 + 2}[kind]
		if len(sums) != want {
			t.Errorf("%s: %d symbols, want %d", kind, len(sums), want)
		}
		for symbol, sum := range sums {
			if math.Abs(sum-1) > 1e-9 {
				t.Errorf("%s: %s sums to %v", kind, symbol, sum)
			}
		}
	}
}
