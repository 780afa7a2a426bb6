package config

import (
	"cmp"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/gfnem/gfnem/badinput"
)

// Resolve lays configuration over dst, a pointer to a struct that holds the defaults. Layers come in order, later
// ones win, and what no layer names keeps its default. Then the tags check all values, and if dst has a method
// Validate() error, it has the last word.
//
// Fields are booleans, ints, uint64s, float64s, strings, and structs, which are tables. A key that names no field, in
// its exact spelling, is an error, and so is a value of another type; no value is converted but an integer to a float.
// All errors that a user can cause are of badinput.
func Resolve(dst any, layers ...Layer) error {
	fields, err := fieldsOf(dst)
	if err != nil {
		return err
	}
	for _, layer := range layers {
		if err := layer.apply(fields); err != nil {
			return err
		}
	}
	for _, f := range fields {
		if err := f.check(); err != nil {
			return badinput.Errorf("%s: %w", cmp.Or(f.where, "configuration"), err)
		}
	}
	if c, ok := dst.(interface{ Validate() error }); ok {
		if err := c.Validate(); err != nil {
			return badinput.Errorf("configuration: %w", err)
		}
	}
	return nil
}

// Encode returns a configuration as TOML. Resolve with a File of it gives the same configuration again.
func Encode(v any) (string, error) {
	var b strings.Builder
	enc := toml.NewEncoder(&b)
	enc.Indent = ""
	if err := enc.Encode(v); err != nil {
		return "", fmt.Errorf("encode configuration: %w", err)
	}
	// TOML has no integers over 63 bits, but the encoder writes them.
	if _, err := toml.Decode(b.String(), new(map[string]any)); err != nil {
		return "", fmt.Errorf("encode configuration: %w", err)
	}
	return b.String(), nil
}

// MakeAbsolute makes the path that a key has independent of the folder that the program runs in, since a run is resumed
// and evaluated from others, too. Names of what needs no file stay.
func MakeAbsolute(key string, path *string, names ...string) error {
	if slices.Contains(names, *path) {
		return nil
	}
	abs, err := filepath.Abs(*path)
	if err != nil {
		return fmt.Errorf("%s = %q: %w", key, *path, err)
	}
	*path = abs
	return nil
}

// Paths returns the paths of a resolved configuration, by key: what MakeAbsolute has made absolute.
func Paths(v any) map[string]string {
	fields, _ := fieldsOf(v) // a tag that makes no sense hides no path
	paths := make(map[string]string)
	for _, f := range fields {
		if f.value.Kind() == reflect.String && f.Choices == nil && filepath.IsAbs(f.value.String()) {
			paths[f.Name] = f.value.String()
		}
	}
	return paths
}
