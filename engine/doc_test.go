package engine

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestMap says which files the maps in doc.go leave out, and which they invent.
func TestMap(t *testing.T) {
	for _, dir := range []string{".", "internal/gemm", "internal/vec"} {
		doc, err := os.ReadFile(filepath.Join(dir, "doc.go"))
		if err != nil {
			t.Fatal(err)
		}
		var told []string
		for _, name := range regexp.MustCompile(`[\w*]+\.go\b`).FindAllString(string(doc), -1) {
			files, err := filepath.Glob(filepath.Join(dir, name))
			if err != nil || len(files) == 0 {
				t.Errorf("%s: the map has %s, which is not there (%v)", dir, name, err)
			}
			told = append(told, files...)
		}
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if !slices.Contains(told, f) && !strings.HasSuffix(f, "_test.go") && filepath.Base(f) != "doc.go" {
				t.Errorf("the map does not have %s", f)
			}
		}
	}
}
