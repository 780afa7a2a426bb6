package program

import (
	"fmt"
	"reflect"

	. "github.com/gomlx/gomlx/core/graph"
)

// Nodes lists the nodes of a struct, as far as they are there.
func Nodes[S any](s S) (all []*Node) {
	visit(reflect.ValueOf(s), func(n *Node, _ func(*Node)) { all = append(all, n) })
	return all
}

// Replace returns a struct with other nodes, in the order of Nodes.
func Replace[S any](s S, nodes []*Node) S {
	if have := len(Nodes(s)); have != len(nodes) {
		panic(fmt.Errorf("%d nodes cannot be a %T, which has %d", len(nodes), s, have))
	}
	return Map(s, func(*Node) *Node {
		n := nodes[0]
		nodes = nodes[1:]
		return n
	})
}

// Map returns a struct whose nodes are made from those of s.
func Map[S any](s S, f func(*Node) *Node) S {
	out := reflect.New(reflect.TypeFor[S]()).Elem()
	out.Set(reflect.ValueOf(s))
	visit(out, func(n *Node, set func(*Node)) { set(f(n)) })
	return out.Interface().(S)
}

// Zip returns a struct whose nodes are made from those of a and b, which have the same.
func Zip[S any](a, b S, f func(x, y *Node) *Node) S {
	other := Nodes(b)
	if have := len(Nodes(a)); have != len(other) {
		panic(fmt.Errorf("%T with %d nodes does not go with one of %d", a, have, len(other)))
	}
	return Map(a, func(x *Node) *Node {
		y := other[0]
		other = other[1:]
		return f(x, y)
	})
}

// visit calls f for every node in v, in order. Lists and optional parts that set changes are new ones.
func visit(v reflect.Value, f func(n *Node, set func(*Node))) {
	switch kindOf(v.Type()) {
	case leaf:
		if !v.IsNil() {
			f(v.Interface().(*Node), func(n *Node) { v.Set(reflect.ValueOf(n)) })
		}
	case list:
		if v.CanSet() && !v.IsNil() {
			v.Set(reflect.AppendSlice(reflect.MakeSlice(v.Type(), 0, v.Len()), v))
		}
		for i := range v.Len() {
			visit(v.Index(i), f)
		}
	case part:
		pairs(v.Type(), func(i, _ int) { visit(v.Field(i), f) })
	case option:
		if v.IsNil() {
			return
		}
		if v.CanSet() {
			fresh := reflect.New(v.Type().Elem())
			fresh.Elem().Set(v.Elem())
			v.Set(fresh)
		}
		visit(v.Elem(), f)
	}
}

// Of returns a struct of single nodes, or of tensors, which are given in order.
func Of[S, T any](leaves []T) S {
	out := reflect.New(reflect.TypeFor[S]()).Elem()
	count := 0
	var set func(v reflect.Value)
	set = func(v reflect.Value) {
		if v.Type() == reflect.TypeFor[T]() {
			if count++; count <= len(leaves) {
				v.Set(reflect.ValueOf(leaves[count-1]))
			}
		} else if v.Kind() == reflect.Struct {
			pairs(v.Type(), func(i, _ int) { set(v.Field(i)) })
		}
	}
	set(out)
	if count != len(leaves) {
		panic(fmt.Errorf("%d nodes cannot be a %T, which has %d", len(leaves), out.Interface(), count))
	}
	return out.Interface().(S)
}
