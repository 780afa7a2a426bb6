package treebank

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gfnem/gfnem/badinput"
)

// endings are those of files that a folder contributes when it is named as input.
var endings = slices.Concat(treeEndings, conllEndings, []string{".txt"})

// expand replaces folders by the files of trees or sentences below them, in the order of their names.
func expand(paths []string) ([]string, error) {
	var files []string
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			files = append(files, path)
			continue
		}
		before := len(files)
		err = filepath.WalkDir(path, func(name string, entry fs.DirEntry, err error) error {
			if err == nil && !entry.IsDir() && slices.Contains(endings, ending(name)) {
				files = append(files, name)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		if len(files) == before {
			return nil, badinput.Errorf("no file that ends in %s (or these with .gz) in %s: name the files themselves",
				strings.Join(endings, ", "), path)
		}
	}
	return files, nil
}
