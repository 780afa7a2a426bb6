// Package vec holds the engine's kernels on contiguous slices: element-wise functions, comparisons, reductions of rows,
// conversions, transposes and random bits.
//
// Kernels stand in tables, one for each element type (F32, F64, I32, ...), indexed by small operation codes, so that an
// interpreter dispatches with one load: vec.F32.Unary[vec.Exp](dst, a). An operation that a type does not have is nil.
//
// Laws, checked by the tests at every level:
//   - a destination has the length of its operands, else the kernel panics before it writes;
//   - a destination may be exactly one of the operands of the same element size, and must not overlap one otherwise;
//   - NaN, infinities, signed zeros and subnormal numbers are as in IEEE 754, and Max and Min return NaN if an operand
//     is NaN and take -0 to be less than +0;
//   - Exp, Expm1, Log, Log1p, Tanh, Logistic and Erf are within 2 ulp everywhere;
//   - sums are taken in an order that depends on lengths alone, so results repeat bit for bit at one level.
//
// The levels are AVX-512, AVX2 with FMA, NEON, and plain Go (see package cpu).
//
// # Where things are
//
//	ops.go table.go                 operation codes; the tables
//	generic.go generic_*.go         tables in plain Go, for all types
//	rows.go transpose.go            reductions of rows and columns, transposes, in plain Go
//	bools.go convert.go random.go   what is in no table: logic, conversions, gathers, random bits
//	table_*.go misc_*.go            which kernels a level has
//	wrap.go lanes.go misc.go        kernels on pointers become kernels on slices
//	row_kernels.go tall.go          the same for rows; short rows, many at once
//	pow.go                          powers by logarithms
//	zz_*.go                         the kernels, written by engine/internal/gen
package vec

//go:generate go run ../gen vec
