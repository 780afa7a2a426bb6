package run

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
)

// frozenName is the array that lists, one per line, the variables that are not trainable. No path of a variable is
// like it: paths begin with a slash.
const frozenName = "#frozen"

// StoreArrays copies all variables of a store, by path, and which of them are trainable, for SetStore. The state of the
// store's own random generator is left out: a run names its random numbers by seed, stream and step, and never draws
// from it.
func StoreArrays(store *model.Store) (map[string]Array, error) {
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
	addFrozen(arrays, fixed)
	return arrays, nil
}

// addFrozen adds the list of the variables that are not trainable, if there are any.
func addFrozen(arrays map[string]Array, paths []string) {
	if len(paths) > 0 {
		slices.Sort(paths)
		list := []byte(strings.Join(paths, "\n"))
		arrays[frozenName] = Array{DType: "U8", Shape: []int{len(list)}, Data: list}
	}
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

// RestoreStore is the way back; rest is a pointer. The store must have its variables, as one has that em.New prepared:
// if the state has others, or misses some, or has other fields than rest, an error says which, and nothing is changed.
func RestoreStore(store *model.Store, s State, rest any) error {
	read := reflect.New(reflect.TypeOf(rest).Elem())
	if err := s.Rest(read.Interface()); err != nil {
		return err
	}
	if err := SetStore(store, s.Arrays); err != nil {
		return err
	}
	reflect.ValueOf(rest).Elem().Set(read.Elem())
	return nil
}

// SetStore sets all variables of a store. If arrays are not exactly those variables, in paths, shapes, dtypes and which
// are trainable, or not all numbers are finite, the error says where, and nothing is changed.
func SetStore(store *model.Store, arrays map[string]Array) error {
	if err := fits(store, arrays); err != nil {
		return err
	}
	if err := finite(arrays); err != nil {
		return err
	}
	values := make(map[string]*tensors.Tensor, len(arrays))
	for path := range variablesOf(arrays) {
		t, err := arrayTensor(arrays[path])
		if err != nil {
			return fmt.Errorf("set variable %s: %w", path, err)
		}
		values[path] = t
	}
	for path, value := range values {
		if err := store.GetVariable(path).SetValue(value); err != nil {
			return fmt.Errorf("set variable %s: %w", path, err)
		}
	}
	return nil
}

// Below returns the arrays of the variables below some scopes, for a store that has no others.
func Below(arrays map[string]Array, scopes ...string) map[string]Array {
	out := make(map[string]Array)
	isFrozen := frozen(arrays)
	var fixed []string
	for path := range variablesOf(arrays) {
		if slices.ContainsFunc(scopes, func(scope string) bool { return strings.HasPrefix(path, scope+"/") }) {
			out[path] = arrays[path]
			if isFrozen[path] {
				fixed = append(fixed, path)
			}
		}
	}
	addFrozen(out, fixed)
	return out
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
	if list, ok := arrays[frozenName]; ok {
		for path := range strings.SplitSeq(string(list.Data), "\n") {
			paths[path] = true
		}
	}
	return paths
}

// variablesOf yields the paths of the variables among arrays.
func variablesOf(arrays map[string]Array) iter.Seq[string] {
	return func(yield func(string) bool) {
		for path := range arrays {
			if path != frozenName && !yield(path) {
				return
			}
		}
	}
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
	if a.DType = dtypeName(t.DType()); a.DType == "" {
		return Array{}, fmt.Errorf("copy variable %s: dtype %s cannot be saved", v.Path(), t.DType())
	}
	if err := t.ConstBytes(func(data []byte) { a.Data = bytes.Clone(data) }); err != nil {
		return Array{}, fmt.Errorf("copy variable %s: %w", v.Path(), err)
	}
	return a, nil
}

// dtypeName is the name of a dtype in an Array; "" if it can have none.
func dtypeName(dtype dtypes.DType) string {
	for name, d := range dtypeOf {
		if d == dtype {
			return name
		}
	}
	return ""
}

func arrayTensor(a Array) (*tensors.Tensor, error) {
	if err := a.Check(); err != nil {
		return nil, err
	}
	t := tensors.FromShape(shapes.Make(dtypeOf[a.DType], a.Shape...))
	err := t.MutableBytes(func(data []byte) { copy(data, a.Data) })
	return t, err
}
