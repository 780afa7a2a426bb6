package sweep

import (
	"math"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/gfnem/gfnem/config"
)

// setting is a key of a configuration, with the values that it is to have, as TOML writes them.
type setting struct {
	key, where string
	values     []string
}

func (s setting) layer(i int) config.Layer {
	return config.At{Where: s.where, Setting: s.key + "=" + s.values[i]}
}

// settings reads a section of keys of a configuration, in the order of the file.
func (r *reader) settings(section string) ([]setting, error) {
	table, err := r.section(section)
	if err != nil {
		return nil, err
	}
	var out []setting
	if err := r.walk(table, "", section == "axes", func(key string, value toml.Primitive, values []any) error {
		s := setting{key: key, where: r.at(value)}
		taken := make(map[string]bool)
		for _, v := range values {
			text, err := config.Encode(map[string]any{"v": v})
			if err != nil {
				return r.errorf(section+"."+key, value, "%w", err)
			}
			text = strings.TrimSpace(strings.TrimPrefix(text, "v = "))
			if taken[text] {
				return r.errorf(section+"."+key, value, "%s occurs twice", text)
			}
			taken[text] = true
			s.values = append(s.values, text)
		}
		out = append(out, s)
		return nil
	}); err != nil {
		return nil, err
	}
	place := make(map[string]int)
	for i, key := range r.meta.Keys() {
		place[strings.Join(key, ".")] = i
	}
	slices.SortStableFunc(out, func(a, b setting) int { return place[section+"."+a.key] - place[section+"."+b.key] })
	return out, nil
}

// walk calls f for every key of a table and those below it. Axes have lists and ranges, others one value.
func (r *reader) walk(
	table map[string]toml.Primitive, above string, axes bool, f func(key string, value toml.Primitive, values []any) error,
) error {
	for key, value := range table {
		if below, ok := r.tableOf(value); ok && !(axes && isRange(below)) {
			if err := r.walk(below, above+key+".", axes, f); err != nil {
				return err
			}
			continue
		}
		var values []any
		var one any
		var err error
		if axes {
			values, err = r.values("axes."+above+key, value)
		} else if err = r.meta.PrimitiveDecode(value, &one); err == nil {
			values = []any{one}
		}
		if err != nil {
			return err
		}
		if err := f(above+key, value, values); err != nil {
			return err
		}
	}
	return nil
}

func isRange(table map[string]toml.Primitive) bool {
	_, from := table["from"]
	_, to := table["to"]
	return from || to
}

// values reads a list, or a range.
func (r *reader) values(key string, value toml.Primitive) ([]any, error) {
	var list []any
	if r.meta.PrimitiveDecode(value, &list) == nil {
		if len(list) == 0 {
			return nil, r.errorf(key, value, "the list is empty")
		}
		return list, nil
	}
	table, ok := r.tableOf(value)
	if !ok {
		return nil, r.errorf(key, value, "want a list, such as [1, 2], or a range, such as {from = 1, to = 8, count = 4}")
	}
	if err := r.known(table, key+".", "from", "to", "step", "count", "scale"); err != nil {
		return nil, err
	}
	return r.steps(key, value, table)
}

// steps returns the values of a range, which are integers if all that is said of it is.
func (r *reader) steps(key string, value toml.Primitive, table map[string]toml.Primitive) ([]any, error) {
	var from, to, step float64
	var count int64
	scale, whole := "linear", true
	for name, at := range map[string]*float64{"from": &from, "to": &to, "step": &step} {
		if err := scalar(r, table, key+".", name, "a number", at); err != nil {
			return nil, err
		}
		var n int64
		if v, ok := table[name]; ok && r.meta.PrimitiveDecode(v, &n) != nil {
			whole = false
		}
	}
	if err := scalar(r, table, key+".", "count", "an integer", &count); err != nil {
		return nil, err
	}
	if err := scalar(r, table, key+".", "scale", `"linear" or "log"`, &scale); err != nil {
		return nil, err
	}
	has := func(name string) bool { _, ok := table[name]; return ok }
	if !has("step") && !has("count") {
		step = 1
	}
	switch {
	case !has("from") || !has("to") || !(from < to):
		return nil, r.errorf(key, value, "a range goes from a number to a larger one")
	case has("step") && has("count"):
		return nil, r.errorf(key, value, "count and step say the same: give one of them")
	case scale != "linear" && scale != "log":
		return nil, r.errorf(key, value, `scale %q is not "linear" or "log"`, scale)
	case scale == "log" && (!has("count") || from <= 0):
		return nil, r.errorf(key, value, "a range on a log scale has a count, and begins above 0")
	case has("count") && (count < 2 || count > maxCells), !has("count") && !(step > 0 && (to-from)/step < maxCells):
		return nil, r.errorf(key, value, "a range has from 2 to %d values", maxCells)
	}
	var out []any
	if count == 0 {
		const slack = 1e-9 // 0.3 is not three times 0.1
		for k := 0.0; from+k*step <= to+slack*step; k++ {
			out = append(out, number(from+k*step, whole))
		}
		return out, nil
	}
	for k := range count {
		part := float64(k) / float64(count-1)
		x := from + part*(to-from)
		if scale == "log" {
			x = from * math.Pow(to/from, part)
		}
		if k == count-1 {
			x = to
		}
		out = append(out, number(x, whole && x == math.Round(x)))
	}
	return out, nil
}

// number is an integer if it is whole, and else has 12 digits, so that what is written is what was meant.
func number(x float64, whole bool) any {
	if whole {
		return int64(math.Round(x))
	}
	const digits = 12
	scale := math.Pow(10, digits-1-math.Floor(math.Log10(math.Abs(x))))
	if x == 0 || math.IsInf(scale, 0) {
		return x
	}
	return math.Round(x*scale) / scale
}
