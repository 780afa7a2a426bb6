package run

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/internal/self"
)

// differences between a checkpoint and what a configuration makes.
type differences struct{ missing, unknown, changed []string }

// most is the number of differences of a kind that are listed.
const most = 5

// err describes them in one line, of the checkpoint or a part of it; nil if there are none.
func (d differences) err(part string) error {
	var parts []string
	add := func(word string, names []string) {
		if len(names) == 0 {
			return
		}
		slices.Sort(names)
		text := word + strings.Join(names[:min(len(names), most)], ", ")
		if more := len(names) - most; more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		parts = append(parts, text)
	}
	add("missing ", d.missing)
	add("unknown ", d.unknown)
	add("", d.changed)
	if parts == nil {
		return nil
	}
	return badinput.Errorf("%s not fit its configuration: %s: use the configuration and the version of %s that made it",
		part, strings.Join(parts, "; "), self.Name())
}

// fits compares arrays with the variables of a store.
func fits(store *model.Store, arrays map[string]Array) error {
	var d differences
	kinds := map[bool]string{true: "trainable", false: "fixed"}
	isFrozen := frozen(arrays)
	known := map[string]bool{}
	for v := range store.IterVariables() {
		path := v.Path()
		known[path] = true
		a, ok := arrays[path]
		if !ok {
			if v.Name() != model.RNGStateVariableName {
				d.missing = append(d.missing, path)
			}
			continue
		}
		have := fmt.Sprint(a.DType, " ", a.Shape)
		want := fmt.Sprint(cmp.Or(dtypeName(v.DType()), v.DType().String()), " ", v.Shape().Dimensions)
		if have == want {
			have, want = kinds[!isFrozen[path]], kinds[v.Trainable]
		}
		if have != want {
			d.changed = append(d.changed, path+" is "+have+" in the checkpoint and "+want+" by the configuration")
		}
	}
	for path := range variablesOf(arrays) {
		if !known[path] {
			d.unknown = append(d.unknown, path)
		}
	}
	for path := range isFrozen {
		if _, ok := arrays[path]; !ok && !known[path] {
			d.unknown = append(d.unknown, path)
		}
	}
	if list, ok := arrays[frozenName]; ok && (list.DType != "U8" || !slices.Equal(list.Shape, []int{len(list.Data)})) {
		d.changed = append(d.changed, fmt.Sprintf("%s is %s %v in the checkpoint", frozenName, list.DType, list.Shape))
	}
	return d.err("the checkpoint does")
}

// finite looks for numbers that are not.
func finite(arrays map[string]Array) error {
	var bad []string
	count := map[string]int{}
	for path := range variablesOf(arrays) {
		if count[path] = arrays[path].notFinite(); count[path] > 0 {
			bad = append(bad, path)
		}
	}
	if len(bad) == 0 {
		return nil
	}
	slices.Sort(bad)
	more := ""
	if len(bad) > 1 {
		more = fmt.Sprintf(", and %d more variables have such", len(bad)-1)
	}
	return badinput.Errorf("the checkpoint is not finite: %s has %d numbers of %d that are not%s: "+
		"remove it to go on from an older one, or train again", bad[0], count[bad[0]], arrays[bad[0]].size(), more)
}

// size is the number of elements.
func (a Array) size() int {
	n := 1
	for _, d := range a.Shape {
		n *= d
	}
	return n
}

// notFinite counts NaN and infinities.
func (a Array) notFinite() (n int) {
	count := func(x float64) {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			n++
		}
	}
	switch a.DType {
	case "F32":
		for at := 0; at+4 <= len(a.Data); at += 4 {
			count(float64(math.Float32frombits(binary.LittleEndian.Uint32(a.Data[at:]))))
		}
	case "F64":
		for at := 0; at+8 <= len(a.Data); at += 8 {
			count(math.Float64frombits(binary.LittleEndian.Uint64(a.Data[at:])))
		}
	}
	return n
}

// Rest reads what a state has besides variables; rest is a pointer. Fields that one of both does not have are an error.
func (s State) Rest(rest any) error {
	if err := json.Unmarshal(s.Extra, rest); err != nil {
		return badinput.Errorf("the counters of the checkpoint cannot be read: %w", err)
	}
	// What is read must be written as the same again.
	again, err := json.Marshal(rest)
	if err != nil {
		return fmt.Errorf("counters: %w", err)
	}
	var d differences
	d.compare("all", tree(again), tree(s.Extra))
	return d.err("the counters of the checkpoint do")
}

// tree is JSON that is known to be well-formed.
func tree(text []byte) (out any) {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	if err := dec.Decode(&out); err != nil {
		panic(err)
	}
	return out
}

// compare looks for fields of JSON that are wanted or there alone.
func (d *differences) compare(path string, want, have any) {
	switch want := want.(type) {
	case map[string]any:
		have, ok := have.(map[string]any)
		if !ok {
			d.missing = append(d.missing, path)
			return
		}
		join := func(key string) string { return strings.TrimPrefix(path+"."+key, "all.") }
		for key, value := range want {
			if other, ok := have[key]; ok {
				d.compare(join(key), value, other)
			} else {
				d.missing = append(d.missing, join(key))
			}
		}
		for key := range maps.Keys(have) {
			if _, ok := want[key]; !ok {
				d.unknown = append(d.unknown, join(key))
			}
		}
	case []any:
		have, ok := have.([]any)
		if !ok || len(have) != len(want) {
			d.missing = append(d.missing, path)
			return
		}
		for i, value := range want {
			d.compare(fmt.Sprintf("%s[%d]", path, i), value, have[i])
		}
	default:
		if have == nil && want != nil {
			d.missing = append(d.missing, path)
		}
	}
}
