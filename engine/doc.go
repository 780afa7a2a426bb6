// Package engine is a CPU backend for GoMLX, registered as "simd".
//
// A graph is compiled, not interpreted: common subexpressions, dead code and constants go away when it is built; what is
// left becomes a list of steps over memory that was planned once. Most steps are row programs (see rows.go): chains of
// elementwise operations, broadcasts, reductions and small matrix products that pass over the rows of their operands
// once, a block that fits the cache at a time.
//
// Laws:
//   - results do not depend on GOMAXPROCS, bit for bit;
//   - an executable may run in several goroutines at once;
//   - after the first run of an executable, running it allocates nothing but the buffers that it returns, and those come
//     from memory given back by earlier ones;
//   - an operation that the engine does not have is an error when the graph is built, wrapping compute.ErrNotImplemented.
//
// # Where things are
//
// A graph becomes a program in this order:
//
//	backend.go capabilities.go     the backend and what it says it can do
//	buffer.go mem.go               tensors and the memory of dead ones; blocks of memory without Go pointers
//	builder.go ir.go infer.go      a function while it is built: nodes of operations, and their shapes
//	op_elementwise.go op_list.go   operations of GoMLX become nodes: one line each in op_list.go
//	op_*.go                        those with shapes, places, products, closures, and the fused ones
//	half.go                        floats of 16 bits: stored as they are, computed as float32
//	exec.go                        compiling a builder; running an executable
//	fold.go invariants.go          what needs no step: dead code, constants; what a loop need not repeat
//	lower.go access.go             nodes become operations on values, which read others by offsets and strides
//	dot.go dot_max.go epilogue.go  products: which way each is computed; those of maxima; biases and rectifiers they take
//	cluster.go plan.go             operations become steps; values that live between steps get memory
//	program.go profile.go          steps and the frames they run in; what each costs
//	peaks.go                       what the machine can do
//
// A step is a row program, which passes over rows a block at a time:
//
//	rowgen.go rowgen_ops.go rows.go   how a cluster becomes instructions; how these run
//	kernels.go kernels_vec.go         elementwise instructions by operation and type: in plain Go, and of package vec
//	kernels_*.go                      instructions that reduce, move and repeat rows
//
// or one opaque operation:
//
//	opaque.go opaque_*.go       which one; closures and loops, gathers and scatters, windows, random bits
//	transpose.go                copies that change the order of axes
//	conv.go conv_*.go           convolutions: their geometry, and three ways to compute them
//
// Below internal: gemm multiplies matrices, vec has kernels on slices, gen writes the assembly of both (go generate),
// cpu says which instructions there are, par runs loops on several threads.
//
// Tests: random_*_test.go compare random graphs and their gradients with GoMLX's own backend.
package engine
