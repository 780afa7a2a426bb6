package config

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// Range is what a number of a configuration may be, for those that have no tags. It has no type name of its own, so
// that tables of ranges need no field names.
type Range = struct {
	Key              string
	Value, Low, High float64
}

// CheckRanges returns an error that names the first number outside its range; NaN is outside any.
func CheckRanges(all []Range) error {
	for _, r := range all {
		if !(r.Low <= r.Value && r.Value <= r.High) {
			return fmt.Errorf("%s = %.12g is not between %.12g and %.12g", r.Key, r.Value, r.Low, r.High)
		}
	}
	return nil
}

// CheckName returns an error if the value of a key is none of the known ones.
func CheckName(key, value string, known ...string) error {
	if slices.Contains(known, value) {
		return nil
	}
	return fmt.Errorf("%s = %q is not one of %s", key, value, strings.Join(known, " "))
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
