package treebank

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/gfnem/gfnem/internal/disk"
)

// Holds reports whether a folder holds a data set, intact or not.
func Holds(dir string) bool {
	data, err := disk.ReadFile(filepath.Join(dir, manifestName))
	if err == nil && bytes.Contains(data, []byte(`"splits"`)) {
		return true
	}
	_, err = os.Lstat(filepath.Join(dir, vocabularyName))
	return err == nil
}

// Verify looks at every file of the data set in a folder and says what is wrong with each, or nil. It changes nothing.
func Verify(dir string, say func(path string, err error)) {
	path := filepath.Join(dir, manifestName)
	m, err := readManifest(disk.OS{}, dir)
	if err != nil {
		say(path, err)
		return
	}
	content := make(map[string][]byte)
	for _, name := range slices.Sorted(maps.Keys(m.Files)) {
		path := filepath.Join(dir, filepath.Base(name))
		data, err := disk.ReadFile(path)
		if err == nil && disk.DigestOf(data) != m.Files[name] {
			err = errors.New("does not match its hash in " + manifestName)
		}
		if err == nil {
			content[name] = data
		}
		say(path, err)
	}
	if len(content) == len(m.Files) {
		_, err = m.decode(content)
	}
	say(path, err)
}
