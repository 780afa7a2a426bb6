package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Every command of the README, of docs/commands.md and of the tutorials is run here, in order, in one folder for each
// document, or is in the list below. Trainings are made small, and nothing else is changed: see small.

// byHand says when a command was run last, and why it is not run here.
type byHand struct{ day, why string }

// notRun are the commands that the test does not run.
var notRun = map[string]byHand{
	"go test ./...":                    {"2026-11-19", "it has this test; every change is tested by it"},
	"go install ./cmd/gfnem":           {"2026-11-19", "it would write to the folders of whoever tests"},
	"gfnem serve runs":                 {"2026-11-19", "it serves until it is told to end; tests of package serve drive the page"},
	"go run ./scripts/release":         {"2026-11-19", "minutes; for one platform, and tested with a small program"},
	"go run ./cmd/gfnem train mixture": {"2026-11-19", "here it is gfnem train mixture"},
	"gfnem reproduce mixture --rows exact,meanfield,gfn-quick --runs 20 --out runs/table": {
		"2026-11-19", "27 s of processor time; the table that is shown"},
	"gfnem reproduce mixture --rows exact,meanfield,gfn-best": {
		"2026-11-19", "with --runs 1: 21 s"},
	"gfnem reproduce grammar --rows marginal,exact,gfn --seeds 3": {
		"2026-11-19", "minutes; with --seeds 1 at the sizes of testdata/tiny: 3 s"},
	"gfnem reproduce grammar-estep": {
		"2026-11-19", "ten minutes; at the sizes of testdata/tiny: 7 s"},
	"gfnem train grammar --method gfn --set fixed=runs/g": {
		"2026-11-19", "minutes; at the sizes of testdata/tiny: 8 s"},
	"gfnem eval runs/g --max-length 40": {
		"2026-11-19", "a grammar of tiny sentences does not know all words; of sentences of 20 words"},
	"gfnem reproduce vae-decoders --backend xla": {
		"2026-11-20", "hours; tests of package vae/results make it at a tiny size"},
	"apt install dataset-fashion-mnist": {"2026-11-20", "it would change the machine of whoever tests"},
	"gfnem train vae --data /usr/share/datasets/fashion-mnist --out runs/fashion": {
		"2026-11-20", "it needs the package; at the sizes of testdata/tiny: 6 s"},
	"gfnem worker nats://HOST:4222": {"2026-11-19", "it needs another process; tests of sweeps start workers"},
}

// small makes the command of a document one that ends in a moment: the sizes of trainings are those of testdata/tiny,
// whatever the command says of them, a benchmark runs for a moment, and there is no GPU.
func small(args []string) ([]string, error) {
	args = slices.Clone(args)
	if i := slices.Index(args, "--backend"); i >= 0 && i+1 < len(args) {
		args = slices.Delete(args, i, i+2)
	}
	if len(args) < 2 {
		return args, nil
	}
	switch args[0] {
	case "bench":
		return append(args, "--for", "1ms"), nil
	case "reproduce":
		args = append(args, map[bool][]string{true: {"--runs", "1"}, false: {"--seeds", "1"}}[args[1] == "mixture"]...)
		if args[1] == "mixture" {
			return args, nil
		}
	case "train":
	default:
		return args, nil
	}
	task, _, _ := strings.Cut(args[1], "-")
	sizes, err := withKeys(filepath.Join(os.Getenv("GFNEM_TINY"), task+".toml"), []string{""})
	if err != nil {
		return nil, err
	}
	if task == "grammar" { // what tiny does not evaluate cannot end it
		sizes = append(sizes, "--set", "eval.patience=0")
	}
	return append(args, sizes[1:]...), nil
}

// mainSmall is the program of documents.
func mainSmall() {
	args, err := small(os.Args[1:])
	if err != nil {
		panic(err)
	}
	os.Exit(execute(args, os.Stdout, os.Stderr))
}

