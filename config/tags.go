package config

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// walker collects the fields of a configuration.
type walker struct {
	fields []field
	was    []string // the tag of each field
	wrong  []error
}

func (w *walker) complain(path []string, format string, args ...any) {
	w.wrong = append(w.wrong, fmt.Errorf("configuration key %q: %w", strings.Join(path, "."), fmt.Errorf(format, args...)))
}

func (w *walker) walk(v reflect.Value, path []string) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		key, inlined, ok := keyOf(f)
		switch {
		case !ok:
		case inlined:
			w.walk(v.Field(i), path)
		default:
			inner := append(slices.Clip(path), key)
			w.add(v.Field(i), f.Tag, inner)
			if isTable(f.Type) {
				w.walk(v.Field(i), inner)
			}
		}
	}
}

// add adds a field with all that its tags say but its old names.
func (w *walker) add(v reflect.Value, tag reflect.StructTag, path []string) {
	f := field{path: path, value: v}
	f.Name, f.Type, f.Help = strings.Join(path, "."), typeName(v.Type()), tag.Get("help")
	if f.Type == "" {
		w.complain(path, "a field cannot have type %s", v.Type())
	}
	limits, limited := tag.Lookup("range")
	special, hasSpecial := tag.Lookup("or")
	if limited || hasSpecial {
		var err error
		if f.Range, err = parseInterval(limits, special, hasSpecial); err != nil {
			w.complain(path, "%w", err)
		} else if _, ok := number(v); !ok {
			w.complain(path, "a range for %s", f.Type)
		}
	}
	if choices, ok := tag.Lookup("oneof"); ok {
		if f.Choices = strings.Fields(choices); len(f.Choices) == 0 || v.Kind() != reflect.String {
			w.complain(path, "oneof:%q for %s", choices, f.Type)
		}
	}
	w.fields = append(w.fields, f)
	w.was = append(w.was, tag.Get("was"))
}

// rename gives the fields their old names.
func (w *walker) rename() {
	taken := make(map[string]bool)
	for _, f := range w.fields {
		taken[f.Name] = !isTable(f.value.Type())
	}
	for i, f := range w.fields {
		for old := range strings.SplitSeq(w.was[i], ";") {
			if w.was[i] == "" {
				continue
			}
			name, remark, _ := strings.Cut(old, ":")
			name, key, within := strings.Cut(name, "=")
			name, target := strings.TrimSpace(name), &w.fields[i]
			if within {
				target = find(w.fields, append(slices.Clip(f.path), strings.Split(strings.TrimSpace(key), ".")...))
			}
			if name == "" || target == nil || taken[name] {
				w.complain(f.path, "was:%q has no old name, one that is taken, or no such key for it", old)
				continue
			}
			taken[name] = true
			target.Was = append(target.Was, Old{Name: name, Remark: strings.TrimSpace(remark)})
		}
	}
}

func parseInterval(limits, special string, hasSpecial bool) (*Interval, error) {
	low, high, _ := strings.Cut(limits, ",")
	var r Interval
	var errLow, errHigh error
	r.Low, errLow = strconv.ParseFloat(low, 64)
	r.High, errHigh = strconv.ParseFloat(high, 64)
	if errLow != nil || errHigh != nil || !(r.Low <= r.High) {
		return nil, fmt.Errorf("range:%q is not two numbers, the lower first", limits)
	}
	if hasSpecial {
		other, err := strconv.ParseFloat(special, 64)
		if err != nil || r.contains(other) {
			return nil, fmt.Errorf("or:%q is not a number outside range:%q", special, limits)
		}
		r.Else = &other
	}
	return &r, nil
}

// keyOf returns the key of a field, and false if it has none. The fields of an embedded struct without a tag count
// as those of the struct around it; inlined is then true.
func keyOf(f reflect.StructField) (key string, inlined, ok bool) {
	tag, _, _ := strings.Cut(f.Tag.Get("toml"), ",")
	switch {
	case tag == "-":
		return "", false, false
	case f.Anonymous && tag == "" && isTable(f.Type):
		return "", true, true
	case !f.IsExported():
		return "", false, false
	case tag == "":
		return f.Name, false, true
	}
	return tag, false, true
}
