// Package docs checks that documents are easy to read and that their links lead somewhere.
package docs

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

const (
	longestLine      = 120 // characters
	longestParagraph = 6   // lines
)

var (
	item    = regexp.MustCompile(`^\s*([*+-]|\d+[.)]) `)
	link    = regexp.MustCompile(`(?:\]\(|src=")([^()\s"]+)[)"]`)
	heading = regexp.MustCompile(`(?m)^#{1,6} +(.+?) *$`)
	code    = regexp.MustCompile("`[^`]*`")
)

// mistakes are lines and paragraphs of a text that are too long, and what it lacks at the beginning. Tables, programs
// and headings are not prose; an item of a list is a paragraph.
func mistakes(text string) (out []string) {
	fenced, begin := false, 0 // begin is the first line of the paragraph, from 1; 0 if there is none
	end := func(after int) {
		if n := after - begin; begin > 0 && n > longestParagraph {
			out = append(out, fmt.Sprintf("%d: a paragraph of %d lines", begin, n))
		}
		begin = 0
	}
	lines := strings.Split(text, "\n")
	if !strings.HasPrefix(lines[0], "# ") {
		out = append(out, "1: no title")
	}
	for i, line := range lines {
		n := i + 1
		fence := strings.HasPrefix(strings.TrimSpace(line), "```")
		switch {
		case fence, fenced, strings.TrimSpace(line) == "", strings.HasPrefix(line, "|"), strings.HasPrefix(line, "#"),
			begin == 0 && strings.HasPrefix(line, "    "):
			end(n)
		case item.MatchString(line):
			end(n)
			begin = n
		case begin == 0:
			begin = n
		}
		if begin > 0 && utf8.RuneCountInString(line) > longestLine {
			out = append(out, fmt.Sprintf("%d: %d characters", n, utf8.RuneCountInString(line)))
		}
		if fence {
			fenced = !fenced
		}
	}
	end(len(lines) + 1)
	return out
}

// plain is a text without its programs.
func plain(text string) string {
	var out []string
	fenced := false
	for line := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
		} else if !fenced {
			out = append(out, code.ReplaceAllString(line, ""))
		}
	}
	return strings.Join(out, "\n")
}

// anchors are what links can name in a text: its headings, in small letters, without punctuation, with hyphens.
func anchors(text string) (out []string) {
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		name := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-', r == '_', r >= '0' && r <= '9', r >= 'a' && r <= 'z', r > 127:
				return r
			}
			return -1
		}, strings.ToLower(m[1]))
		for i, base := 1, name; slices.Contains(out, name); i++ {
			name = fmt.Sprintf("%s-%d", base, i)
		}
		out = append(out, name)
	}
	return out
}

// broken are the links of a text, of a file, that lead nowhere in a file system.
func broken(at fs.FS, file, text string) (out []string) {
	for _, m := range link.FindAllStringSubmatch(plain(text), -1) {
		if strings.Contains(m[1], "://") {
			continue
		}
		name, anchor, _ := strings.Cut(m[1], "#")
		target := file
		if name != "" {
			target = filepath.ToSlash(filepath.Join(filepath.Dir(file), name))
		}
		if _, err := fs.Stat(at, target); err != nil {
			out = append(out, m[1]+": no such file")
		} else if anchor != "" {
			data, err := fs.ReadFile(at, target)
			if err != nil || !slices.Contains(anchors(string(data)), anchor) {
				out = append(out, m[1]+": no such heading")
			}
		}
	}
	return out
}

// Documents have short lines and paragraphs, and links that lead somewhere.
func TestDocuments(t *testing.T) {
	root, n := os.DirFS(".."), 0
	err := fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		others := []string{"runs", "data", "dist", "testdata"}
		if d.IsDir() && path != "." && (strings.HasPrefix(d.Name(), ".") || slices.Contains(others, d.Name())) {
			return fs.SkipDir
		}
		if d.IsDir() || filepath.Ext(path) != ".md" {
			return nil
		}
		text, err := fs.ReadFile(root, path)
		if err != nil {
			return err
		}
		n++
		for _, m := range mistakes(string(text)) {
			t.Errorf("%s:%s", path, m)
		}
		for _, m := range broken(root, path, string(text)) {
			t.Errorf("%s: %s", path, m)
		}
		return nil
	})
	if err != nil || n < 15 {
		t.Errorf("%d documents: %v", n, err)
	}
}

// What is wrong is found.
func TestMistakes(t *testing.T) {
	long := strings.Repeat("x", longestLine+1)
	six := strings.Repeat("word\n", longestParagraph)
	for text, want := range map[string]int{
		"# Title\n\n" + long[1:] + "\n\n" + six:                         0,
		"# Title\n\n" + long:                                            1,
		"# Title\n\n* " + long:                                          1,
		"# Title\n\n" + six + "word":                                    1,
		"# Title\n\n" + six + "* word\n":                                0,
		"# Title\n\n| " + long + " |\n\n    " + long:                    0,
		"# Title\n\n```\n" + long + six + six + "```\nword\n":           0,
		"# Title\n\nword\n    " + long:                                  1,
		"no title\n":                                                    1,
		"# Title\n" + six + "```\n" + six + "```\n" + six + six + "\n#": 1,
	} {
		if got := mistakes(text); len(got) != want {
			t.Errorf("%q: %q, want %d mistakes", text, got, want)
		}
	}
	files := os.DirFS(t.TempDir())
	text := "# One, two `x`\n## Same\n## Same\n[a](#one-two-x) [b](#same-1) [c](http://x) `[d](#d)`\n```\n[e](e)\n```\n"
	if err := os.WriteFile(filepath.Join(fmt.Sprint(files), "a.md"), []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	if got := broken(files, "a.md", text); got != nil {
		t.Errorf("links that are right are said to be broken: %q", got)
	}
	if got := broken(files, "a.md", "[a](#two) [b](b.md) [c](a.md#same-2) <img src=\"d.png\">"); len(got) != 4 {
		t.Errorf("of four broken links there are %q", got)
	}
}
