package config

import (
	"encoding"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/internal/suggest"
)

// assignment carries values from one source into a configuration.
type assignment struct {
	fields []field
	where  func(path []string) string // names the source of a key, and the line if it has one
}

// table sets what is in the section of a path, which is nil for the whole configuration.
func (a assignment) table(table map[string]any, path []string) error {
	for _, key := range slices.Sorted(maps.Keys(table)) {
		inner := append(slices.Clip(path), key)
		f := find(a.fields, inner)
		if f == nil {
			return a.unknown(inner, table[key])
		}
		if err := a.set(f, table[key]); err != nil {
			return err
		}
	}
	return nil
}

// set sets a field to a value that the TOML decoder made.
func (a assignment) set(f *field, value any) error {
	if !isTable(f.value.Type()) {
		return a.assign(f.value, value, f.path)
	}
	if table, ok := value.(map[string]any); ok {
		return a.table(table, f.path)
	}
	// An old key may have become the name of a section.
	if err := a.renamed(f.path, nil); err != nil {
		return err
	}
	return a.mismatch(f.value.Type(), value, f.path)
}

// assign sets the value of a field, or an element of it.
func (a assignment) assign(dst reflect.Value, value any, path []string) error {
	if u, ok := dst.Addr().Interface().(encoding.TextUnmarshaler); ok {
		s, ok := value.(string)
		if !ok {
			return a.mismatch(dst.Type(), value, path)
		}
		if err := u.UnmarshalText([]byte(s)); err != nil {
			return badinput.Errorf("%s: key %q: %w", a.where(path), strings.Join(path, "."), err)
		}
		return nil
	}
	if dst.Kind() == reflect.Slice {
		list, ok := value.([]any)
		if !ok {
			return a.mismatch(dst.Type(), value, path)
		}
		// The old slice may be shared with other configurations.
		fresh := reflect.MakeSlice(dst.Type(), len(list), len(list))
		for i, element := range list {
			if err := a.assign(fresh.Index(i), element, path); err != nil {
				return err
			}
		}
		dst.Set(fresh)
		return nil
	}
	if !setScalar(dst, value) {
		return a.mismatch(dst.Type(), value, path)
	}
	return nil
}

// setScalar sets a field of a basic type. It reports false if the value does not fit the field.
func setScalar(dst reflect.Value, value any) bool {
	if dst.Type() == durationType {
		s, ok := value.(string)
		d, err := time.ParseDuration(s)
		dst.SetInt(int64(d))
		return ok && err == nil
	}
	switch {
	case dst.Kind() == reflect.Bool:
		b, ok := value.(bool)
		dst.SetBool(b)
		return ok
	case dst.Kind() == reflect.String:
		s, ok := value.(string)
		dst.SetString(s)
		return ok
	case dst.CanInt():
		n, ok := value.(int64)
		dst.SetInt(n)
		return ok && !dst.OverflowInt(n)
	case dst.CanUint():
		n, ok := value.(int64)
		dst.SetUint(uint64(n))
		return ok && n >= 0 && !dst.OverflowUint(uint64(n))
	}
	f, ok := value.(float64)
	if n, isInt := value.(int64); isInt {
		f, ok = float64(n), -1<<53 <= n && n <= 1<<53 // exact
	}
	dst.SetFloat(f)
	return ok && math.IsInf(dst.Float(), 0) == math.IsInf(f, 0)
}

// unknown returns the error of a path that names no field, for a value that it was to have.
func (a assignment) unknown(path []string, value any) error {
	if err := a.renamed(path, value); err != nil {
		return err
	}
	key := strings.Join(path, ".")
	if near, ok := nearest(key, names(a.fields)); ok {
		return badinput.Errorf("%s: unknown key %q; did you mean %q?", a.where(path), key, near)
	}
	return badinput.Errorf("%s: unknown key %q", a.where(path), key)
}

// renamed returns the error of a path, or of one within it if the value is a table, that is an old name; else nil.
func (a assignment) renamed(path []string, value any) error {
	key := strings.Join(path, ".")
	for _, f := range a.fields {
		for _, old := range f.Was {
			if old.Name != key {
				continue
			}
			if old.Remark != "" {
				return badinput.Errorf("%s: key %q is now %q (%s)", a.where(path), key, f.Name, old.Remark)
			}
			return badinput.Errorf("%s: key %q is now %q", a.where(path), key, f.Name)
		}
	}
	table, _ := value.(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(table)) {
		if err := a.renamed(append(slices.Clip(path), key), table[key]); err != nil {
			return err
		}
	}
	return nil
}

// nearest returns the key that the writer of an unknown one most likely meant: one a few letters away, in this table
// or in another. It reports false if none is near.
func nearest(key string, all []string) (string, bool) {
	best, bestDistance := "", len(key)/3+2
	for _, candidate := range all {
		d := min(suggest.Distance(key, candidate), 1+suggest.Distance(lastName(key), lastName(candidate)))
		if d < bestDistance {
			best, bestDistance = candidate, d
		}
	}
	return best, best != ""
}

func lastName(key string) string {
	return key[strings.LastIndexByte(key, '.')+1:]
}

func (a assignment) mismatch(t reflect.Type, value any, path []string) error {
	return badinput.Errorf("%s: key %q: want %s, got %s",
		a.where(path), strings.Join(path, "."), typeName(t), describe(value))
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
	return fmt.Sprintf("%v", value)
}
