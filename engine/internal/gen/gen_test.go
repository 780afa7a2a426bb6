package main

import (
	"os"
	"path/filepath"
	"testing"
)

// TestCurrent says when the committed files are not what the generator writes.
func TestCurrent(t *testing.T) {
	for name, build := range packages {
		dir := filepath.Join("..", name)
		texts, err := build().texts()
		if err != nil {
			t.Fatal(err)
		}
		for file, want := range texts {
			got, err := os.ReadFile(filepath.Join(dir, file))
			if err != nil || string(got) != want {
				t.Errorf("%s/%s is not what the generator writes (%v); run\n\tgo generate ./engine/internal/%s", name, file, err, name)
			}
		}
		files, err := filepath.Glob(filepath.Join(dir, "zz_*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if _, ok := texts[filepath.Base(f)]; !ok {
				t.Errorf("%s is left over: the generator does not write it", f)
			}
		}
	}
}
