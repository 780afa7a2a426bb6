package program

import (
	"fmt"
	"reflect"

	. "github.com/gomlx/gomlx/core/graph"
)

// Nodes lists the nodes of a struct, as far as they are there.
func Nodes[S any](s S) (all []*Node) {
	Map(s, func(n *Node) *Node {
		all = append(all, n)
		return n
	})
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
func Map[S any](s S, f func(*Node) *Node) (out S) {
	out = s
	walk(reflect.ValueOf(s), reflect.ValueOf(&out).Elem(), func(k kind, n, to reflect.Value) {
		if k == leaf && !n.IsNil() {
			to.Set(reflect.ValueOf(f(n.Interface().(*Node))))
		}
	})
	return out
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

// Of returns a struct of single nodes, or of tensors, which are given in order.
func Of[S, T any](leaves []T) (out S) {
	count := 0
	var set func(v reflect.Value)
	set = func(v reflect.Value) {
		if v.Type() == reflect.TypeFor[T]() {
			if count++; count <= len(leaves) {
				v.Set(reflect.ValueOf(leaves[count-1]))
			}
		} else if v.Kind() == reflect.Struct {
			for i := range v.NumField() {
				set(v.Field(i))
			}
		}
	}
	set(reflect.ValueOf(&out).Elem())
	if count != len(leaves) {
		panic(fmt.Errorf("%d nodes cannot be a %T, which has %d", len(leaves), out, count))
	}
	return out
}
