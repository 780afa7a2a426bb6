package program

import (
	"fmt"
	"math"
	"reflect"
	"strings"

	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
)

var (
	nodeType   = reflect.TypeFor[*Node]()
	graphType  = reflect.TypeFor[*Graph]()
	tensorType = reflect.TypeFor[*tensors.Tensor]()
	numberType = reflect.TypeFor[float32]()
	rowType    = reflect.TypeFor[[]float32]()
)

// kind says how two fields that correspond are treated.
type kind int

const (
	constant kind = iota // of the graph
	leaf                 // one node
	list                 // of nodes
	part                 // a struct of more fields
	option               // a part that may be left out
	graph                // itself, which is on the nodes' side alone
)

func kindOf(a, b reflect.Type) kind {
	switch {
	case a == nodeType || b == nodeType:
		return leaf
	case isList(a) || isList(b):
		return list
	case a.Kind() == reflect.Struct:
		return part
	case a.Kind() == reflect.Pointer && a.Elem().Kind() == reflect.Struct:
		return option
	}
	return constant
}

func isList(t reflect.Type) bool { return t.Kind() == reflect.Slice && t.Elem() == nodeType }

// isScalar reports whether results are read as Go values of a type.
func isScalar(host reflect.Type) bool {
	return host.Kind() == reflect.Float64 || host.Kind() == reflect.Bool || host.Kind() == reflect.Int
}

// match checks that the types of both sides correspond.
func match(nodes, host reflect.Type, path string, result bool) error {
	good := false
	switch kindOf(nodes, host) {
	case leaf:
		good = nodes == nodeType && (!result || host == tensorType || isScalar(host))
	case list:
		good = isList(nodes) && host.Kind() == reflect.Slice && host.Elem() == tensorType
	case constant:
		k := nodes.Kind()
		good = nodes == host && (k == reflect.Int || k == reflect.Bool || k == reflect.String)
	case option:
		if host.Kind() == reflect.Pointer {
			return match(nodes.Elem(), host.Elem(), path, result)
		}
	case part:
		var fields []reflect.StructField
		for i := range nodes.NumField() {
			if f := nodes.Field(i); f.Type != graphType {
				fields = append(fields, f)
			}
		}
		if good = host.Kind() == reflect.Struct && host.NumField() == len(fields); !good {
			break
		}
		for i, a := range fields {
			b := host.Field(i)
			if !a.IsExported() || !b.IsExported() || a.Name != b.Name && !(a.Anonymous && b.Anonymous) {
				return fmt.Errorf("%s: field %s of %s does not go with %s of %s", path, a.Name, nodes, b.Name, host)
			}
			if err := match(a.Type, b.Type, path+"."+a.Name, result); err != nil {
				return err
			}
		}
	}
	if !good {
		return fmt.Errorf("%s: %s does not go with %s", path, nodes, host)
	}
	return nil
}

// walk goes from one side, or from a struct of nodes, to what corresponds, which it sets as far as parts, lists and
// constants go. It calls f for everything but parts, in order; for a graph, from is the part that it is to be in.
func walk(from, to reflect.Value, f func(k kind, from, to reflect.Value)) {
	k := kindOf(from.Type(), to.Type())
	if k != part {
		f(k, from, to)
	}
	switch {
	case k == part:
		i := 0
		for j := range to.NumField() {
			if to.Field(j).Type() == graphType {
				f(graph, from, to.Field(j))
				continue
			}
			for from.Field(i).Type() == graphType {
				i++
			}
			walk(from.Field(i), to.Field(j), f)
			i++
		}
	case k == list && !from.IsNil():
		to.Set(reflect.MakeSlice(to.Type(), from.Len(), from.Len()))
		for i := range from.Len() {
			walk(from.Index(i), to.Index(i), f)
		}
	case k == option && !from.IsNil():
		fresh := reflect.New(to.Type().Elem())
		if from.Type() == to.Type() {
			fresh.Elem().Set(from.Elem())
		}
		to.Set(fresh)
		walk(from.Elem(), to.Elem(), f)
	case k == constant && to.CanSet():
		to.Set(from)
	}
}

