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

// kind says how a field of the nodes' side is treated.
type kind int

const (
	constant kind = iota // of the graph
	leaf                 // one node
	list                 // of nodes
	part                 // a struct of more fields
	option               // a part that may be left out
)

func kindOf(nodes reflect.Type) kind {
	switch {
	case nodes == nodeType:
		return leaf
	case nodes.Kind() == reflect.Slice && nodes.Elem() == nodeType:
		return list
	case nodes.Kind() == reflect.Struct:
		return part
	case nodes.Kind() == reflect.Pointer && nodes.Elem().Kind() == reflect.Struct:
		return option
	}
	return constant
}

// pairs calls f with the numbers of the fields that correspond.
func pairs(nodes reflect.Type, f func(node, host int)) {
	host := 0
	for i := range nodes.NumField() {
		if nodes.Field(i).Type != graphType {
			f(i, host)
			host++
		}
	}
}

// isScalar reports whether results are read as Go values of a type.
func isScalar(host reflect.Type) bool {
	return host.Kind() == reflect.Float64 || host.Kind() == reflect.Bool || host.Kind() == reflect.Int
}

// match checks that the types of both sides correspond.
func match(nodes, host reflect.Type, path string, result bool) error {
	mismatch := fmt.Errorf("%s: %s does not go with %s", path, nodes, host)
	switch kindOf(nodes) {
	case leaf:
		if result && host != tensorType && !isScalar(host) {
			return mismatch
		}
	case list:
		if host.Kind() != reflect.Slice || host.Elem() != tensorType {
			return mismatch
		}
	case constant:
		if k := nodes.Kind(); nodes != host || k != reflect.Int && k != reflect.Bool && k != reflect.String {
			return mismatch
		}
	case option:
		if host.Kind() != reflect.Pointer {
			return mismatch
		}
		return match(nodes.Elem(), host.Elem(), path, result)
	case part:
		if host.Kind() != reflect.Struct {
			return mismatch
		}
		count := 0
		var err error
		pairs(nodes, func(n, h int) {
			count++
			if err != nil || h >= host.NumField() {
				return
			}
			a, b := nodes.Field(n), host.Field(h)
			if !a.IsExported() || !b.IsExported() || a.Name != b.Name && !(a.Anonymous && b.Anonymous) {
				err = fmt.Errorf("%s: field %s of %s does not go with %s of %s", path, a.Name, nodes, b.Name, host)
				return
			}
			err = match(a.Type, b.Type, path+"."+a.Name, result)
		})
		if err == nil && count != host.NumField() {
			err = mismatch
		}
		return err
	}
	return nil
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

// add takes the host's side of a type of nodes.
func (a *arguments) add(nodes reflect.Type, host reflect.Value) {
	switch kindOf(nodes) {
	case leaf:
		switch {
		case isNil(host):
			a.key.WriteByte('-')
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
	case list:
		fmt.Fprintf(&a.key, "[%d]", host.Len())
		for i := range host.Len() {
			a.tensors = append(a.tensors, host.Index(i).Interface())
		}
	case part:
		pairs(nodes, func(n, h int) { a.add(nodes.Field(n).Type, host.Field(h)) })
	case option:
		if host.IsNil() {
			a.key.WriteByte('-')
			return
		}
		a.key.WriteByte('+')
		a.add(nodes.Elem(), host.Elem())
	case constant:
		fmt.Fprintf(&a.key, "%q", fmt.Sprint(host.Interface()))
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

// fill sets the nodes' side to parameters, and to the host's constants.
func (p *parameters) fill(nodes, host reflect.Value) {
	next := func() reflect.Value {
		n := p.tensors[0]
		p.tensors = p.tensors[1:]
		return reflect.ValueOf(n)
	}
	switch kindOf(nodes.Type()) {
	case leaf:
		switch {
		case isNil(host):
		case host.Type() == numberType:
			nodes.Set(reflect.ValueOf(Squeeze(p.row(1), 0)))
		case host.Type() == rowType:
			nodes.Set(reflect.ValueOf(p.row(host.Len())))
		default:
			nodes.Set(next())
		}
	case list:
		if host.IsNil() {
			return
		}
		nodes.Set(reflect.MakeSlice(nodes.Type(), host.Len(), host.Len()))
		for i := range host.Len() {
			nodes.Index(i).Set(next())
		}
	case part:
		for i := range nodes.NumField() {
			if nodes.Field(i).Type() == graphType {
				nodes.Field(i).Set(reflect.ValueOf(p.Graph))
			}
		}
		pairs(nodes.Type(), func(n, h int) { p.fill(nodes.Field(n), host.Field(h)) })
	case option:
		if !host.IsNil() {
			nodes.Set(reflect.New(nodes.Type().Elem()))
			p.fill(nodes.Elem(), host.Elem())
		}
	case constant:
		nodes.Set(host)
	}
}

// row takes the next numbers.
func (p *parameters) row(n int) *Node {
	from := p.used
	p.used += n
	return SliceAxis(p.numbers, 0, AxisRange(from, p.used))
}

// results calls f for every node of what a program returned, with the place of its value on the host; a valid host is set as
// far as parts and lists go.
func results(nodes, host reflect.Value, f func(n *Node, host reflect.Value)) {
	switch kindOf(nodes.Type()) {
	case leaf:
		if !nodes.IsNil() {
			f(nodes.Interface().(*Node), host)
		} else if host.Kind() == reflect.Float64 {
			host.SetFloat(math.NaN())
		}
	case list:
		if nodes.IsNil() {
			return
		}
		host.Set(reflect.MakeSlice(host.Type(), nodes.Len(), nodes.Len()))
		for i := range nodes.Len() {
			results(nodes.Index(i), host.Index(i), f)
		}
	case part:
		pairs(nodes.Type(), func(n, h int) { results(nodes.Field(n), host.Field(h), f) })
	case option:
		if !nodes.IsNil() {
			host.Set(reflect.New(host.Type().Elem()))
			results(nodes.Elem(), host.Elem(), f)
		}
	case constant:
		host.Set(nodes)
	}
}

// outputs lists what a graph returns: the nodes whose values stay tensors, and one of all numbers that the host reads.
func outputs(nodes reflect.Value, host reflect.Type) []*Node {
	var all, numbers []*Node
	results(nodes, reflect.New(host).Elem(), func(n *Node, to reflect.Value) {
		if isScalar(to.Type()) {
			numbers = append(numbers, Reshape(ConvertDType(n, dtypes.Float64), 1))
		} else {
			all = append(all, n)
		}
	})
	if len(numbers) > 0 {
		all = append(all, Concatenate(numbers, 0))
	}
	return all
}

// unpack is the other way round: it sets the host's side.
func unpack(nodes, host reflect.Value, from []*tensors.Tensor) (err error) {
	var numbers []float64
	results(nodes, host, func(_ *Node, to reflect.Value) {
		if !isScalar(to.Type()) {
			to.Set(reflect.ValueOf(from[0]))
			from = from[1:]
			return
		}
		if numbers == nil && err == nil {
			numbers, err = tensors.CopyFlatData[float64](lastOf(from))
		}
		if err != nil {
			return
		}
		switch v := numbers[0]; to.Kind() {
		case reflect.Float64:
			to.SetFloat(v)
		case reflect.Int:
			to.SetInt(int64(v))
		case reflect.Bool:
			to.SetBool(v != 0)
		}
		if numbers = numbers[1:]; len(numbers) == 0 {
			numbers = []float64{} // read, not to be read again
		}
	})
	return err
}

func lastOf(list []*tensors.Tensor) *tensors.Tensor { return list[len(list)-1] }
