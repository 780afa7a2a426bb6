package blame

import (
	"errors"
	"fmt"
	"path"
	"reflect"
	"runtime"
	"strings"
)

// Func is a function of a user, to be named when what it returned is wrong.
type Func struct {
	name string
	of   any    // the function itself, or what has the method of this name
	part string // of what it returns
}

// Field is a function that a field of a given name holds.
func Field(f any, name string) Func { return Func{name: name, of: f} }

// Method is that of a value.
func Method(of any, name string) Func { return Func{name: name, of: of} }

// Argument is no function, but what a user gave to one of ours.
func Argument(name string) Func { return Func{name: name} }

// Part is a part of what the function returns.
func (f Func) Part(name string) Func {
	f.part = "." + name
	return f
}

// Errorf is a mistake in the function, whose name comes before the text, and before that its place.
func (f Func) Errorf(format string, args ...any) error {
	v := reflect.ValueOf(f.of)
	at, name := "", f.name
	if v.Kind() != reflect.Func {
		at = ofMethod(v, f.name)
	} else if at = declared(v); at == "" && !v.IsNil() { // a bound method, which has a name alone
		name += " (" + strings.TrimSuffix(path.Base(runtime.FuncForPC(v.Pointer()).Name()), "-fm") + ")"
	}
	err := fmt.Errorf(name+f.part+" "+format, args...)
	if at == "" {
		return Caller(err)
	}
	return &Error{at, err}
}

// Returned is a mistake in what the function returned. It has the place of the function if it has none of its own, or
// only that of a caller of ours, who did not make it.
func (f Func) Returned(err error) error {
	var found, here *Error
	if !errors.As(err, &found) {
		return f.Errorf("returns what cannot be used: %w", err)
	}
	if errors.As(Caller(found.Err), &here) && here.At == found.At {
		return f.Errorf("returns what cannot be used: %w", found.Err)
	}
	return err
}

// Panicf stops the building of a graph.
func (f Func) Panicf(format string, args ...any) { panic(f.Errorf(format, args...)) }

// declared is where a function begins; what the compiler made begins nowhere.
func declared(f reflect.Value) string {
	if f.IsNil() {
		return ""
	}
	fn := runtime.FuncForPC(f.Pointer())
	file, line := fn.FileLine(fn.Entry())
	if file == generated {
		return ""
	}
	return place(file, line)
}

// ofMethod is where a method begins, of the value itself or of what it embeds.
func ofMethod(v reflect.Value, name string) string {
	for v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	if !v.IsValid() {
		return ""
	}
	m, ok := v.Type().MethodByName(name)
	if !ok {
		return ""
	}
	if at := declared(m.Func); at != "" {
		return at
	}
	if v.Kind() == reflect.Pointer {
		return ofMethod(v.Elem(), name)
	}
	for i := range v.NumField() { // only structs embed
		if v.Type().Field(i).Anonymous {
			if at := ofMethod(v.Field(i), name); at != "" {
				return at
			}
		}
	}
	return ""
}
