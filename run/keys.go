package run

import (
	"encoding"
	"reflect"
	"strings"
	"time"

	"github.com/gfnem/gfnem/internal/suggest"
)

var (
	durationType = reflect.TypeFor[time.Duration]()
	textType     = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// isTable reports whether fields of a type are tables, with keys of their own.
func isTable(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && !reflect.PointerTo(t).Implements(textType)
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

// fieldByKey returns the field of a struct that has a key.
func fieldByKey(v reflect.Value, key string) (reflect.Value, bool) {
	for i := range v.NumField() {
		k, inlined, ok := keyOf(v.Type().Field(i))
		if !ok {
			continue
		}
		if inlined {
			if field, ok := fieldByKey(v.Field(i), key); ok {
				return field, true
			}
		} else if k == key {
			return v.Field(i), true
		}
	}
	return reflect.Value{}, false
}

// Keys returns every key of a configuration, a pointer to a struct as for Resolve.
func Keys(config any) []string { return keys(reflect.TypeOf(config).Elem(), "") }

// keys returns every key of a type of configuration, tables before what is in them.
func keys(t reflect.Type, prefix string) []string {
	var all []string
	for i := range t.NumField() {
		f := t.Field(i)
		key, inlined, ok := keyOf(f)
		switch {
		case !ok:
		case inlined:
			all = append(all, keys(f.Type, prefix)...)
		default:
			all = append(all, prefix+key)
			if isTable(f.Type) {
				all = append(all, keys(f.Type, prefix+key+".")...)
			}
		}
	}
	return all
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
