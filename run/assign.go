package run

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
)

// assignment carries values from one source into a configuration.
type assignment struct {
	root  reflect.Type               // of the whole configuration, to suggest keys from
	where func(path []string) string // names the source of a key, and the line if it has one
}

// assign sets dst to a value that the TOML decoder made. The path is that of dst.
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
	if dst.Type() == durationType {
		s, ok := value.(string)
		d, err := time.ParseDuration(s)
		if !ok || err != nil {
			return a.mismatch(dst.Type(), value, path)
		}
		dst.SetInt(int64(d))
		return nil
	}
	switch dst.Kind() {
	case reflect.Struct:
		return a.assignTable(dst, value, path)
	case reflect.Slice:
		return a.assignSlice(dst, value, path)
	}
	ok, err := setScalar(dst, value)
	if err != nil {
		return fmt.Errorf("configuration key %q: %w", strings.Join(path, "."), err)
	}
	if !ok {
		return a.mismatch(dst.Type(), value, path)
	}
	return nil
}

func (a assignment) assignTable(dst reflect.Value, value any, path []string) error {
	table, ok := value.(map[string]any)
	if !ok {
		return a.mismatch(dst.Type(), value, path)
	}
	for _, key := range slices.Sorted(maps.Keys(table)) {
		inner := append(slices.Clip(path), key)
		field, ok := fieldByKey(dst, key)
		if !ok {
			return a.unknown(inner)
		}
		if err := a.assign(field, table[key], inner); err != nil {
			return err
		}
	}
	return nil
}

// assignSlice makes a new slice: the old one may be shared with other configurations.
func (a assignment) assignSlice(dst reflect.Value, value any, path []string) error {
	list, ok := value.([]any)
	if !ok {
		return a.mismatch(dst.Type(), value, path)
	}
	fresh := reflect.MakeSlice(dst.Type(), len(list), len(list))
	for i, element := range list {
		if err := a.assign(fresh.Index(i), element, path); err != nil {
			return err
		}
	}
	dst.Set(fresh)
	return nil
}

// setScalar sets a field of a basic type. It reports false if the value does not fit the field, and an error if the
// field has a type that a configuration cannot have.
func setScalar(dst reflect.Value, value any) (bool, error) {
	switch dst.Kind() {
	case reflect.Bool:
		b, ok := value.(bool)
		dst.SetBool(b)
		return ok, nil
	case reflect.String:
		s, ok := value.(string)
		dst.SetString(s)
		return ok, nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		n, ok := value.(int64)
		dst.SetInt(n)
		return ok && !dst.OverflowInt(n), nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		n, ok := value.(int64)
		dst.SetUint(uint64(n))
		return ok && n >= 0 && !dst.OverflowUint(uint64(n)), nil
	case reflect.Float32, reflect.Float64:
		f, ok := value.(float64)
		if n, isInt := value.(int64); isInt {
			f, ok = float64(n), -1<<53 <= n && n <= 1<<53 // exact
		}
		dst.SetFloat(f)
		return ok && math.IsInf(dst.Float(), 0) == math.IsInf(f, 0), nil
	}
	return false, fmt.Errorf("a field cannot have type %s", dst.Type())
}

// lookup returns the field of a path.
func (a assignment) lookup(v reflect.Value, path []string) (reflect.Value, error) {
	for i, key := range path {
		if !isTable(v.Type()) {
			return reflect.Value{}, a.unknown(path)
		}
		field, ok := fieldByKey(v, key)
		if !ok {
			return reflect.Value{}, a.unknown(path[:i+1])
		}
		v = field
	}
	return v, nil
}

func (a assignment) unknown(path []string) error {
	key := strings.Join(path, ".")
	if near, ok := nearest(key, keys(a.root, "")); ok {
		return badinput.Errorf("%s: unknown key %q; did you mean %q?", a.where(path), key, near)
	}
	return badinput.Errorf("%s: unknown key %q", a.where(path), key)
}

func (a assignment) mismatch(t reflect.Type, value any, path []string) error {
	return badinput.Errorf("%s: key %q: want %s, got %s", a.where(path), strings.Join(path, "."), typeName(t),
		describe(value))
}

// typeName says what a field takes, for a person.
func typeName(t reflect.Type) string {
	switch {
	case t == durationType:
		return `a duration such as "90s"`
	case reflect.PointerTo(t).Implements(textType):
		return "a string"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "a boolean"
	case reflect.String:
		return "a string"
	case reflect.Struct:
		return "a table"
	case reflect.Slice:
		return "an array, each element " + typeName(t.Elem())
	case reflect.Int, reflect.Int64:
		return "an integer"
	case reflect.Uint, reflect.Uint64:
		return "an integer from 0"
	case reflect.Int8, reflect.Int16, reflect.Int32:
		return fmt.Sprintf("an integer of %d bits", t.Bits())
	case reflect.Uint8, reflect.Uint16, reflect.Uint32:
		return fmt.Sprintf("an integer from 0 to %d", uint64(1)<<t.Bits()-1)
	case reflect.Float32:
		return "a number of 32 bits"
	}
	return "a number"
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
