package grammar

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/internal/testkit"
)

const small = `{"kind": "cfg", "nonterminals": ["A"], "preterminals": ["T"], "words": ["w"], "root": {"A": 1},
 "binary": {"A": {"A T": 0.25, "T T": 0.75}}, "emit": {"T": {"w": 1}}}`

const smallParents = `{"emit": {"T|A": {"w": 1}, "T|B": {"v": 1.0}}, "words": ["w", "v"],
 "binary": {"A|ROOT": {"T B": 1}, "B|A": {"T T": 1e0}},
 "root": {"A": 1}, "kind": "ncfg", "preterminals": ["T"], "nonterminals": ["A", "B"]}`

func ExampleRead() {
	g, err := Read(strings.NewReader(small), "small.json")
	if err != nil {
		fmt.Println(err)
		return
	}
	g.Write(os.Stdout)
	// Output:
	// {"kind": "cfg",
	//  "nonterminals": ["A"],
	//  "preterminals": ["T"],
	//  "words": ["w"],
	//  "root": {"A": 1},
	//  "binary": {
	//   "A": {"T T": 0.75, "A T": 0.25}
	//  },
	//  "emit": {
	//   "T": {"w": 1}
	//  }}
}

// What is written is read back with the same bits, from any order of keys.
func TestWriteRead(t *testing.T) {
	r := rand.New(rand.NewPCG(testkit.Seed(t), 0))
	var grammars []*Grammar
	for _, kind := range []Kind{CFG, NCFG} {
		for range 20 {
			g := randomGrammar(r, kind, 3, 2, 4, 0.3)
			g.Words = []string{"a", `"\`, "é|(", "<unk>"}
			if g.reachable() == nil {
				grammars = append(grammars, g)
			}
		}
	}
	if len(grammars) < 10 {
		t.Fatalf("only %d grammars to test with", len(grammars))
	}
	for _, text := range []string{small, smallParents} {
		g, err := Read(strings.NewReader(text), "small.json")
		if err != nil {
			t.Fatal(err)
		}
		grammars = append(grammars, g)
	}
	for _, g := range grammars {
		var file bytes.Buffer
		if err := g.Write(&file); err != nil {
			t.Fatal(err)
		}
		back, err := Read(&file, "back.json")
		if err != nil {
			t.Fatal(err)
		}
		if back.Kind != g.Kind || !slices.Equal(back.Words, g.Words) || !slices.Equal(back.Nonterminals, g.Nonterminals) ||
			!slices.Equal(back.Root, g.Root) || !slices.Equal(back.Rules, g.Rules) || !slices.Equal(back.Emit, g.Emit) {
			t.Errorf("%v became %v", g, back)
		}
	}
}

// LogProbs go to tensors and back.
func TestLogProbs(t *testing.T) {
	r := rand.New(rand.NewPCG(testkit.Seed(t), 0))
	for _, kind := range []Kind{CFG, NCFG} {
		g := randomGrammar(r, kind, 3, 2, 4, 0.3)
		back := New(kind, g.Nonterminals, g.Preterminals, g.Words)
		if err := back.SetLogProbs(g.LogProbs(dtypes.Float32)); err != nil {
			t.Fatal(err)
		}
		for name, pair := range map[string][2][]float64{"root": {g.Root, back.Root}, "rules": {g.Rules, back.Rules}, "emit": {g.Emit, back.Emit}} {
			for i := range pair[0] {
				if !(math.Abs(pair[0][i]-pair[1][i]) <= 1e-6) {
					t.Fatalf("%s %s[%d] = %v, want %v", kind, name, i, pair[1][i], pair[0][i])
				}
			}
		}
	}
}

func TestReadErrors(t *testing.T) {
	swap := func(old, new string) string {
		if !strings.Contains(small, old) {
			t.Fatalf("no %s", old)
		}
		return strings.Replace(small, old, new, 1)
	}
	ncfg := func(old, new string) string { return strings.Replace(smallParents, old, new, 1) }
	for _, c := range []struct{ name, text, want string }{
		{"nothing", ``, "bad.json:1: the file ends too early"},
		{"half", small[:60], "ends too early"},
		{"a list", `[]`, `bad.json:1: grammar: expected "{", found [`},
		{"not JSON", "{\n\n!}", "bad.json:3: invalid character"},
		{"garbage after", small + "\n\nx", "bad.json:4: after the end"},
		{"more after", small + " {}", "after the end"},
		{"unknown key", swap(`"kind"`, `"extra": 1, "kind"`), `bad.json:1: unknown key "extra"`},
		{"key twice", swap(`"kind"`, `"kind": "cfg", "kind"`), `grammar: "kind" twice`},
		{"missing key", swap(`"words": ["w"], `, ``), `"words" is missing`},
		{"kind", swap(`"cfg"`, `"pcfg"`), `kind "pcfg": it is "cfg" or "ncfg"`},
		{"kind a number", swap(`"cfg"`, `7`), `kind "7"`},
		{"symbol twice", swap(`["A"]`, `["A", "A"]`), `nonterminals: "A" twice`},
		{"symbol on both sides", swap(`["T"]`, `["T", "A"]`), `"A" is both a nonterminal and a preterminal`},
		{"empty name", swap(`["w"]`, `["w", ""]`), `words: an empty name`},
		{"space", swap(`["w"]`, `["w", "a b"]`), `words: the name "a b" has a space in it`},
		{"bar", swap(`["T"]`, `["T|A"]`), `preterminals: the name "T|A" has a bar or a bracket in it`},
		{"root listed", swap(`["A"]`, `["A", "ROOT"]`), `ROOT is what is above the top`},
		{"no names", swap(`["w"]`, `[]`), `words: the list is empty`},
		{"a number for a name", swap(`["w"]`, `[1]`), `words: 1 is not a name`},
		{"unknown root", swap(`"root": {"A": 1}`, `"root": {"T": 1}`), `root: "T" is not a nonterminal`},
		{"unknown head", swap(`"binary": {"A"`, `"binary": {"B"`), `bad.json:2: binary: unknown symbol "B"`},
		{"unknown child", swap(`"A T"`, `"A B"`), `bad.json:2: binary: "A B" is not two symbols with a space between`},
		{"one child", swap(`"A T"`, `"A"`), `binary: "A" is not two symbols`},
		{"three children", swap(`"A T"`, `"A T T"`), `binary: "A T T" is not two symbols`},
		{"unknown word", swap(`{"w": 1}`, `{"v": 1}`), `emit: unknown word "v"`},
		{"rule twice", swap(`"A T"`, `"T T": 0, "A T"`), `A: "T T" twice`},
		{"sum", swap(`0.75`, `0.74999`), `bad.json:2: probabilities of A sum to 0.99999, not to 1`},
		{"empty row", swap(`{"w": 1}`, `{}`), `probabilities of T sum to 0, not to 1`},
		{"negative", swap(`"A T": 0.25, "T T": 0.75`, `"A T": -0.25, "T T": 1.25`), `the probability of "A T" is -0.25`},
		{"overflow", swap(`0.25`, `1e999`), `the probability of "A T" is 1e999`},
		{"text for a number", swap(`0.25`, `"0.25"`), `the probability of "A T" is 0.25`},
		{"parent in a cfg", swap(`"binary": {"A"`, `"binary": {"A|A"`), `"A|A" names a parent, but the kind is "cfg"`},
		{"no rules", swap(`"binary": {"A": {"A T": 0.25, "T T": 0.75}}`, `"binary": {}`), `no rules of A`},
		{"no emissions", swap(`"emit": {"T": {"w": 1}}`, `"emit": {}`), `no emissions of T`},
		{"unreachable", swap(`["A"]`, `["A", "B", "C"]`), `no derivation can reach B, C`},
		{"not UTF-8", swap(`["w"]`, "[\"\xff\"]"), `bad.json:1: the text is not UTF-8`},
		{"no parent in an ncfg", ncfg(`"B|A"`, `"B"`), `binary: "B" names no parent; write "B|A" or the like`},
		{"unknown parent", ncfg(`"B|A"`, `"B|T"`), `the parent "T" of "B" is not a nonterminal`},
		{"missing pair", ncfg(`, "B|A": {"T T": 1e0}`, ``), `no rules of B|A`},
		{"missing emission", ncfg(`, "T|B": {"v": 1.0}`, ``), `no emissions of T|B`},
		{"word below ROOT", ncfg(`"T|B"`, `"T|ROOT"`), `emit: "T|ROOT": a preterminal is below a nonterminal`},
		{"deep", strings.Repeat("[", 100_000), `expected "{"`},
	} {
		_, err := Read(strings.NewReader(c.text), "bad.json")
		var input *badinput.Error
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "bad.json:") || !errors.As(err, &input) {
			t.Errorf("%s: error %v, want %q", c.name, err, c.want)
		}
	}
	if _, err := Load(filepath.Join(t.TempDir(), "none.json")); err == nil {
		t.Error("a file that is not there was read")
	}
}

// A short file that names very many symbols is refused, and does not take the memory first.
func TestReadHugeTables(t *testing.T) {
	quoted := quoteAll(names("A", 3000))
	text := strings.Replace(small, `["A"]`, `["A", `+quoted[1:], 1)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := Read(strings.NewReader(text), "bad.json")
	runtime.ReadMemStats(&after)
	if err == nil || !strings.Contains(err.Error(), "at most") {
		t.Errorf("error %v", err)
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > 100*uint64(len(text)) {
		t.Errorf("%d bytes allocated for a file of %d", used, len(text))
	}
}

// Whatever is read without an error can be written and read again.
func FuzzRead(f *testing.F) {
	for _, s := range []string{small, smallParents, small[:100], `{"kind": {}}`, "{\"words\": [\"\xc3\"]}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		g, err := Read(strings.NewReader(text), "f.json")
		if err != nil {
			if strings.ContainsAny(err.Error(), "\n\r") {
				t.Errorf("error of more than one line: %q", err)
			}
			return
		}
		var file bytes.Buffer
		if err := g.Write(&file); err != nil {
			t.Fatal(err)
		}
		back, err := Read(&file, "back.json")
		if err != nil || !slices.Equal(back.Rules, g.Rules) || !slices.Equal(back.Emit, g.Emit) {
			t.Errorf("read back: %v", err)
		}
	})
}
