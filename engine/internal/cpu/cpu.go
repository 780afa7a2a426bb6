// Package cpu says which instructions the engine's kernels may use.
package cpu

import (
	"fmt"
	"os"

	"golang.org/x/sys/cpu"
)

// Level is a set of vector instructions; each level includes the ones before it.
type Level int

const (
	Off    Level = iota // plain Go
	AVX2                // with FMA
	AVX512              // F, BW, DQ and VL
)

// Variable is the environment variable that lowers the level: off, avx2 or avx512.
const Variable = "GFNEM_SIMD"

var names = [...]string{"off", "avx2", "avx512"}

// String returns the name of a level.
func (l Level) String() string { return names[l] }

// Best is the highest level of this machine.
func Best() Level {
	switch x := cpu.X86; {
	case x.HasAVX512F && x.HasAVX512BW && x.HasAVX512DQ && x.HasAVX512VL:
		return AVX512
	case x.HasAVX2 && x.HasFMA:
		return AVX2
	}
	return Off
}

// Use is the level that kernels use: the best one, unless the environment asks for a lower one. It is fixed when the
// program starts.
var Use = choose(os.Getenv(Variable), Best())

func choose(asked string, best Level) Level {
	if asked == "" {
		return best
	}
	for l, name := range names {
		if name == asked {
			return min(Level(l), best)
		}
	}
	fmt.Fprintf(os.Stderr, "%s=%q is not off, avx2 or avx512; using %s\n", Variable, asked, best)
	return best
}
