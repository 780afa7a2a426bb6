package runtest

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/gfnem/gfnem/run"
)

// Damaged returns states that are like one of a job and yet none of its own, by what is wrong with them: arrays that
// are missing, renamed, added, of another shape or dtype, or not finite, and counters that are missing, renamed or
// added. Of many arrays it takes some.
func Damaged(s run.State) map[string]run.State {
	out := map[string]run.State{}
	arrays := func(what string, change func(a map[string]run.Array)) {
		other := run.State{Step: s.Step, Arrays: maps.Clone(s.Arrays), Extra: s.Extra}
		change(other.Arrays)
		out[what] = other
	}
	for _, name := range some(slices.Sorted(maps.Keys(s.Arrays))) {
		old := s.Arrays[name]
		arrays(name+" missing", func(a map[string]run.Array) { delete(a, name) })
		arrays(name+" renamed", func(a map[string]run.Array) { a[name+"_"] = old; delete(a, name) })
		arrays(name+" twice", func(a map[string]run.Array) { a[name+"_"] = old })
		becomes := func(what, dtype string, shape []int, data []byte) {
			arrays(name+" "+what, func(a map[string]run.Array) { a[name] = run.Array{DType: dtype, Shape: shape, Data: data} })
		}
		becomes("reshaped", old.DType, append(slices.Clone(old.Shape), 1), old.Data)
		if dtype, ok := twins[old.DType]; ok {
			becomes("of another dtype", dtype, old.Shape, old.Data)
		}
		for what, x := range map[string]float64{"NaN": math.NaN(), "infinite": math.Inf(-1)} {
			if data, ok := withLast(old, x); ok {
				becomes(what, old.DType, old.Shape, data)
			}
		}
	}
	var extra any
	if json.Unmarshal(s.Extra, &extra) != nil {
		return out
	}
	fields(extra, "", func(what string) {
		text, err := json.Marshal(extra)
		if err != nil {
			panic(err)
		}
		out[what] = run.State{Step: s.Step, Arrays: s.Arrays, Extra: text}
	})
	return out
}

// twins are dtypes of the same size.
var twins = map[string]string{
	"F32": "I32", "I32": "F32", "U32": "I32", "F64": "I64", "I64": "U64", "U64": "I64", "BOOL": "U8",
}

// some takes at most eight names, the first and the last among them.
func some(names []string) []string {
	const most = 8
	if len(names) <= most {
		return names
	}
	out := make([]string, most)
	for i := range out {
		out[i] = names[i*(len(names)-1)/(most-1)]
	}
	return out
}

// withLast is the data of an array of floats with another last number.
func withLast(a run.Array, x float64) ([]byte, bool) {
	data := bytes.Clone(a.Data)
	switch {
	case len(data) == 0:
	case a.DType == "F32":
		binary.LittleEndian.PutUint32(data[len(data)-4:], math.Float32bits(float32(x)))
		return data, true
	case a.DType == "F64":
		binary.LittleEndian.PutUint64(data[len(data)-8:], math.Float64bits(x))
		return data, true
	}
	return nil, false
}

// fields changes the objects in JSON, one field at a time, and changes it back. Numbers too large for a float64 are not
// kept, but all counters are small.
func fields(v any, path string, changed func(what string)) {
	object, ok := v.(map[string]any)
	if !ok {
		return
	}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		at, value := path+"."+key, object[key]
		delete(object, key)
		changed(fmt.Sprintf("counter %s missing", at))
		object[key+"_"] = value
		changed(fmt.Sprintf("counter %s renamed", at))
		object[key] = value
		changed(fmt.Sprintf("counter %s twice", at))
		delete(object, key+"_")
		fields(value, at, changed)
	}
}
