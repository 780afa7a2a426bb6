package catalog

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/BurntSushi/toml"
)

// Flatten returns every key of a configuration in TOML, with dots between sections, and its value as text, a string
// without quotes.
func Flatten(text string) (map[string]string, error) {
	var table map[string]any
	if _, err := toml.Decode(text, &table); err != nil {
		return nil, fmt.Errorf("run.toml: %w", err)
	}
	out := map[string]string{}
	flatten(out, "", table)
	return out, nil
}

func flatten(out map[string]string, section string, table map[string]any) {
	for key, value := range table {
		switch v := value.(type) {
		case map[string]any:
			flatten(out, section+key+".", v)
		case float64:
			out[section+key] = strconv.FormatFloat(v, 'g', -1, 64)
		default:
			out[section+key] = fmt.Sprint(v)
		}
	}
}

// Numbers returns the numbers of a result, a JSON object, with dots between the names of nested ones. Arrays of objects
// count where these have a text "name" or "trees", which then names them; other arrays are left out, and so are texts
// that are no numbers.
func Numbers(text []byte) (map[string]float64, error) {
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		return nil, fmt.Errorf("result.json: %w", err)
	}
	out := map[string]float64{}
	collect(out, "", v)
	return out, nil
}

func collect(out map[string]float64, name string, v any) {
	switch v := v.(type) {
	case map[string]any:
		if name != "" {
			name += "."
		}
		for key, inner := range v {
			collect(out, name+key, inner)
		}
	case []any:
		for _, inner := range v {
			if own, ok := nameOf(inner); ok {
				collect(out, name+"."+own, inner)
			}
		}
	case float64:
		out[name] = v
	case bool:
		out[name] = 0
		if v {
			out[name] = 1
		}
	case string:
		if x, err := strconv.ParseFloat(v, 64); err == nil && (math.IsNaN(x) || math.IsInf(x, 0)) {
			out[name] = x
		}
	}
}

// nameOf is what tells an object from others in an array.
func nameOf(v any) (string, bool) {
	object, _ := v.(map[string]any)
	for _, key := range []string{"name", "trees"} {
		if text, ok := object[key].(string); ok {
			return text, true
		}
	}
	return "", false
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
