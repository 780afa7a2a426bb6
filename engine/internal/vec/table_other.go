//go:build !amd64 && !arm64

package vec

import "github.com/gfnem/gfnem/engine/internal/cpu"

func newF32(cpu.Level) *Table[float32] { return floats[float32]() }
func newF64(cpu.Level) *Table[float64] { return floats[float64]() }
func newI32(cpu.Level) *Table[int32]   { return integers[int32]() }
func newI64(cpu.Level) *Table[int64]   { return integers[int64]() }
func newU32(cpu.Level) *Table[uint32]  { return integers[uint32]() }
func newU64(cpu.Level) *Table[uint64]  { return integers[uint64]() }
