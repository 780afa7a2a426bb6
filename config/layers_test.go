package config

import (
	"path/filepath"
	"testing"
)

func TestMakeAbsolute(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	dir, err := filepath.Abs(".") // as the system names it
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"digits": "digits", "": "", "./digits": filepath.Join(dir, "digits"), "a/../b": filepath.Join(dir, "b"), dir: dir,
	} {
		got := path
		if err := MakeAbsolute("data", &got, "digits", ""); err != nil || got != want {
			t.Errorf("%q becomes %q, error %v, want %q", path, got, err, want)
		}
	}
}
