package run

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var keptFiles = map[string][]byte{"train.txt": []byte("a dog\n"), "valid.txt": []byte("a cat\n")}

// A run keeps files from the start, verifies them, and says what became of them.
func TestKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	o := testOptions()
	o.Files = keptFiles
	r, err := Create(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "data", "train.txt")
	if got := readFile(t, path); got != "a dog\n" {
		t.Errorf("%s holds %q", path, got)
	}
	status := func() (out Status) {
		if err := Verify(dir, func(f Finding) {
			if f.Path == path {
				out = f.Status
			}
		}); err != nil {
			t.Fatal(err)
		}
		return out
	}
	if got := status(); got != Intact {
		t.Errorf("%s is %s", path, got)
	}
	writeString(t, path, "a bird\n")
	if got := status(); got != Damaged {
		t.Errorf("changed, %s is %s", path, got)
	}
	if err := os.RemoveAll(filepath.Dir(path)); err != nil {
		t.Fatal(err)
	}
	if got := status(); got != Damaged {
		t.Errorf("removed, %s is %s", path, got)
	}
}

// A folder data that a killed Create has left is taken over; one of somebody else is left alone.
func TestKeptDebris(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		ok    bool
	}{
		"whole":        {map[string]string{"data/train.txt": "a dog\n", "data/valid.txt": "a cat\n"}, true},
		"being made":   {map[string]string{"data.tmp/train.txt": "a d"}, true},
		"another":      {map[string]string{"data/train.txt": "a cow\n", "data/valid.txt": "a cat\n"}, false},
		"more":         {map[string]string{"data/train.txt": "a dog\n", "data/valid.txt": "a cat\n", "data/notes": "mine"}, false},
		"less":         {map[string]string{"data/train.txt": "a dog\n"}, false},
		"no folder":    {map[string]string{"data": "mine"}, false},
		"more, unmade": {map[string]string{"data.tmp/notes": "mine"}, false},
	} {
		dir := t.TempDir()
		for file, text := range c.files {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o777); err != nil {
				t.Fatal(err)
			}
			writeString(t, filepath.Join(dir, file), text)
		}
		o := testOptions()
		o.Files = keptFiles
		r, err := Create(dir, o)
		if c.ok {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			} else if got := readFile(t, filepath.Join(dir, "data", "train.txt")); got != "a dog\n" {
				t.Errorf("%s: %q", name, got)
			}
			r.Close()
			continue
		}
		if err == nil || !strings.Contains(err.Error(), "is not empty (it has data") {
			t.Errorf("%s: %v", name, err)
		}
		for file, text := range c.files {
			if got := readFile(t, filepath.Join(dir, file)); got != text {
				t.Errorf("%s: %s holds %q", name, file, got)
			}
		}
	}
}
