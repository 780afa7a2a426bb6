package cpu

import "testing"

func TestChoose(t *testing.T) {
	for _, c := range []struct {
		asked      string
		best, want Level
	}{
		{"", AVX512, AVX512}, {"", Off, Off}, {"off", AVX512, Off}, {"avx2", AVX512, AVX2}, {"avx512", AVX2, AVX2}, {"sse", AVX2, AVX2},
	} {
		if got := choose(c.asked, c.best); got != c.want {
			t.Errorf("choose(%q, %v) = %v, want %v", c.asked, c.best, got, c.want)
		}
	}
}
