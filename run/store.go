package run

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"github.com/gfnem/gfnem/internal/memory"
)

// frozenName is the array that lists, one per line, the variables that are not trainable. No path of a variable is
// like it: paths begin with a slash.
const frozenName = "#frozen"

// StoreArrays copies all variables of a store, by path, and which of them are trainable, so that SetStore can make
// them again. The state of the store's own random generator is left out: a run names its random numbers by seed,
// stream and step, and never draws from it.
func StoreArrays(store *model.Store) (map[string]Array, error) {
	if err := memory.Need("a copy of all variables", int(store.ByteSize())); err != nil {
		return nil, err
	}
	arrays := make(map[string]Array)
	var fixed []string
	for v := range store.IterVariables() {
		if v.Name() == model.RNGStateVariableName {
			continue
		}
		a, err := variableArray(v)
		if err != nil {
			return nil, err
		}
		arrays[v.Path()] = a
		if !v.Trainable {
			fixed = append(fixed, v.Path())
		}
	}
	if len(fixed) > 0 {
		slices.Sort(fixed)
		list := []byte(strings.Join(fixed, "\n"))
		arrays[frozenName] = Array{DType: "U8", Shape: []int{len(list)}, Data: list}
	}
	return arrays, nil
}

// StoreState returns the state of a job that is all variables of a store and, as JSON, what else there is to remember.
func StoreState(store *model.Store, rest any) (State, error) {
	arrays, err := StoreArrays(store)
	if err != nil {
		return State{}, err
	}
	extra, err := json.Marshal(rest)
	return State{Arrays: arrays, Extra: extra}, err
}

// RestoreStore is the way back; rest is a pointer.
func RestoreStore(store *model.Store, s State, rest any) error {
	if err := json.Unmarshal(s.Extra, rest); err != nil {
		return fmt.Errorf("counters: %w", err)
	}
	return SetStore(store, s.Arrays)
}

// Parameters copies the trainable variables of a store, by path, for Export.
func Parameters(store *model.Store) (map[string]Array, error) {
	arrays, err := StoreArrays(store)
	if err != nil {
		return nil, err
	}
	isFrozen := frozen(arrays)
	maps.DeleteFunc(arrays, func(path string, _ Array) bool { return path == frozenName || isFrozen[path] })
	return arrays, nil
}

// frozen returns the paths of the variables that are not trainable.
func frozen(arrays map[string]Array) map[string]bool {
	paths := make(map[string]bool)
	for path := range strings.SplitSeq(string(arrays[frozenName].Data), "\n") {
		paths[path] = true
	}
	return paths
}

func variableArray(v *model.Variable) (Array, error) {
	if !v.HasValue() {
		return Array{}, fmt.Errorf("copy variable %s: it is not initialised", v.Path())
	}
	t, err := v.Value()
	if err != nil {
		return Array{}, fmt.Errorf("copy variable %s: %w", v.Path(), err)
	}
	a := Array{Shape: slices.Clone(t.Shape().Dimensions)}
	for name, dtype := range dtypeOf {
		if dtype == t.DType() {
			a.DType = name
		}
	}
	if a.DType == "" {
		return Array{}, fmt.Errorf("copy variable %s: dtype %s cannot be saved", v.Path(), t.DType())
	}
	if err := t.ConstBytes(func(data []byte) { a.Data = bytes.Clone(data) }); err != nil {
		return Array{}, fmt.Errorf("copy variable %s: %w", v.Path(), err)
	}
	return a, nil
}

// SetStore sets variables of a store by path and makes those that are missing. A variable keeps its trainable flag,
// one that is made gets the flag it was saved with, and one that arrays does not name keeps its value. If an array
// does not fit its variable, SetStore changes nothing.
func SetStore(store *model.Store, arrays map[string]Array) error {
	isFrozen := frozen(arrays)
	values := make(map[string]*tensors.Tensor, len(arrays))
	paths := slices.Sorted(maps.Keys(arrays))
	paths = slices.DeleteFunc(paths, func(path string) bool { return path == frozenName })
	for _, path := range paths {
		t, err := arrayTensor(arrays[path])
		if err != nil {
			return fmt.Errorf("set variable %s: %w", path, err)
		}
		if v := store.GetVariable(path); v != nil && !v.Shape().Equal(t.Shape()) {
			return fmt.Errorf("set variable %s: it is %s, the array is %s", path, v.Shape(), t.Shape())
		}
		values[path] = t
	}
	for _, path := range paths {
		if v := store.GetVariable(path); v != nil {
			if err := v.SetValue(values[path]); err != nil {
				return fmt.Errorf("set variable %s: %w", path, err)
			}
			continue
		}
		v, err := store.CreateVariable(path, values[path])
		if err != nil {
			return fmt.Errorf("set variable %s: %w", path, err)
		}
		v.SetTrainable(!isFrozen[path])
	}
	return nil
}

func arrayTensor(a Array) (*tensors.Tensor, error) {
	if err := a.Check(); err != nil {
		return nil, err
	}
	if err := memory.Need("its tensor", len(a.Data)); err != nil {
		return nil, err
	}
	t := tensors.FromShape(shapes.Make(dtypeOf[a.DType], a.Shape...))
	err := t.MutableBytes(func(data []byte) { copy(data, a.Data) })
	return t, err
}