// block is a block of a document.
type block struct {
	language string // "" for one that is indented, "text" for what commands print
	lines    []string
}

// blocksOf are the fenced and indented blocks of a document.
func blocksOf(text string) (out []block) {
	var b *block
	fenced, before := false, ""
	for line := range strings.SplitSeq(text, "\n") {
		language, fence := strings.CutPrefix(line, "```")
		switch {
		case fence && !fenced:
			out = append(out, block{language: language})
			b, fenced = &out[len(out)-1], true
		case fence:
			b, fenced = nil, false
		case fenced:
			b.lines = append(b.lines, line)
		case strings.HasPrefix(line, "    ") && (b != nil || before == ""):
			if b == nil {
				out = append(out, block{})
				b = &out[len(out)-1]
			}
			b.lines = append(b.lines, strings.TrimPrefix(line, "    "))
		default:
			b = nil
		}
		before = line
	}
	return out
}

var (
	named   = regexp.MustCompile(`^# ([\w.-]+)$`) // the first line of a file
	comment = regexp.MustCompile(`\s+# .*$`)
	typed   = regexp.MustCompile(`^(gfnem|go|echo|cat|python3|man) |\| gfnem `)
	called  = regexp.MustCompile(`\bgfnem (\w)`)
	number  = regexp.MustCompile(`[−+-]?\d[\d.,]*(e-?\d+)?|\b(yes|no)\b`)
)

// shape is a line without its numbers, which depend on sizes.
func shape(line string) string {
	return strings.Join(strings.Fields(number.ReplaceAllString(line, "#")), " ")
}

// shapes are those of the lines of a text.
func shapes(text string) map[string]bool {
	out := map[string]bool{}
	for line := range strings.Lines(text) {
		out[shape(line)] = true
	}
	return out
}

func TestDocumentedCommands(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("there is no bash")
	}
	t.Parallel()
	tutorials, err := filepath.Glob("../../docs/tutorial-*.md")
	if err != nil || len(tutorials) < 2 {
		t.Fatalf("tutorials %q: %v", tutorials, err)
	}
	all := ""
	for _, document := range append([]string{"../../README.md", "../../docs/commands.md"}, tutorials...) {
		text, err := os.ReadFile(document)
		if err != nil {
			t.Fatal(err)
		}
		all += string(text)
		t.Run(filepath.Base(document), func(t *testing.T) { runDocument(t, filepath.Base(document), string(text)) })
	}
	for line := range notRun {
		if !strings.Contains(all, line) {
			t.Errorf("%q is in the list and in no document", line)
		}
	}
}

// give writes the files that documents say are the reader's.
func give(t *testing.T, dir string) {
	t.Helper()
	corpus := strings.Repeat("The dog barks. The old man slept.\nA child sees the dog. The dog saw a cat.\n", 10)
	for from, to := range map[string]string{
		"testdata/tiny/sentences.trees": "trees.mrg", "../../docs/seven.png": "seven.png", "../../docs/farm.txt": "farm.txt",
		"": "corpus.txt texts/train.txt texts/dev.txt texts/test.txt",
	} {
		data := []byte(corpus)
		if from != "" {
			var err error
			if data, err = os.ReadFile(from); err != nil {
				t.Fatal(err)
			}
		}
		for name := range strings.FieldsSeq(to) {
			path := filepath.Join(dir, name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, data, 0o666)); err != nil {
				t.Fatal(err)
			}
		}
	}
	photos := filepath.Join(dir, "photos")
	if err := pictures(photos, []string{"60", "16", "12"}); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(photos, "000.png"), filepath.Join(photos, "one.png")); err != nil {
		t.Fatal(err)
	}
	var conllu strings.Builder
	for _, sentence := range strings.FieldsFunc(corpus, func(r rune) bool { return r == '.' }) {
		for i, w := range strings.Fields(sentence) {
			fmt.Fprintf(&conllu, "%d\t%s\t_\tX\t_\t_\t0\t_\t_\t_\n", i+1, w)
		}
		conllu.WriteString("\n")
	}
	if err := os.WriteFile(filepath.Join(dir, "mine.conllu"), []byte(conllu.String()), 0o666); err != nil {
		t.Fatal(err)
	}
}

