package run

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/badinput"
)

func addVariable(t *testing.T, store *model.Store, path string, value any, trainable bool) *model.Variable {
	t.Helper()
	v, err := store.CreateVariable(path, tensors.MustFromAnyValue(value))
	if err != nil {
		t.Fatal(err)
	}
	return v.SetTrainable(trainable)
}

func testStore(t *testing.T) *model.Store {
	t.Helper()
	store := model.NewStore()
	addVariable(t, store, "/p/w", [][]float32{{1, 2}, {3, -4.5}}, true)
	addVariable(t, store, "/p/f64", []float64{1e300}, true)
	addVariable(t, store, "/opt/step", int64(-3), false)
	addVariable(t, store, "/opt/i32", []int32{-1, 2}, false)
	addVariable(t, store, "/q/u32", []uint32{1 << 31}, true)
	addVariable(t, store, "/q/u64", []uint64{1 << 63}, true)
	addVariable(t, store, "/q/u8", []uint8{255}, true)
	addVariable(t, store, "/q/mask", []bool{true, false}, false)
	if err := store.SetRNGStateFromSeed(3); err != nil {
		t.Fatal(err)
	}
	return store
}

// blankStore has the variables of testStore at zero.
func blankStore(t *testing.T) *model.Store {
	t.Helper()
	store := model.NewStore()
	for v := range testStore(t).IterVariables() {
		if v.Name() != model.RNGStateVariableName {
			addVariable(t, store, v.Path(), tensors.FromShape(v.Shape()), v.Trainable)
		}
	}
	return store
}

func storeArrays(t *testing.T, store *model.Store) map[string]Array {
	t.Helper()
	arrays, err := StoreArrays(store)
	if err != nil {
		t.Fatal(err)
	}
	return arrays
}

func TestStoreRoundTrip(t *testing.T) {
	store := testStore(t)
	arrays := storeArrays(t, store)
	if d := diff(Array{"F32", []int{2, 2}, []byte("\x00\x00\x80?\x00\x00\x00@\x00\x00@@\x00\x00\x90\xc0")}, arrays["/p/w"]); d != "" {
		t.Error(d)
	}
	made := blankStore(t)
	if err := SetStore(made, arrays); err != nil {
		t.Fatal(err)
	}
	for v := range store.IterVariables() {
		if v.Name() == model.RNGStateVariableName {
			continue
		}
		got := made.GetVariable(v.Path())
		if !got.MustValue().Equal(v.MustValue()) || got.Trainable != v.Trainable {
			t.Errorf("%s is %v, trainable %t", v.Path(), got.MustValue(), got.Trainable)
		}
	}
	if d := diff(arrays, storeArrays(t, made)); d != "" {
		t.Error(d)
	}
}

// A variable that has no value yet gets that of the array.
func TestSetStoreWithoutValue(t *testing.T) {
	store := model.NewStore()
	lazy := store.VariableWithShape("/f64", shapes.Make(dtypes.Float64, 1), nil)
	other := model.NewStore()
	addVariable(t, other, "/f64", []float64{1e300}, true)
	if err := SetStore(store, storeArrays(t, other)); err != nil {
		t.Fatal(err)
	}
	if got := tensors.MustCopyFlatData[float64](lazy.MustValue()); got[0] != 1e300 {
		t.Errorf("a variable without a value became %v", got)
	}
}

// counted is what the tests remember besides variables.
type counted struct {
	Updates int
	Inner   struct{ Average float64 }
	Words   []string `json:"words"`
	Maybe   *int     `json:",omitempty"`
}

func someCounts() counted {
	return counted{Updates: 7, Inner: struct{ Average float64 }{2.5}, Words: []string{"a<b", "c"}}
}

// A state has the variables and what else there is.
func TestStoreState(t *testing.T) {
	state, err := StoreState(testStore(t), someCounts())
	if err != nil {
		t.Fatal(err)
	}
	again, got := blankStore(t), counted{Words: []string{"old", "older", "oldest"}}
	if err := RestoreStore(again, state, &got); err != nil {
		t.Fatal(err)
	}
	if d := diff(someCounts(), got); d != "" {
		t.Error(d)
	}
	if other, err := StoreState(again, got); err != nil || StateHash(other) != StateHash(state) {
		t.Error("the state is another one", err)
	}
}

