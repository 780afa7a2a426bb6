package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// licence is the name of a file that people who pass a program on have to pass on with it.
var licence = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents|ofl)([-._].*)?$`)

// licences joins those of everything that is in the program: Go, the charts of the page, and the
// modules, with licences of single packages.
func (r release) licences(platform string) ([]byte, error) {
	listed, err := r.command(platform, "list", "-deps",
		"-f", "{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}\t{{.Dir}}\t{{$.Dir}}{{end}}{{end}}", "./cmd/gfnem").Output()
	if err != nil {
		return nil, fmt.Errorf("list modules: %w", err)
	}
	root, err := r.command(platform, "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("find Go: %w", err)
	}
	found := map[string][]byte{} // by module and path
	of := map[string]int{}       // licences of each module
	add := func(module, top, dir string) error {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		of[module] += 0
		for _, e := range entries {
			if e.IsDir() || !licence.MatchString(e.Name()) || filepath.Ext(e.Name()) == ".go" {
				continue
			}
			path, err := filepath.Rel(top, filepath.Join(dir, e.Name()))
			if err != nil {
				return err
			}
			if found[module+": "+filepath.ToSlash(path)], err = os.ReadFile(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
			of[module]++
		}
		return nil
	}
	goRoot := strings.TrimSpace(string(root))
	if err := add("Go, its runtime and standard library", goRoot, goRoot); err != nil {
		return nil, err
	}
	// The page's charts, which are embedded.
	if err := add("uPlot", r.root, filepath.Join(r.root, "serve/static/uplot")); err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(listed)) {
		f := strings.Split(strings.TrimSpace(line), "\t")
		if len(f) != 3 {
			continue
		}
		for _, dir := range slices.Compact([]string{f[1], f[2]}) {
			if err := add(f[0], f[1], dir); err != nil {
				return nil, err
			}
		}
	}
	for module, n := range of {
		if n == 0 {
			return nil, fmt.Errorf("%s has no licence", module)
		}
	}
	var out bytes.Buffer
	out.WriteString("What gfnem is built from, and the licences of that.\n")
	for _, name := range slices.Sorted(maps.Keys(found)) {
		fmt.Fprintf(&out, "\n%s\n%s\n\n%s\n", strings.Repeat("=", 80), name, bytes.TrimSpace(found[name]))
	}
	return out.Bytes(), nil
}
