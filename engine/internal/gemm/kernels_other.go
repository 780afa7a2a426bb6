//go:build !amd64 && !arm64

package gemm

import "github.com/gfnem/gfnem/engine/internal/cpu"

// There are no kernels but those of plain Go, whatever the level.
var (
	families32 = [...]family{cpu.Off: portable32}
	families64 = [...]family{cpu.Off: portable64}
	maxima32   = [...]family{cpu.Off: portableMax32}
	maxima64   = [...]family{cpu.Off: portableMax64}
)