// arguments are what a program is called with, and what its graph depends on besides their shapes.
type arguments struct {
	key     strings.Builder
	tensors []any
	numbers []float32
}

// list returns all arguments of a call, the numbers last.
func (a *arguments) list() []any {
	if len(a.numbers) == 0 {
		return a.tensors
	}
	return append(a.tensors, a.numbers)
}

// add takes what walk meets on its way from the host.
func (a *arguments) add(k kind, host, _ reflect.Value) {
	switch {
	case k == graph:
	case k == constant:
		fmt.Fprintf(&a.key, "%q", fmt.Sprint(host.Interface()))
	case isNil(host):
		a.key.WriteByte('-')
	case k == list:
		fmt.Fprintf(&a.key, "[%d]", host.Len())
	case k == option:
		a.key.WriteByte('+')
	case host.Type() == numberType:
		a.numbers = append(a.numbers, float32(host.Float()))
	case host.Type() == rowType:
		row := host.Interface().([]float32)
		fmt.Fprintf(&a.key, "(%d)", len(row))
		a.numbers = append(a.numbers, row...)
	default:
		a.key.WriteByte('+')
		if host.Kind() == reflect.Pointer && host.Type() != tensorType {
			host = host.Elem() // a value that may be left out
		}
		a.tensors = append(a.tensors, host.Interface())
	}
}

func isNil(v reflect.Value) bool {
	k := v.Kind()
	return (k == reflect.Pointer || k == reflect.Slice || k == reflect.Interface) && v.IsNil()
}

// parameters are the inputs of a graph, to be given names again in the order of arguments.
type parameters struct {
	*Graph
	tensors []*Node
	numbers *Node
	used    int // of numbers
}

// fill sets what walk meets on its way from the host.
func (p *parameters) fill(k kind, host, to reflect.Value) {
	switch {
	case k == graph:
		to.Set(reflect.ValueOf(p.Graph))
	case k != leaf || isNil(host):
	case host.Type() == numberType:
		to.Set(reflect.ValueOf(Squeeze(p.row(1), 0)))
	case host.Type() == rowType:
		to.Set(reflect.ValueOf(p.row(host.Len())))
	default:
		to.Set(reflect.ValueOf(p.tensors[0]))
		p.tensors = p.tensors[1:]
	}
}

// row takes the next numbers.
func (p *parameters) row(n int) *Node {
	from := p.used
	p.used += n
	return SliceAxis(p.numbers, 0, AxisRange(from, p.used))
}

// outputs lists what a graph returns: the nodes whose values stay tensors, and, last, one of all numbers that the host
// reads.
func outputs(nodes reflect.Value, host reflect.Type) (all []*Node, numbers int) {
	var scalars []*Node
	walk(nodes, reflect.New(host).Elem(), func(k kind, n, to reflect.Value) {
		switch {
		case k != leaf || n.IsNil():
		case isScalar(to.Type()):
			scalars = append(scalars, Reshape(ConvertDType(n.Interface().(*Node), dtypes.Float64), 1))
		default:
			all = append(all, n.Interface().(*Node))
		}
	})
	if len(scalars) > 0 {
		all = append(all, Concatenate(scalars, 0))
	}
	return all, len(scalars)
}

// unpack is the other way round: it sets the host's side.
func unpack(nodes, host reflect.Value, from []*tensors.Tensor, numbers []float64) {
	walk(nodes, host, func(k kind, n, to reflect.Value) {
		switch {
		case k != leaf:
		case n.IsNil():
			if to.Kind() == reflect.Float64 {
				to.SetFloat(math.NaN())
			}
		case !isScalar(to.Type()):
			to.Set(reflect.ValueOf(from[0]))
			from = from[1:]
		default:
			switch v := numbers[0]; to.Kind() {
			case reflect.Float64:
				to.SetFloat(v)
			case reflect.Int:
				to.SetInt(int64(v))
			case reflect.Bool:
				to.SetBool(v != 0)
			}
			numbers = numbers[1:]
		}
	})
}
