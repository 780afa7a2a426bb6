// Package gemm multiplies matrices on the CPU.
//
// Products are cut into tiles whose sums stay in vector registers. Kernels are Go assembly for AVX-512, for AVX2 with
// FMA and for NEON, chosen when the program starts (see package cpu), and plain Go elsewhere. A and B may have any
// strides, so a transpose costs nothing at the call.
//
// Laws:
//   - the same call gives the same bits from run to run and whatever GOMAXPROCS is, on one level of instructions;
//   - each element of C is a sum over k in an order that depends on the sizes alone; NaN and infinities go through as in
//     the plain triple loop;
//   - products of maxima (Options.Max) are exact: the same bits on all levels, but for those of a NaN;
//   - a wrong size is a panic before anything is written.
//
// # Where things are
//
//	gemm.go batch.go          what callers see: a product, many products of one size
//	job.go product.go         how a product is computed, by its sizes and strides; its parts, on several threads
//	block.go pack.go work.go  a part as tiles or as dot products; A and B packed for it, in memory that is kept
//	kernels.go                what a kernel reads, and families of kernels
//	kernels_*.go portable.go  the families there are; kernels in plain Go
//	peak.go                   what the machine could do at most
//	zz_*.go                   the kernels, written by engine/internal/gen
package gemm

//go:generate go run ../gen gemm
