package config

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/internal/input"
	"github.com/gfnem/gfnem/internal/suggest"
)

// Layer is a source of configuration: a File, a Set or an At.
type Layer interface {
	apply(fields []Field) error
}

var (
	_ Layer = File("")
	_ Layer = Set(nil)
	_ Layer = At{}
)

// File is a TOML file, by path, of at most 1 MiB.
type File string

const maxFile = 1 << 20

func (f File) apply(fields []Field) error {
	data, err := input.Read(string(f), maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return badinput.Errorf("%s: no such file", string(f))
	} else if err != nil {
		return badinput.Errorf("read configuration: %w", err)
	}
	var table map[string]toml.Primitive
	meta, err := toml.Decode(string(data), &table)
	if e, ok := errors.AsType[toml.ParseError](err); ok {
		return badinput.Errorf("%s:%d: %s", string(f), e.Position.Line, e.Message)
	} else if err != nil {
		return badinput.Errorf("%s: %w", string(f), err)
	}
	s := source{fields: fields, meta: meta, where: func(value toml.Primitive) string { return string(f) + Line(meta, value) }}
	return s.table(table, "")
}

// Line says in which line of a TOML file a value stands, as ":7"; "" if that is not known.
func Line(meta toml.MetaData, value toml.Primitive) string {
	if e, ok := errors.AsType[toml.ParseError](meta.PrimitiveDecode(value, locator{})); ok {
		return fmt.Sprintf(":%d", e.Position.Line)
	}
	return ""
}

// locator finds where a value stands: the decoder puts the place into the error of an Unmarshaler.
type locator struct{}

func (locator) UnmarshalTOML(any) error { return errors.New("here") }

// Set is a list of settings "key=value", with dots between the names of tables and their keys. The value is TOML;
// for a string the quotes may be left out.
type Set []string

func (s Set) apply(fields []Field) error {
	for _, setting := range s {
		if err := (At{"--set " + setting, setting}).apply(fields); err != nil {
			return err
		}
	}
	return nil
}

// At is a setting as those of Set, and where it stands, for errors.
type At struct{ Where, Setting string }

func (a At) apply(fields []Field) error {
	key, text, ok := strings.Cut(a.Setting, "=")
	key = strings.TrimSpace(key)
	if !ok || key == "" {
		return badinput.Errorf("%s: want key=value", a.Where)
	}
	var table map[string]toml.Primitive
	meta, err := toml.Decode("value = "+text, &table)
	value, isTOML := table["value"], err == nil && len(table) == 1
	s := source{fields: fields, meta: meta, where: func(toml.Primitive) string { return a.Where }}
	f := s.find(key)
	switch {
	case f == nil:
		return s.astray(key)
	case f.value.Kind() == reflect.String && (!isTOML || meta.PrimitiveDecode(value, new(string)) != nil):
		f.value.SetString(text)
		f.where = a.Where
		return nil
	case !isTOML:
		return s.mismatch(f, value, text)
	}
	return s.set(f, value)
}

// source is a layer as the TOML decoder has read it.
type source struct {
	fields []Field
	meta   toml.MetaData
	where  func(toml.Primitive) string // names the source of a value, and the line if it has one
}

// find returns the field of a key, or nil.
func (s source) find(key string) *Field {
	if i := slices.Index(names(s.fields), key); i >= 0 {
		return &s.fields[i]
	}
	return nil
}

// table sets what is in a section, which is named with a dot at its end, or "" for the whole configuration.
func (s source) table(table map[string]toml.Primitive, section string) error {
	for _, key := range slices.Sorted(maps.Keys(table)) {
		f := s.find(section + key)
		if f == nil || strings.Contains(key, ".") {
			return s.unknown(section+key, table[key])
		}
		if err := s.set(f, table[key]); err != nil {
			return err
		}
	}
	return nil
}

// set sets a field.
func (s source) set(f *Field, value toml.Primitive) error {
	var got any
	_ = s.meta.PrimitiveDecode(value, &got) // anything fits
	_, isTable := got.(map[string]any)
	n, isInt := got.(int64)
	switch {
	case isTable && f.value.Kind() == reflect.Struct:
		var inner map[string]toml.Primitive
		_ = s.meta.PrimitiveDecode(value, &inner) // a table fits
		return s.table(inner, f.Name+".")
	case f.value.Kind() == reflect.Struct:
		if err := s.renamed(f.Name, value); err != nil { // an old key has become the name of a section
			return err
		}
	case isInt && (f.value.CanInt() && f.value.OverflowInt(n) || f.value.CanUint() && n < 0):
	case s.meta.PrimitiveDecode(value, f.value.Addr().Interface()) == nil:
		f.where = s.where(value)
		return nil
	}
	return s.mismatch(f, value, got)
}

// astray returns the error of a key that names no field: that of the first of its parts that is wrong, unless the whole
// is an old name.
func (s source) astray(key string) error {
	if err := s.renamed(key, toml.Primitive{}); err != nil {
		return err
	}
	parts, known := strings.Split(key, "."), 1
	for s.find(strings.Join(parts[:known], ".")) != nil {
		known++
	}
	return s.unknown(strings.Join(parts[:known], "."), toml.Primitive{})
}

// unknown returns the error of a key that names no field, with the one that was most likely meant if there is one a few
// letters away, in its table or in another.
func (s source) unknown(key string, value toml.Primitive) error {
	if err := s.renamed(key, value); err != nil {
		return err
	}
	last := func(key string) string { return key[strings.LastIndexByte(key, '.')+1:] }
	near, distance := "", len(key)/3+2
	for _, name := range names(s.fields) {
		if d := min(suggest.Distance(key, name), 1+suggest.Distance(last(key), last(name))); d < distance {
			near, distance = name, d
		}
	}
	if near != "" {
		return badinput.Errorf("%s: unknown key %q; did you mean %q?", s.where(value), key, near)
	}
	return badinput.Errorf("%s: unknown key %q", s.where(value), key)
}

// renamed returns the error of a key that is an old name; else nil.
func (s source) renamed(key string, value toml.Primitive) error {
	for _, f := range s.fields {
		for _, old := range f.Was {
			switch {
			case old.Name != key:
			case old.Remark != "":
				return badinput.Errorf("%s: key %q is now %q (%s)", s.where(value), key, f.Name, old.Remark)
			default:
				return badinput.Errorf("%s: key %q is now %q", s.where(value), key, f.Name)
			}
		}
	}
	return nil
}

func (s source) mismatch(f *Field, value toml.Primitive, got any) error {
	return badinput.Errorf("%s: key %q: want %s, got %s", s.where(value), f.Name, f.Type, describe(got))
}

// describe shows a value with its TOML type.
func describe(value any) string {
	switch v := value.(type) {
	case string:
		return "string " + strconv.Quote(v)
	case int64:
		return fmt.Sprintf("integer %d", v)
	case float64:
		return "float " + strconv.FormatFloat(v, 'g', -1, 64)
	case bool:
		return fmt.Sprintf("boolean %t", v)
	case []any:
		return fmt.Sprintf("an array of %d", len(v))
	case map[string]any:
		return "a table"
	case []map[string]any:
		return "an array of tables"
	}
	return fmt.Sprint(value)
}
