package config

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
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
	Resume  bool // a run that is resumed may change it

	value reflect.Value
	where string // of the layer that has set it last
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
	for i, f := range fields {
		if f.value.Kind() == reflect.Struct {
			continue
		}
		text, encodeErr := Encode(map[string]any{"v": f.value.Interface()})
		err = errors.Join(err, encodeErr)
		fields[i].Value = strings.TrimSpace(strings.TrimPrefix(text, "v = "))
	}
	return fields, err
}

// Keys returns the name of every key.
func Keys(v any) []string {
	fields, _ := fieldsOf(v) // a tag that makes no sense hides no key
	return names(fields)
}

func names(fields []Field) []string {
	all := make([]string, len(fields))
	for i, f := range fields {
		all[i] = f.Name
	}
	return all
}

// Changed returns the names of keys that two configurations of one type differ in.
func Changed(a, b any) (keys []string, err error) {
	before, errA := Fields(a)
	after, errB := Fields(b)
	if err := errors.Join(errA, errB); err != nil {
		return nil, err
	}
	for i, f := range before {
		if f.Value != after[i].Value {
			keys = append(keys, f.Name)
		}
	}
	return keys, nil
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

// check returns an error if the value is outside of its range or none of its choices.
func (f *Field) check() error {
	if f.Choices != nil && !slices.Contains(f.Choices, f.value.String()) {
		return fmt.Errorf("%s = %q is not one of %s", f.Name, f.value.String(), strings.Join(f.Choices, " "))
	}
	x, ok := number(f.value)
	switch r := f.Range; {
	case !ok || r == nil || r.contains(x):
		return nil
	case r.Else != nil:
		return fmt.Errorf("%s = %.12g is neither %.12g nor between %.12g and %.12g", f.Name, x, *r.Else, r.Low, r.High)
	default:
		return fmt.Errorf("%s = %.12g is not between %.12g and %.12g", f.Name, x, r.Low, r.High)
	}
}

// contains reports whether a number lies in the interval; NaN lies in none.
func (r *Interval) contains(x float64) bool {
	return r.Low <= x && x <= r.High || r.Else != nil && x == *r.Else
}

// number returns the number that a field holds, and false if it holds none.
func number(v reflect.Value) (float64, bool) {
	switch {
	case v.CanInt():
		return float64(v.Int()), true
	case v.CanUint():
		return float64(v.Uint()), true
	case v.CanFloat():
		return v.Float(), true
	}
	return 0, false
}

// types say what a field takes, for a person.
var types = map[reflect.Kind]string{
	reflect.Bool: "a boolean", reflect.String: "a string", reflect.Struct: "a table",
	reflect.Int: "an integer", reflect.Uint64: "an integer from 0", reflect.Float64: "a number",
}

// fieldsOf returns the fields of a pointer to a struct, without values as text, and what is wrong with their tags.
func fieldsOf(config any) ([]Field, error) {
	v := reflect.ValueOf(config)
	if v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
		return nil, fmt.Errorf("configuration: %T is not a pointer to a struct", config)
	}
	fields, err := walk(nil, v.Elem(), "")
	taken := make(map[string]bool)
	for _, f := range fields {
		taken[f.Name] = f.value.Kind() != reflect.Struct
	}
	for _, f := range fields {
		for _, old := range f.Was {
			if old.Name == "" || taken[old.Name] {
				err = errors.Join(err, fmt.Errorf("configuration key %q: was:%q has no old name, or one that is taken", f.Name, old.Name))
			}
			taken[old.Name] = true
		}
	}
	return fields, err
}

// walk adds the fields of a struct, whose section is named with a dot at its end. Those of an embedded struct without a
// tag count as its own.
func walk(fields []Field, v reflect.Value, section string) (_ []Field, err error) {
	for i := range v.NumField() {
		t, value, below := v.Type().Field(i), v.Field(i), section
		key, _, _ := strings.Cut(t.Tag.Get("toml"), ",")
		isTable := value.Kind() == reflect.Struct
		switch {
		case key == "-" || !t.IsExported() && !t.Anonymous:
			continue
		case isTable && t.Anonymous && key == "":
		default:
			f := Field{Name: section + cmp.Or(key, t.Name), value: value}
			if wrong := f.readTags(t.Tag); wrong != nil {
				err = errors.Join(err, fmt.Errorf("configuration key %q: %w", f.Name, wrong))
			}
			fields, below = append(fields, f), f.Name+"."
		}
		if isTable {
			var wrong error
			fields, wrong = walk(fields, value, below)
			err = errors.Join(err, wrong)
		}
	}
	return fields, err
}

// readTags sets what the tags of a field say.
func (f *Field) readTags(tag reflect.StructTag) error {
	f.Type, f.Help = types[f.value.Kind()], tag.Get("help")
	switch may := tag.Get("resume"); may {
	case "", "may change":
		f.Resume = may != ""
	default:
		return fmt.Errorf("resume:%q is not \"may change\"", may)
	}
	if f.Type == "" {
		return fmt.Errorf("a field cannot have type %s", f.value.Type())
	}
	for old := range strings.SplitSeq(tag.Get("was"), ";") {
		if tag.Get("was") != "" {
			name, remark, _ := strings.Cut(old, ":")
			f.Was = append(f.Was, Old{Name: strings.TrimSpace(name), Remark: strings.TrimSpace(remark)})
		}
	}
	if choices, ok := tag.Lookup("oneof"); ok {
		if f.Choices = strings.Fields(choices); len(f.Choices) == 0 || f.value.Kind() != reflect.String {
			return fmt.Errorf("oneof:%q for %s", choices, f.Type)
		}
	}
	limits, limited := tag.Lookup("range")
	special, hasSpecial := tag.Lookup("or")
	if !limited && !hasSpecial {
		return nil
	}
	low, high, _ := strings.Cut(limits, ",")
	f.Range = &Interval{}
	var errLow, errHigh error
	f.Range.Low, errLow = strconv.ParseFloat(low, 64)
	f.Range.High, errHigh = strconv.ParseFloat(high, 64)
	if errLow != nil || errHigh != nil || !(f.Range.Low <= f.Range.High) {
		return fmt.Errorf("range:%q is not two numbers, the lower first", limits)
	}
	if hasSpecial {
		other, err := strconv.ParseFloat(special, 64)
		if err != nil || f.Range.contains(other) {
			return fmt.Errorf("or:%q is not a number outside range:%q", special, limits)
		}
		f.Range.Else = &other
	}
	if _, ok := number(f.value); !ok {
		return fmt.Errorf("a range for %s", f.Type)
	}
	return nil
}
