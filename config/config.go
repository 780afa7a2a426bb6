package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"reflect"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/gfnem/gfnem/badinput"
)

// Layer is a source of configuration: a File or a Set.
type Layer interface {
	apply(fields []field) error
}

var (
	_ Layer = File("")
	_ Layer = Set(nil)
)

// Resolve lays configuration over dst, a pointer to a struct that holds the defaults. Layers come in order, later
// ones win, and what no layer names keeps its default. Then the tags check all values, and if dst has a method
// Validate() error, it has the last word.
//
// Fields are booleans, integers, floats, strings, durations ("90s"), types with UnmarshalText, slices of these, and
// structs, which are tables. A slice is replaced as a whole. A key that names no field, in its exact spelling, is an
// error, and so is a value of another type; no value is converted but an integer to a float. All errors that a user can
// cause are of badinput.
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
			return badinput.Errorf("configuration: %w", err)
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

// File is a TOML file, by path.
type File string

func (f File) apply(fields []field) error {
	data, err := os.ReadFile(string(f))
	if errors.Is(err, fs.ErrNotExist) {
		return badinput.Errorf("%s: no such file", string(f))
	} else if err != nil {
		return badinput.Errorf("read configuration: %w", err)
	}
	text := string(data)
	var table map[string]any
	if _, err := toml.Decode(text, &table); err != nil {
		if e, ok := errors.AsType[toml.ParseError](err); ok {
			return badinput.Errorf("%s:%d: %s", string(f), e.Position.Line, e.Message)
		}
		return badinput.Errorf("%s: %w", string(f), err)
	}
	a := assignment{fields: fields, where: func(path []string) string {
		if line := lineOf(text, path); line > 0 {
			return fmt.Sprintf("%s:%d", string(f), line)
		}
		return string(f)
	}}
	return a.table(table, nil)
}

// locator finds where a key stands: the decoder puts the place into the error of an Unmarshaler.
type locator struct{}

func (locator) UnmarshalTOML(any) error { return errors.New("here") }

// lineOf returns the line of a key in a TOML text, or 0 if it is not known.
func lineOf(text string, path []string) int {
	table := make(map[string]toml.Primitive)
	meta, err := toml.Decode(text, &table)
	for i := range path {
		if err != nil {
			return 0
		}
		key, ok := table[path[i]]
		if !ok {
			return 0
		}
		if i == len(path)-1 {
			if e, ok := errors.AsType[toml.ParseError](meta.PrimitiveDecode(key, locator{})); ok {
				return e.Position.Line
			}
			return 0
		}
		table = make(map[string]toml.Primitive)
		err = meta.PrimitiveDecode(key, &table)
	}
	return 0
}

// Set is a list of settings "key=value", with dots between the names of tables and their keys. The value is TOML;
// for a string the quotes may be left out.
type Set []string

func (s Set) apply(fields []field) error {
	for _, setting := range s {
		key, text, ok := strings.Cut(setting, "=")
		key = strings.TrimSpace(key)
		if !ok || key == "" {
			return badinput.Errorf("--set %s: want key=value", setting)
		}
		a := assignment{fields: fields, where: func([]string) string { return "--set " + setting }}
		path := strings.Split(key, ".")
		f := find(fields, path)
		if f == nil {
			return a.astray(path)
		}
		if err := a.set(f, parseSetting(text, f.value)); err != nil {
			return err
		}
	}
	return nil
}

// astray returns the error of a path that names no field: that of the first of its keys that is wrong, unless the whole
// path is an old name.
func (a assignment) astray(path []string) error {
	if err := a.renamed(path, nil); err != nil {
		return err
	}
	known := 1
	for find(a.fields, path[:known]) != nil {
		known++
	}
	return a.unknown(path[:known], nil)
}

// parseSetting returns the value of a setting: a string as it stands if the field is one and it has no quotes, or if
// it is no TOML.
func parseSetting(text string, field reflect.Value) any {
	var table map[string]any
	_, err := toml.Decode("value = "+text, &table)
	value := table["value"]
	_, quoted := value.(string)
	if err != nil || len(table) != 1 || (field.Kind() == reflect.String && !quoted) {
		return text
	}
	return value
}
