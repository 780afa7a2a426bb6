package par

import (
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
)

func TestForCoversOnce(t *testing.T) {
	for _, procs := range []int{1, 2, 5} {
		old := runtime.GOMAXPROCS(procs)
		for _, n := range []int{0, 1, 7, 100, 1000} {
			for _, grain := range []int{1, 3, 100, 5000} {
				seen := make([]int32, n)
				For(n, grain, func(lo, hi int) {
					if lo%grain != 0 || hi-lo > grain {
						t.Errorf("chunk [%d,%d) with grain %d", lo, hi, grain)
					}
					for i := lo; i < hi; i++ {
						atomic.AddInt32(&seen[i], 1)
					}
				})
				if slices.ContainsFunc(seen, func(c int32) bool { return c != 1 }) {
					t.Fatalf("n %d, grain %d: not every element once", n, grain)
				}
			}
		}
		runtime.GOMAXPROCS(old)
	}
}

func TestForNests(t *testing.T) {
	var sum atomic.Int64
	For(20, 1, func(lo, hi int) {
		For(100, 7, func(lo, hi int) { sum.Add(int64(hi - lo)) })
	})
	if sum.Load() != 2000 {
		t.Errorf("sum %d", sum.Load())
	}
}

func TestForPanics(t *testing.T) {
	defer func() {
		if p := recover(); p != "boom" {
			t.Errorf("recovered %v", p)
		}
	}()
	For(100, 1, func(lo, hi int) {
		if lo == 42 {
			panic("boom")
		}
	})
}

func BenchmarkForTwoChunks(b *testing.B) {
	for range b.N {
		For(2, 1, func(lo, hi int) {})
	}
}
