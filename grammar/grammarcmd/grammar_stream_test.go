package grammarcmd

import (
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gfnem/gfnem/backend"
	"github.com/gfnem/gfnem/cli/command"
	"github.com/gfnem/gfnem/grammar"
	"github.com/gfnem/gfnem/grammar/parse"
	"github.com/gfnem/gfnem/treebank"
)

// ladder is a grammar whose trees over three words, two of them, are equally likely.
const ladder = `{"kind": "cfg", "nonterminals": ["S"], "preterminals": ["T"], "words": ["a", "b"],
 "root": {"S": 1}, "binary": {"S": {"S T": 0.25, "T S": 0.25, "T T": 0.5}}, "emit": {"T": {"a": 0.75, "b": 0.25}}}`

func ladderFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ladder.json")
	if err := os.WriteFile(path, []byte(ladder), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// answers runs a command on a text and returns its lines of output, and what it says besides.
func answers(t *testing.T, text string, cmd interface{ Run(command.Console) error }) (lines []string, besides string, err error) {
	t.Helper()
	var out, more strings.Builder
	err = cmd.Run(command.Console{In: strings.NewReader(text), Out: &out, Err: &more})
	lines = strings.Split(out.String(), "\n")
	if last := lines[len(lines)-1]; last != "" {
		t.Errorf("output ends with %q", last)
	}
	return lines[:len(lines)-1], more.String(), err
}

func flags(skip bool) sentenceFlags { return sentenceFlags{MaxLength: 50, SkipBad: skip} }

// TestInsideInOrder gives several windows of lines of all lengths, some of them single words, and compares each answer
// with that of its sentence alone.
func TestInsideInOrder(t *testing.T) {
	seed := rand.Uint64()
	t.Log("seed", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	lines := make([]string, 2*parse.WindowLines+200)
	var sentences []treebank.Sentence
	for i := range lines {
		n := 1 + r.IntN(30)
		s := treebank.Sentence{}
		for range n {
			s.Words = append(s.Words, int32(r.IntN(2)))
			lines[i] += string("ab"[s.Words[len(s.Words)-1]]) + " "
		}
		if n > 1 {
			sentences = append(sentences, s)
		}
	}
	path := ladderFile(t)
	got, besides, err := answers(t, strings.Join(lines, "\n"), insideCmd{grammarArg{Grammar: path, Backend: command.Backend{Backend: "simd"}}, flags(true), false})
	if err != nil || len(got) != len(lines) {
		t.Fatalf("%d answers for %d lines, error %v", len(got), len(lines), err)
	}
	if strings.Contains(besides, "skipped") {
		t.Errorf("said %q", besides)
	}
	b, err := backend.Open("simd")
	if err != nil {
		t.Fatal(err)
	}
	g, err := grammar.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	p := parse.NewExact(b, g)
	defer p.Close()
	p.Bucket = 30
	want, err := p.LogLikelihoods(sentences)
	if err != nil {
		t.Fatal(err)
	}
	for i, k := 0, 0; i < len(lines); i++ {
		if len(strings.Fields(lines[i])) == 1 {
			if got[i] != "-Inf" {
				t.Fatalf("line %d, %q: %q, want -Inf", i+1, lines[i], got[i])
			}
			continue
		}
		// Twelve decimals were written; other padding may move the last bits of numbers of about 50.
		if v, err := strconv.ParseFloat(got[i], 64); err != nil || !(math.Abs(v-want[k]) <= 2e-12) {
			t.Fatalf("line %d, %q: %q, want %v", i+1, lines[i], got[i], want[k])
		}
		k++
	}
}

// TestSampleStream draws many trees of one sentence through several windows. The two trees are equally likely, so that
// the number of either is off by more than 4.5 deviations once in 140,000 runs; and no window repeats another.
func TestSampleStream(t *testing.T) {
	seed := rand.Uint64() >> 1
	t.Log("seed", seed)
	draw := func(seed uint64, n int) []string {
		out, _, err := answers(t, strings.Repeat("a a a\n", n), parseCmd{
			grammarArg: grammarArg{Grammar: ladderFile(t), Backend: command.Backend{Backend: "simd"}}, sentenceFlags: flags(false), Decode: "sample", Format: "bracket", Seed: seed,
		})
		if err != nil || len(out) != n {
			t.Fatal(len(out), err)
		}
		return out
	}
	const n = 4 * parse.WindowLines
	trees := draw(seed, n)
	left := 0
	for _, tree := range trees {
		if strings.HasPrefix(tree, "(S (S") {
			left++
		}
	}
	fair := func(left int) bool { return math.Abs(float64(left)-n/2) < 4.5*math.Sqrt(n)/2 }
	if !fair(left) {
		t.Errorf("%d of %d trees branch to the left", left, n)
	}
	if fair(n) || fair(n*5/9) {
		t.Error("the check accepts draws that are not fair")
	}
	window := func(i int) string { return strings.Join(trees[i*parse.WindowLines:(i+1)*parse.WindowLines], "\n") }
	if window(0) == window(1) || window(1) == window(2) {
		t.Error("a window repeats the draws of another")
	}
	if again := draw(seed, parse.WindowLines); strings.Join(again, "\n") != window(0) {
		t.Error("the same seed gives other trees")
	}
}

// TestBadText covers what a script cannot hold.
func TestBadText(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"a b\na \xff\n", "standard input:2: the line is not valid UTF-8"},
		{"a b\na \x00\n", "standard input:2: the line has a control character"},
		{"a b\n" + strings.Repeat("a ", (1<<20)) + "\nb a\n", "standard input:2: the line is longer than 1048576 bytes"},
		{"a b\n" + strings.Repeat("x", (1<<20)-1) + " a\nb a\n", "standard input:2: the line is longer than 1048576 bytes"},
		{"a b\na " + strings.Repeat("c", 100) + "\n", `does not know the word "` + strings.Repeat("c", 60) + `", and`},
	} {
		command := insideCmd{grammarArg{Grammar: ladderFile(t), Backend: command.Backend{Backend: "simd"}}, flags(false), false}
		out, _, err := answers(t, c.text, command)
		if err == nil || !strings.Contains(err.Error(), c.want) || len(out) != 1 {
			t.Errorf("%.20q: error %v after %d answers, want %q", c.text, err, len(out), c.want)
		}
		command.SkipBad = true
		out, _, err = answers(t, c.text+"b b\n", command)
		if err != nil || len(out) < 3 || out[1] != "" || out[len(out)-1] == "" {
			t.Errorf("%.20q skipped: %q, error %v", c.text, out, err)
		}
	}
	// The mark of UTF-8, ends of lines of other systems, and a last line without an end.
	out, _, err := answers(t, "\ufeffa b\r\n\ta   b \r\na b", insideCmd{grammarArg{Grammar: ladderFile(t), Backend: command.Backend{Backend: "simd"}}, flags(false), false})
	if err != nil || len(out) != 3 || out[0] != "-2.367123614132" || out[1] != out[0] || out[2] != out[0] {
		t.Errorf("%q, error %v", out, err)
	}
}

