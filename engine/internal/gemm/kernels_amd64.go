package gemm

import "github.com/gfnem/gfnem/engine/internal/cpu"

var families32 = [...]family{
	cpu.Off: portable32,
	cpu.AVX2: family{
		widths: skernels256[:], rows: 6, panel: 16, kc: 256, mc: 96,
		dot: sdot256_4, dot1: sdot256_1, dotRows: 4, dotLanes: 8,
		transposes: stransposes, copy: copy256,
		speed: 1, peak: speak256, flops: 2 * 12 * 8,
	}.cut(6, 4, 3, 2, 1),
	cpu.AVX512: family{
		widths: skernels512[:], rows: 12, panel: 32, wide: 64, kc: 512, mc: 144,
		dot: sdot512_8, dot1: sdot512_1, dotRows: 8, dotLanes: 16,
		transposes: stransposes, copy: copy512,
		speed: 1, peak: speak512, flops: 2 * 24 * 16,
	}.cut(12, 8, 6, 4, 3, 2, 1),
}

var families64 = [...]family{
	cpu.Off: portable64,
	cpu.AVX2: family{
		widths: dkernels256[:], rows: 6, panel: 8, kc: 256, mc: 48,
		dot: ddot256_4, dot1: ddot256_1, dotRows: 4, dotLanes: 4,
		transposes: dtransposes, copy: copy256,
		speed: 2, peak: dpeak256, flops: 2 * 12 * 4,
	}.cut(6, 4, 3, 2, 1),
	cpu.AVX512: family{
		widths: dkernels512[:], rows: 12, panel: 16, wide: 32, kc: 512, mc: 144,
		dot: ddot512_8, dot1: ddot512_1, dotRows: 8, dotLanes: 8,
		transposes: dtransposes, copy: copy512,
		speed: 2, peak: dpeak512, flops: 2 * 24 * 8,
	}.cut(12, 8, 6, 4, 3, 2, 1),
}

var maxima32 = [...]family{
	cpu.Off: portableMax32,
	cpu.AVX2: family{
		widths: smaxkernels256[:], rows: 4, panel: 16, kc: 256, mc: 96,
		transposes: stransposes, copy: copy256, speed: 4,
	}.cut(4, 2, 1),
	cpu.AVX512: family{
		widths: smaxkernels512[:], rows: 8, panel: 32, kc: 512, mc: 144,
		transposes: stransposes, copy: copy512, speed: 3,
	}.cut(8, 4, 2, 1),
}

var maxima64 = [...]family{
	cpu.Off: portableMax64,
	cpu.AVX2: family{
		widths: dmaxkernels256[:], rows: 4, panel: 8, kc: 256, mc: 48,
		transposes: dtransposes, copy: copy256, speed: 8,
	}.cut(4, 2, 1),
	cpu.AVX512: family{
		widths: dmaxkernels512[:], rows: 8, panel: 16, kc: 512, mc: 144,
		transposes: dtransposes, copy: copy512, speed: 6,
	}.cut(8, 4, 2, 1),
}

var (
	stransposes = []transposer{{8, stranspose8}, {4, stranspose4}}
	dtransposes = []transposer{{4, dtranspose4}}
)
