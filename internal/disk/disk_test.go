package disk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gfnem/gfnem/internal/testkit"
)

// What newer versions seal is told from damage by versions that do not know its fields.
func TestIntact(t *testing.T) {
	v := struct {
		Format int            `json:"format"`
		Text   string         `json:"text"`
		Inner  map[string]any `json:"inner"`
		Sum    string         `json:"sha256"`
	}{Format: 9, Text: "<é&> \" { \n", Inner: map[string]any{"a": []int{}, "b": map[string]int{}, "sha256": ""}}
	data, err := Seal(&v, &v.Sum)
	if err != nil {
		t.Fatal(err)
	}
	if !Intact(data) {
		t.Errorf("not intact: %s", data)
	}
	for i, c := range data {
		bad := []byte(string(data))
		bad[i] ^= 1
		// A line break or a space between tokens is no part of what is hashed, and nothing that a reader sees.
		if strings.TrimSpace(string(c)) != "" && Intact(bad) {
			t.Errorf("intact with byte %d changed: %s", i, bad)
		}
	}
	for _, bad := range []string{"", "{}", "null", `{"sha256":""}`, "x"} {
		if Intact([]byte(bad)) {
			t.Errorf("intact: %s", bad)
		}
	}
}

// Links, and folders where files belong, are neither followed nor written; so are files where folders belong.
func TestRefuses(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	for _, err := range []error{os.WriteFile(path("file"), []byte("precious"), 0o666), os.Mkdir(path("folder"), 0o777),
		os.Symlink("file", path("link")), os.Symlink("folder", path("links"))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, kind := range map[string]string{"link": "a symbolic link", "folder": "a folder"} {
		want := path(name) + " is not a regular file (it is " + kind + "): remove it or give back what belongs there"
		_, err := ReadFile(path(name))
		testkit.BadInput(t, err, want)
		_, err = OS{}.Open(path(name))
		testkit.BadInput(t, err, want)
	}
	for name, kind := range map[string]string{"links": "a symbolic link", "file": "a file"} {
		_, err := OS{}.ReadDir(path(name))
		testkit.BadInput(t, err, path(name)+" is not a folder (it is "+kind+"): remove it or give back what belongs there")
	}
	if _, err := ReadFile(path("none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
	if data, err := ReadFile(path("file")); err != nil || string(data) != "precious" {
		t.Errorf("read %q: %v", data, err)
	}
}