// firsts lets a test wait for what is written first.
type firsts struct {
	strings.Builder
	first chan struct{}
}

func (f *firsts) Write(b []byte) (int, error) {
	if f.Len() == 0 {
		defer close(f.first)
	}
	return f.Builder.Write(b)
}

// TestLongSentence: before an answer that takes long there is a word of it; without one, none.
func TestLongSentence(t *testing.T) {
	defer func(before time.Duration) { linesEvery = before }(linesEvery)
	linesEvery = 10 * time.Millisecond
	g, err := grammar.Load(ladderFile(t))
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	besides := &firsts{first: make(chan struct{})}
	text := "a b\n" + strings.Repeat("a ", 500) + "\nb a\n"
	f := sentenceFlags{MaxLength: 500}
	err = f.answer(command.Console{In: strings.NewReader(text), Out: &out, Err: besides}, g, answering{several: func(lines []*parse.Line) error {
		if len(lines[0].Words) == 500 {
			<-besides.first
		}
		for _, l := range lines {
			l.Answer = "yes"
		}
		return nil
	}})
	want := "sentences 2/3  "
	if got := besides.String(); err != nil || !strings.HasPrefix(got, want) || !strings.Contains(got, "now 1 sentence of 500 words, 0s\n") {
		t.Errorf("says %q, error %v", got, err)
	}
	if out.String() != "yes\nyes\nyes\n" {
		t.Errorf("answers %q", out.String())
	}
	linesEvery = time.Hour
	_, said, err := answers(t, text, insideCmd{grammarArg{Grammar: ladderFile(t), Backend: command.Backend{Backend: "simd"}}, flags(true), false})
	if err != nil || said != "skipped 1 of 3 lines: 1 too long; the first is line 2\n" {
		t.Errorf("says %q, error %v", said, err)
	}
}
