package vec

import "unsafe"

// Bool is the kernels on truth values.
type Bool struct {
	And, Or, Xor func(dst, a, b []bool)
	Not          func(dst, a []bool)
	Select       func(dst, m, a, b []bool) // m ? a : b
}

// B is the kernels on truth values, at the level the machine and the environment allow.
var B = newBool()

// bools is the plain Go kernels: eight at a time in a word.
func bools() *Bool {
	return &Bool{
		And: logical(func(x, y uint64) uint64 { return x & y }),
		Or:  logical(func(x, y uint64) uint64 { return x | y }),
		Xor: logical(func(x, y uint64) uint64 { return x ^ y }),
		Not: func(dst, a []bool) {
			check(len(dst), len(a))
			for i, x := range a {
				dst[i] = !x
			}
		},
		Select: selectVV[bool],
	}
}

func logical(f func(x, y uint64) uint64) func(dst, a, b []bool) {
	return func(dst, a, b []bool) {
		check(len(dst), len(a))
		check(len(dst), len(b))
		n := len(dst)
		if n == 0 {
			return
		}
		d, x, y := unsafe.Slice(bytesOf(dst), n), unsafe.Slice(bytesOf(a), n), unsafe.Slice(bytesOf(b), n)
		i := 0
		for ; i+8 <= n; i += 8 {
			*(*uint64)(unsafe.Pointer(&d[i])) = f(*(*uint64)(unsafe.Pointer(&x[i])), *(*uint64)(unsafe.Pointer(&y[i])))
		}
		for ; i < n; i++ {
			d[i] = uint8(f(uint64(x[i]), uint64(y[i])))
		}
	}
}

func bytesOf(b []bool) *uint8 { return (*uint8)(unsafe.Pointer(unsafe.SliceData(b))) }