// runDocument runs the commands of a document, and compares what it shows with what they print.
func runDocument(t *testing.T, document, text string) {
	dir := t.TempDir()
	give(t, dir)
	tiny, err := filepath.Abs("testdata/tiny")
	if err != nil {
		t.Fatal(err)
	}
	printed := map[string]bool{} // shapes of lines
	shown := false               // what is shown next was printed by hand
	for _, b := range blocksOf(text) {
		switch b.language {
		case "text":
			for _, line := range b.lines {
				if s := shape(line); s != "" && !printed[s] && !shown {
					t.Errorf("no command before it prints a line like %q", line)
				}
			}
		case "", "sh":
			if b.language == "" && !slices.ContainsFunc(b.lines, typed.MatchString) {
				continue // a formula
			}
			shown = false
			for _, line := range b.lines {
				line = strings.TrimSpace(comment.ReplaceAllString(line, ""))
				if line == "" || strings.HasPrefix(line, "#") {
					continue
				}
				if _, ok := notRun[line]; ok {
					shown = true
					continue
				}
				cmd := exec.Command("bash", "-c", "set -o pipefail; "+called.ReplaceAllString(line, "gfnem-small $1"))
				cmd.Dir = dir
				cmd.Env = append(os.Environ(), "GFNEM_TINY="+tiny, "HOME="+dir, "GOMAXPROCS=1")
				out, err := cmd.CombinedOutput()
				t.Logf("%5.1f s: %s", cmd.ProcessState.UserTime().Seconds(), line)
				if err != nil {
					t.Errorf("%s: %v\n%s", line, err, out)
				}
				for s := range shapes(string(out)) {
					printed[s] = true
				}
			}
		case "go": // of the README: TestReadmeProgram of package cli
			if document != "README.md" {
				t.Error("a Go program that no test builds")
			}
		default:
			name := named.FindStringSubmatch(b.lines[0])
			if name == nil {
				t.Errorf("a block of %q, which is no file with a name, and which nobody runs", b.language)
				continue
			}
			text := []byte(strings.Join(b.lines, "\n") + "\n")
			if err := os.WriteFile(filepath.Join(dir, name[1]), text, 0o666); err != nil {
				t.Error(err)
			}
		}
	}
}

// What a document says wrongly is found.
func TestDocumentsAreCompared(t *testing.T) {
	text := "# T\n\n    formula = 1\n\ntext\n    text\n\n```sh\ngfnem version # x\n```\n\n```text\na  1.5\n```\n"
	got := fmt.Sprintf("%q", blocksOf(text))
	if want := `[{"" ["formula = 1"]} {"sh" ["gfnem version # x"]} {"text" ["a  1.5"]}]`; got != want {
		t.Errorf("blocks %s, want %s", got, want)
	}
	if a, b := shape("x   −2.82 ± 0.01  yes"), shape("x −13 ± 2.5e-3 no"); a != b || a == shape("y −13 ± 2 no") {
		t.Errorf("shapes %q and %q", a, b)
	}
	args, err := small([]string{"train", "mixture", "--backend", "xla", "--set", "points=9999"})
	if err == nil {
		t.Errorf("%q without sizes", args)
	}
	t.Setenv("GFNEM_TINY", "testdata/tiny")
	args, err = small([]string{"train", "mixture", "--backend", "xla", "--set", "points=9999"})
	if got := strings.Join(args, " "); err != nil || strings.Contains(got, "xla") || !strings.Contains(got, "points=9999 --set points=200") {
		t.Errorf("a small training is %s: %v", got, err)
	}
}
