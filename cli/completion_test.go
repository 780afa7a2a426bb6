package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gfnem/gfnem/run"
)

// In each shell: how to ask a script what completes a line. Of zsh we replace what draws on a terminal.
var asking = map[string]string{
	"bash": `. ./script; COMP_WORDS=(%s); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _greeter; printf '%%s\n' "${COMPREPLY[@]}"`,
	"zsh": `compdef() {}; compset() {}; _files() { print -l -- *(N) }; compadd() { print -l -- ${(P)argv[-1]} }
		_describe() { print -l -- ${${(P)2}%%%%:*} }
		. ./script; words=(%s); CURRENT=${#words}; _greeter`,
	"fish": `source ./script; complete -C %s`,
}

// Scripts offer commands, flags and values where they are right, in the shells that are installed.
func TestCompletion(t *testing.T) {
	p := Program{Name: "greeter", Tasks: []run.Task{greeting{adding{"first"}, "total"}, adding{"plain"}}}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		t.Run(shell, func(t *testing.T) {
			dir := t.TempDir()
			script, _ := says(t, p, ExitOK, "completion", shell)
			for name, text := range map[string]string{"script": script, "a file.txt": ""} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := exec.LookPath(shell); err != nil {
				t.Skip(shell + " is not installed: its script was made and not run")
			}
			for _, c := range []struct {
				words         []string
				offered, lack string
			}{
				{[]string{""}, "train", "--json"},
				{[]string{"tr"}, "train", "--json"},
				{[]string{"train", ""}, "plain", "resume"},
				{[]string{"train", "--"}, "--count", "--nll"},
				{[]string{"train", "plain", "--preset", ""}, "short", "plain"},
				{[]string{"train", "--set", ""}, "total=", "short"},
				{[]string{"--force-memory", "completion", ""}, "fish", "train"},
				{[]string{"resume", "--json", "a"}, "a file.txt", "train"},
				{[]string{"train", "--seed", ""}, "", "a file.txt"},
			} {
				got := ask(t, shell, dir, c.words)
				if c.offered != "" && !slices.Contains(got, c.offered) || slices.Contains(got, c.lack) {
					t.Errorf("%q is completed by %q: want %q, not %q", c.words, got, c.offered, c.lack)
				}
			}
		})
	}
}

// ask returns what completes the last one of some words.
func ask(t *testing.T, shell, dir string, words []string) []string {
	t.Helper()
	line := "greeter"
	for _, w := range words {
		line += " " + w
		if w == "" && shell != "fish" {
			line += "''"
		}
	}
	if shell == "fish" {
		line = "'" + line + "'"
	}
	cmd := exec.Command(shell, "-c", fmt.Sprintf(asking[shell], line))
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_CONFIG_HOME="+dir, "XDG_DATA_HOME="+dir)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", line, err, out)
	}
	var got []string
	for line := range strings.Lines(string(out)) {
		word, _, _ := strings.Cut(strings.TrimRight(line, "\n"), "\t")
		got = append(got, strings.ReplaceAll(word, `\ `, " "))
	}
	return got
}

// The page says of every command what help says, and no line of text is a command of roff.
func TestMan(t *testing.T) {
	p := Program{Name: "greeter", Tasks: []run.Task{greeting{adding{"first"}, "total"}}}
	page, _ := says(t, p, ExitOK, "man")
	plain := strings.NewReplacer(`\-`, "-", `\(aq`, "'", `\e`, `\`, `\&`, "").Replace(page)
	for _, want := range []string{
		".SS greet <whom> [flags]\nGreet.\n", ".SS verify ", ".B --count=N\nThe same as --set total=N. first: how \"many\" numbers",
		"greeter train first --count 5", "Sums are exact.", "Exit codes: 0 done",
	} {
		contains(t, plain, want)
	}
	macro := regexp.MustCompile(`^\.(TH|SH|SS|PP|TP|B|I|nf|fi|RS|RE)( |$)`)
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "'") || strings.HasPrefix(line, ".") && !macro.MatchString(strings.TrimSpace(line)) {
			t.Errorf("the page has the line %q", line)
		}
	}
	if opened, closed := strings.Count(page, "\n.RS 2\n"), strings.Count(page, "\n.RE\n"); opened == 0 || opened != closed {
		t.Errorf("%d blocks are opened and %d closed", opened, closed)
	}
}