// A state that is not exactly that of a store changes nothing, and one line says what is wrong.
func TestRestoreStoreRefuses(t *testing.T) {
	float := func(values ...float32) Array {
		var data []byte
		for _, v := range values {
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
		}
		return Array{DType: "F32", Shape: []int{2, 2}, Data: data}
	}
	nan, inf := float32(math.NaN()), float32(math.Inf(-1))
	extra := func(text string) func(*State) { return func(s *State) { s.Extra = json.RawMessage(text) } }
	const fit = "the checkpoint does not fit its configuration: "
	const counters = "the counters of the checkpoint "
	for name, c := range map[string]struct {
		change func(s *State)
		want   string
	}{
		"missing": {func(s *State) { delete(s.Arrays, "/p/w") }, fit + "missing /p/w: use"},
		"renamed": {func(s *State) { s.Arrays["/p/v"] = s.Arrays["/p/w"]; delete(s.Arrays, "/p/w") },
			fit + "missing /p/w; unknown /p/v: use"},
		"added": {func(s *State) { s.Arrays["/p/w/more"] = s.Arrays["/p/w"] }, fit + "unknown /p/w/more: use"},
		"reshaped": {func(s *State) { s.Arrays["/p/w"] = Array{"F32", []int{4}, s.Arrays["/p/w"].Data} },
			fit + "/p/w is F32 [4] in the checkpoint and F32 [2 2] by the configuration: use"},
		"dtype": {func(s *State) { s.Arrays["/p/w"] = Array{"I32", []int{2, 2}, s.Arrays["/p/w"].Data} },
			fit + "/p/w is I32 [2 2] in the checkpoint and F32 [2 2] by the configuration: use"},
		"trainable": {func(s *State) { delete(s.Arrays, frozenName) },
			fit + "/opt/i32 is trainable in the checkpoint and fixed by the configuration, /opt/step"},
		"fixed": {func(s *State) { s.Arrays[frozenName] = Array{"U8", []int{9}, []byte("/p/w\n/p/x")} },
			fit + "unknown /p/x; /opt/i32 is"},
		"empty": {func(s *State) { s.Arrays = nil },
			fit + "missing /opt/i32, /opt/step, /p/f64, /p/w, /q/mask and 3 more: use"},
		"half an array": {func(s *State) { s.Arrays["/p/w"] = Array{"F32", []int{2, 2}, []byte{1}} }, "set variable /p/w: "},
		"not finite": {func(s *State) { s.Arrays["/p/w"] = float(1, nan, 2, inf) },
			"the checkpoint is not finite: /p/w has 2 numbers of 4 that are not: remove"},
		"more not finite": {func(s *State) {
			s.Arrays["/p/w"] = float(1, nan, 2, 3)
			s.Arrays["/p/f64"] = Array{"F64", []int{1}, binary.LittleEndian.AppendUint64(nil, math.Float64bits(math.Inf(1)))}
		}, "the checkpoint is not finite: /p/f64 has 1 numbers of 1 that are not, and 1 more variables have such: remove"},
		"counters": {extra(`[]`), counters + "cannot be read: "},
		"none":     {extra(`null`), counters + "do not fit its configuration: missing all: use"},
		"counter renamed": {extra(`{"Update":7,"Inner":{"Average":2.5},"words":["a"]}`),
			counters + "do not fit its configuration: missing Updates; unknown Update: use"},
		"spelled": {extra(`{"updates":7,"Inner":{"average":2.5},"words":["a"]}`),
			counters + "do not fit its configuration: missing Inner.Average, Updates; unknown Inner.average, updates: use"},
		"counter missing": {extra(`{"Updates":7,"Inner":{},"words":["a"]}`),
			counters + "do not fit its configuration: missing Inner.Average: use"},
		"counter null": {extra(`{"Updates":null,"Inner":{"Average":1},"words":["a"]}`),
			counters + "do not fit its configuration: missing Updates: use"},
		"counter added": {extra(`{"Updates":7,"Inner":{"Average":1},"words":["a"],"Maybe":3,"x":0}`),
			counters + "do not fit its configuration: unknown x: use"},
		"negative": {extra(`{"Updates":-7.5,"Inner":{"Average":1},"words":["a"]}`), counters + "cannot be read: "},
	} {
		state, err := StoreState(testStore(t), someCounts())
		if err != nil {
			t.Fatal(err)
		}
		c.change(&state)
		store, rest := blankStore(t), counted{Updates: 1}
		before := storeArrays(t, store)
		err = RestoreStore(store, state, &rest)
		var input *badinput.Error
		if err == nil || !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "\n") ||
			!errors.As(err, &input) && name != "half an array" {
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
		if d := diff(before, storeArrays(t, store)) + diff(counted{Updates: 1}, rest); d != "" {
			t.Errorf("%s: this was changed: %s", name, d)
		}
	}
}

// A part of a state is compared as strictly as the whole.
func TestBelow(t *testing.T) {
	arrays := storeArrays(t, testStore(t))
	part := Below(arrays, "/q", "/op", "/opt/ste")
	if d := diff([]string{frozenName, "/q/mask", "/q/u32", "/q/u64", "/q/u8"}, slices.Sorted(maps.Keys(part))); d != "" {
		t.Error(d)
	}
	store := model.NewStore()
	for path := range part {
		if v := testStore(t).GetVariable(path); path != frozenName {
			addVariable(t, store, path, v.MustValue(), v.Trainable)
		}
	}
	if err := SetStore(store, part); err != nil {
		t.Error(err)
	}
	if d := diff(part, storeArrays(t, store)); d != "" {
		t.Error(d)
	}
	if none := Below(arrays, "/p"); len(none) != 2 {
		t.Errorf("below /p there are %v", none)
	}
}

func TestStoreArraysRefuses(t *testing.T) {
	store := model.NewStore()
	store.VariableWithShape("/lazy", shapes.Make(dtypes.Float32, 2), nil)
	if _, err := StoreArrays(store); err == nil || !strings.Contains(err.Error(), "/lazy: it is not initialised") {
		t.Errorf("got %v", err)
	}
	store = model.NewStore()
	addVariable(t, store, "/c", complex64(1), true)
	if _, err := StoreArrays(store); err == nil || !strings.Contains(err.Error(), "/c: dtype Complex64 cannot be saved") {
		t.Errorf("got %v", err)
	}
}

func TestParameters(t *testing.T) {
	arrays, err := Parameters(testStore(t))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"/p/f64", "/p/w", "/q/u32", "/q/u64", "/q/u8"}
	if d := diff(want, slices.Sorted(maps.Keys(arrays))); d != "" {
		t.Error(d)
	}
}
