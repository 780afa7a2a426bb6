package vec

import "fmt"

// Convert copies a to dst with the conversions of Go: floats to integers round towards zero, integers wrap, and what
// does not fit an integer is as the machine has it. It panics if the element types have no conversion.
func Convert[D, S Number](dst []D, a []S) {
	check(len(dst), len(a))
	if f, ok := conversions[pairOf[D, S]{}].(func(dst []D, a []S)); ok {
		f(dst, a)
		return
	}
	for i, x := range a {
		dst[i] = D(x)
	}
}

// Conversion is Convert for one pair of types without the search for its kernel.
func Conversion[D, S Number]() func(dst []D, a []S) {
	if f, ok := conversions[pairOf[D, S]{}].(func(dst []D, a []S)); ok {
		return f
	}
	return Convert[D, S]
}

// pairOf is the key of a conversion.
type pairOf[D, S any] struct{}

// conversions holds functions on slices by pairOf.
var conversions = map[any]any{}

// FromBool is 1 for true and 0 for false.
func FromBool[D Number](dst []D, a []bool) {
	check(len(dst), len(a))
	if f, ok := fromBool[pairOf[D, bool]{}].(func(dst *D, a *uint8, n int)); ok && len(a) > 0 {
		f(&dst[0], bytesOf(a), len(a))
		return
	}
	for i, x := range a {
		var v D
		if x {
			v = 1
		}
		dst[i] = v
	}
}

var fromBool = map[any]any{}

// ToBool is a != 0.
func ToBool[S Number](t *Table[S], dst []bool, a []S) { t.CompareVS[Ne](dst, a, 0) }

// Gather copies rows of n elements: dst[i] = a[index[i]]. An index outside a is clamped to its ends.
func Gather[T any, I int32 | int64](dst, a []T, index []I, n int) {
	if n <= 0 || len(dst) != len(index)*n || len(a)%n != 0 || len(a) == 0 && len(dst) > 0 {
		panic(fmt.Sprintf("vec: gather of %d rows of %d elements from %d to %d elements", len(index), n, len(a), len(dst)))
	}
	last := I(len(a)/n - 1)
	switch n {
	case 1:
		for i, at := range index {
			dst[i] = a[min(max(at, 0), last)]
		}
	case 2:
		for i, at := range index {
			k := int(min(max(at, 0), last)) * 2
			dst[2*i], dst[2*i+1] = a[k], a[k+1]
		}
	default:
		for i, at := range index {
			k := int(min(max(at, 0), last)) * n
			copy(dst[i*n:i*n+n], a[k:k+n])
		}
	}
}

// Tile fills dst with copies of a, one after the other: a row vector under every row. len(dst) is a multiple of len(a).
func Tile[T any](dst, a []T) {
	if len(dst) == 0 {
		return
	}
	if len(a) == 0 || len(dst)%len(a) != 0 {
		badLength(len(dst), len(a))
	}
	for n := copy(dst, a); n < len(dst); n *= 2 {
		copy(dst[n:], dst[:n])
	}
}

// Spread fills dst with each element of a n times: a column vector beside every column. len(dst) is n*len(a).
func Spread[T Number](t *Table[T], dst, a []T, n int) {
	check(len(dst), n*len(a))
	if n >= 16 {
		for i, x := range a {
			t.Fill(dst[i*n:i*n+n], x)
		}
		return
	}
	for i, x := range a {
		row := dst[i*n : i*n+n]
		for j := range row {
			row[j] = x
		}
	}
}
