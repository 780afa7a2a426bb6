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

func TestPaths(t *testing.T) {
	dir, err := filepath.Abs("here")
	if err != nil {
		t.Fatal(err)
	}
	var c struct {
		Data  string `toml:"data"`
		Kind  string `toml:"kind"`
		Inner struct {
			Fixed string `toml:"fixed"`
		} `toml:"inner"`
	}
	c.Data, c.Kind, c.Inner.Fixed = "digits", "plain", dir
	if got := Paths(&c); len(got) != 1 || got["inner.fixed"] != dir {
		t.Errorf("paths are %v", got)
	}
}
