package treebank

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// Every file of a data set is looked at, and what is wrong with one does not hide the others.
func TestVerify(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	if err := small(t).Save(dir, false); err != nil {
		t.Fatal(err)
	}
	check := func(what string, bad ...string) {
		t.Helper()
		if !Holds(dir) {
			t.Errorf("%s: no data set", what)
		}
		seen := 0
		Verify(dir, func(path string, err error) {
			seen++
			if name := filepath.Base(path); (err != nil) != slices.Contains(bad, name) {
				t.Errorf("%s: of %s it is said: %v", what, name, err)
			}
		})
		if seen != 5 && !slices.Contains(bad, manifestName) {
			t.Errorf("%s: %d files", what, seen)
		}
	}
	check("intact")
	path := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{manifestName, vocabularyName, "test.txt", "train.spans", "train.txt"} {
		data, err := os.ReadFile(path(name))
		if err != nil {
			t.Fatal(err)
		}
		for i := range data {
			bad := slices.Clone(data)
			bad[i] ^= 1
			if err := os.WriteFile(path(name), bad, 0o666); err != nil {
				t.Fatal(err)
			}
			check("byte changed", name)
		}
		if err := os.WriteFile(path(name), data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(path("train.txt")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(path("train.spans"), path("train.txt")); err != nil {
		t.Skip(err)
	}
	if err := os.WriteFile(path("test.txt"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	check("two files", "train.txt", "test.txt")
	if Holds(t.TempDir()) {
		t.Error("an empty folder holds a data set")
	}
}
