package config

import (
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Field is a key of a configuration.
type Field struct {
	Name    string    // with its sections: "optim.phi.lr"
	Type    string    // what it takes, in words; "a table" for a section
	Value   string    // as TOML writes it; "" for a section
	Range   *Interval // nil for any number
	Choices []string  // nil for any string
	Help    string
	Was     []Old
}

// Interval is what a number may be: Low to High, or Else if that is not nil.
type Interval struct {
	Low, High float64
	Else      *float64
}

// Old is a name that a key had once.
type Old struct {
	Name   string
	Remark string // what else has changed; may be ""
}

// Fields lists the keys of a configuration, a pointer to a struct as for Resolve, in order; sections come before what
// is in them. It returns an error if a tag makes no sense.
func Fields(v any) ([]Field, error) {
	fields, err := fieldsOf(v)
	if err != nil {
		return nil, err
	}
	all := make([]Field, len(fields))
	for i, f := range fields {
		switch t := f.value.Type(); {
		case isTable(t):
		case t.Kind() == reflect.Slice && f.value.Len() == 0:
			f.Value = "[]"
		default:
			text, err := Encode(map[string]any{"v": f.value.Interface()})
			if err != nil {
				return nil, fmt.Errorf("%s: %w", f.Name, err)
			}
			f.Value = strings.TrimSpace(strings.TrimPrefix(text, "v = "))
		}
		all[i] = f.Field
	}
	return all, nil
}

// Keys returns the name of every key.
func Keys(v any) []string {
	fields, _ := fieldsOf(v) // a tag that makes no sense hides no key
	return names(fields)
}

// Check returns an error unless every key of a configuration with defaults has help, and a value that it may have.
func Check(v any) error {
	fields, err := fieldsOf(v)
	all := []error{err}
	for _, f := range fields {
		if f.Help == "" || strings.Contains(f.Help, "\n") {
			all = append(all, fmt.Errorf("key %q: its help is not one line", f.Name))
		}
		all = append(all, f.check())
	}
	return errors.Join(all...)
}

// field is a key and where its value is kept.
type field struct {
	Field
	path  []string
	value reflect.Value
}

func names(fields []field) []string {
	all := make([]string, len(fields))
	for i, f := range fields {
		all[i] = f.Name
	}
	return all
}

// find returns the field of a path, or nil.
func find(fields []field, path []string) *field {
	i := slices.IndexFunc(fields, func(f field) bool { return slices.Equal(f.path, path) })
	if i < 0 {
		return nil
	}
	return &fields[i]
}

// fieldsOf returns the fields of a pointer to a struct, without values as text, and what is wrong with their tags.
func fieldsOf(config any) ([]field, error) {
	v := reflect.ValueOf(config)
	if v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
		return nil, fmt.Errorf("configuration: %T is not a pointer to a struct", config)
	}
	var w walker
	w.walk(v.Elem(), nil)
	w.rename()
	return w.fields, errors.Join(w.wrong...)
}

// contains reports whether a number lies in the interval; NaN lies in none.
func (r *Interval) contains(x float64) bool {
	return r.Low <= x && x <= r.High || r.Else != nil && x == *r.Else
}

// check returns an error if the value is outside of its range or none of its choices.
func (f *field) check() error {
	if x, ok := number(f.value); ok && f.Range != nil && !f.Range.contains(x) {
		if f.Range.Else != nil {
			return fmt.Errorf("%s = %.12g is neither %.12g nor between %.12g and %.12g",
				f.Name, x, *f.Range.Else, f.Range.Low, f.Range.High)
		}
		return fmt.Errorf("%s = %.12g is not between %.12g and %.12g", f.Name, x, f.Range.Low, f.Range.High)
	}
	if f.Choices != nil {
		return CheckName(f.Name, f.value.String(), f.Choices...)
	}
	return nil
}

// number returns the number that a field holds, and false if it holds none.
func number(v reflect.Value) (float64, bool) {
	switch {
	case v.Type() == durationType || reflect.PointerTo(v.Type()).Implements(textType):
		return 0, false
	case v.CanInt():
		return float64(v.Int()), true
	case v.CanUint():
		return float64(v.Uint()), true
	case v.CanFloat():
		return v.Float(), true
	}
	return 0, false
}

var (
	durationType = reflect.TypeFor[time.Duration]()
	textType     = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// isTable reports whether fields of a type are tables, with keys of their own.
func isTable(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && !reflect.PointerTo(t).Implements(textType)
}

// typeName says what a field takes, for a person; "" if a configuration cannot have such a field.
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
		if element := typeName(t.Elem()); element != "" && !isTable(t.Elem()) {
			return "an array, each element " + element
		}
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
	case reflect.Float64:
		return "a number"
	}
	return ""
}
