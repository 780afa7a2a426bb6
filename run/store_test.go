package run

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
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
	made := model.NewStore()
	if err := SetStore(made, arrays); err != nil {
		t.Fatal(err)
	}
	for v := range store.IterVariables() {
		if v.Name() == model.RNGStateVariableName {
			continue
		}
		got := made.GetVariable(v.Path())
		if got == nil {
			t.Errorf("%s was not made", v.Path())
			continue
		}
		if !got.MustValue().Equal(v.MustValue()) || got.Trainable != v.Trainable {
			t.Errorf("%s is %v, trainable %t", v.Path(), got.MustValue(), got.Trainable)
		}
	}
	if d := diff(arrays, storeArrays(t, made)); d != "" {
		t.Error(d)
	}
}

func TestSetStoreOnExisting(t *testing.T) {
	arrays := storeArrays(t, testStore(t))
	store := model.NewStore()
	w := addVariable(t, store, "/p/w", [][]float32{{0, 0}, {0, 0}}, false)
	other := addVariable(t, store, "/other", float32(9), true)
	lazy := store.VariableWithShape("/p/f64", shapes.Make(dtypes.Float64, 1), nil)
	if err := SetStore(store, arrays); err != nil {
		t.Fatal(err)
	}
	if got := tensors.MustCopyFlatData[float32](w.MustValue()); !slices.Equal(got, []float32{1, 2, 3, -4.5}) || w.Trainable {
		t.Errorf("w is %v, trainable %t", got, w.Trainable)
	}
	if got := tensors.ToScalar[float32](other.MustValue()); got != 9 {
		t.Errorf("a variable that was not saved became %v", got)
	}
	if got := tensors.MustCopyFlatData[float64](lazy.MustValue()); got[0] != 1e300 {
		t.Errorf("a variable without a value became %v", got)
	}
}

// A state has the variables and what else there is, and one without counters is refused before anything is set.
func TestStoreState(t *testing.T) {
	type rest struct{ Updates int }
	store := testStore(t)
	state, err := StoreState(store, rest{7})
	if err != nil {
		t.Fatal(err)
	}
	again, got := model.NewStore(), rest{}
	if err := RestoreStore(again, state, &got); err != nil || got.Updates != 7 {
		t.Fatal(got, err)
	}
	if other, err := StoreState(again, got); err != nil || StateHash(other) != StateHash(state) {
		t.Error("the state is another one", err)
	}
	state.Extra = []byte("[]")
	empty := model.NewStore()
	if err := RestoreStore(empty, state, &got); err == nil || empty.NumVariables() != 0 {
		t.Errorf("error %v, %d variables", err, empty.NumVariables())
	}
}

func TestSetStoreRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		value any
		want  string
	}{
		"shape": {[]float32{1, 2, 3, 4}, "set variable /p/w: it is (Float32)[4], the array is (Float32)[2, 2]"},
		"dtype": {[][]float64{{1, 2}, {3, 4}}, "set variable /p/w: it is (Float64)[2, 2], the array is (Float32)[2, 2]"},
	} {
		t.Run(name, func(t *testing.T) {
			store := model.NewStore()
			addVariable(t, store, "/p/w", c.value, true)
			err := SetStore(store, storeArrays(t, testStore(t)))
			if err == nil || err.Error() != c.want {
				t.Errorf("got %v, want %s", err, c.want)
			}
			if n := store.NumVariables(); n != 1 {
				t.Errorf("a failed SetStore made %d variables", n-1)
			}
		})
	}
	if err := SetStore(model.NewStore(), map[string]Array{"/w": {"F32", []int{2}, []byte{1}}}); err == nil {
		t.Error("set a variable from half an array")
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
