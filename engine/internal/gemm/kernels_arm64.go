package gemm

import "github.com/gfnem/gfnem/engine/internal/cpu"

// Speeds are those of a core that does four multiply-adds of vectors in a cycle.

var families32 = [...]family{
	cpu.Off: portable32,
	cpu.NEON: family{
		widths: skernelsNEON[:], rows: 6, panel: 16, kc: 256, mc: 96,
		dot: sdotNEON_4, dot1: sdotNEON_1, dotRows: 4, dotLanes: 4,
		transposes: []transposer{{4, stranspose4NEON}}, copy: copyNEON,
		speed: 2, peak: speakNEON, flops: 2 * 24 * 4,
	}.cut(6, 4, 3, 2, 1),
}

var families64 = [...]family{
	cpu.Off: portable64,
	cpu.NEON: family{
		widths: dkernelsNEON[:], rows: 6, panel: 8, kc: 256, mc: 48,
		dot: ddotNEON_2, dot1: ddotNEON_1, dotRows: 2, dotLanes: 2,
		transposes: []transposer{{2, dtranspose2NEON}}, copy: copyNEON,
		speed: 4, peak: dpeakNEON, flops: 2 * 24 * 2,
	}.cut(6, 4, 3, 2, 1),
}

var maxima32 = [...]family{
	cpu.Off: portableMax32,
	cpu.NEON: family{
		widths: smaxkernelsNEON[:], rows: 4, panel: 16, kc: 256, mc: 96,
		transposes: []transposer{{4, stranspose4NEON}}, copy: copyNEON, speed: 4,
	}.cut(4, 2, 1),
}

var maxima64 = [...]family{
	cpu.Off: portableMax64,
	cpu.NEON: family{
		widths: dmaxkernelsNEON[:], rows: 4, panel: 8, kc: 256, mc: 48,
		transposes: []transposer{{2, dtranspose2NEON}}, copy: copyNEON, speed: 8,
	}.cut(4, 2, 1),
}
