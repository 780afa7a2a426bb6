package cpu

import "golang.org/x/sys/cpu"

var here = func() kind {
	have := 1
	switch x := cpu.X86; {
	case x.HasAVX512F && x.HasAVX512BW && x.HasAVX512DQ && x.HasAVX512VL:
		have = 3
	case x.HasAVX2 && x.HasFMA:
		have = 2
	}
	return kind{[]Level{Off, AVX2, AVX512}, have}
}()
