// Package cpu says which instructions the engine's kernels may use.
package cpu

import (
	"fmt"
	"os"
	"strings"
)

// Level is a set of vector instructions.
type Level int

const (
	Off    Level = iota // plain Go
	AVX2                // with FMA
	AVX512              // F, BW, DQ and VL; includes AVX2
	NEON                // of every ARM processor of 64 bits
)

// Variable is the environment variable that lowers the level: off, or avx2, avx512 or neon where the machine has them.
const Variable = "GFNEM_SIMD"

var names = [...]string{"off", "avx2", "avx512", "neon"}

// String returns the name of a level.
func (l Level) String() string { return names[l] }

// kind is a processor: its levels, from plain Go on, and how many of them this machine has.
type kind struct {
	levels []Level
	have   int
}

// Levels are those of this machine, each better than the ones before it.
func Levels() []Level { return here.levels[:here.have] }

// Use is the level that kernels use: the best one, unless the environment asks for a lower one. It is fixed when the
// program starts.
var Use = here.choose(os.Getenv(Variable))

func (k kind) choose(asked string) Level {
	best := k.levels[k.have-1]
	if asked == "" {
		return best
	}
	var all []string
	for i, l := range k.levels {
		if l.String() == asked {
			return k.levels[min(i, k.have-1)]
		}
		all = append(all, l.String())
	}
	fmt.Fprintf(os.Stderr, "%s=%q is not one of %s; using %s\n", Variable, asked, strings.Join(all, ", "), best)
	return best
}
