package cpu

import "testing"

func TestChoose(t *testing.T) {
	x86, arm := []Level{Off, AVX2, AVX512}, []Level{Off, NEON}
	for _, c := range []struct {
		asked string
		kind  kind
		want  Level
	}{
		{"", kind{x86, 3}, AVX512}, {"", kind{x86, 1}, Off}, {"off", kind{x86, 3}, Off}, {"avx2", kind{x86, 3}, AVX2},
		{"avx512", kind{x86, 2}, AVX2}, {"sse", kind{x86, 2}, AVX2}, {"neon", kind{x86, 2}, AVX2},
		{"", kind{arm, 2}, NEON}, {"off", kind{arm, 2}, Off}, {"off", kind{[]Level{Off}, 1}, Off},
	} {
		if got := c.kind.choose(c.asked); got != c.want {
			t.Errorf("choose(%q) of %v is %v, want %v", c.asked, c.kind, got, c.want)
		}
	}
}
