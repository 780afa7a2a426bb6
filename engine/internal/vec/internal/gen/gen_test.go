package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// TestCurrent says when the committed files are not what the generator writes.
func TestCurrent(t *testing.T) {
	dir := t.TempDir()
	generate(dir)
	files, err := filepath.Glob(filepath.Join(dir, "zz_*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("the generator wrote %d files: %v", len(files), err)
	}
	for _, f := range files {
		want, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join("..", "..", filepath.Base(f)))
		if err != nil || !bytes.Equal(want, got) {
			t.Errorf("%s is not current, run go generate (%v)", filepath.Base(f), err)
		}
	}
}
