package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	fences = regexp.MustCompile("(?ms)^```.*?^```")
	span   = regexp.MustCompile("(?s)`[^`]+`")
	prefix = regexp.MustCompile(`^(?:[A-Z_]+=\S+ )*(?:echo .* \| )?gfnem (.*)`)
	option = regexp.MustCompile(`^--([a-z-]+)`)
)

// mentioned are the commands that a text names in code, each as its words.
func mentioned(text string) (out [][]string) {
	for _, b := range blocksOf(text) {
		if b.language == "" || b.language == "sh" {
			for _, line := range b.lines {
				out = append(out, wordsOf(comment.ReplaceAllString(line, ""))...)
			}
		}
	}
	for _, s := range span.FindAllString(fences.ReplaceAllString(text, ""), -1) {
		out = append(out, wordsOf(strings.Join(strings.Fields(strings.Trim(s, "`")), " "))...)
	}
	return out
}

func wordsOf(line string) [][]string {
	if m := prefix.FindStringSubmatch(line); m != nil {
		return [][]string{strings.Fields(m[1])}
	}
	return nil
}

// unknown are the words of a command that its help does not know: the command itself, or flags.
func unknown(words []string) (out []string) {
	var path []string
	help := ""
	for _, w := range words {
		if strings.ToUpper(w) == w { // COMMAND, as in "gfnem COMMAND --help"
			break
		}
		var text bytes.Buffer
		if execute(append(path[:len(path):len(path)], w, "--help"), &text, &text) != exitOK || text.String() == help {
			break
		}
		path, help = append(path, w), text.String()
	}
	if path == nil {
		if len(words) > 0 && regexp.MustCompile(`^[a-z]+$`).MatchString(words[0]) {
			return words[:1]
		}
		return nil
	}
	for _, w := range words {
		if m := option.FindStringSubmatch(w); m != nil && !strings.Contains(help, "--"+m[1]) {
			out = append(out, w)
		}
	}
	return out
}

// Every command that documents name is one of the program, with flags that it has. The notebook is of earlier programs.
func TestMentionedCommands(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	examples, err := filepath.Glob("../../examples/*/*.md")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	pages = append(pages, examples...)
	for _, page := range append(pages, "../../README.md", "../../CONTRIBUTING.md", "../../contrib/python/README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, words := range mentioned(string(text)) {
			n++
			if bad := unknown(words); bad != nil {
				t.Errorf("%s: gfnem %s: %q is unknown", filepath.Base(page), strings.Join(words, " "), bad)
			}
		}
	}
	if n < 80 {
		t.Errorf("documents name %d commands", n)
	}
	got := mentioned("`gfnem train mixture\n--sed 3` and `gfnem trian x`, `gfnem COMMAND --help`\n\n    A=b gfnem data treebank x --out y # z --w\n")
	var bad []int
	for _, words := range got {
		bad = append(bad, len(unknown(words)))
	}
	if !slices.Equal(bad, []int{0, 1, 1, 0}) {
		t.Errorf("of %q there are %d mistakes", got, bad)
	}
}
