package gemm

import (
	"sync"
	"time"
	"unsafe"

	"github.com/gfnem/gfnem/engine/internal/cpu"
)

// Peak32 measures how many billions of floating-point operations a second the given number of threads do together with
// the multiply-adds of this level on registers alone: what no product of float32 can exceed. It takes some tens of milliseconds.
func Peak32(threads int) float64 { return peakAt[float32](cpu.Use, threads) }

// Peak64 is Peak32 for float64.
func Peak64(threads int) float64 { return peakAt[float64](cpu.Use, threads) }

func peakAt[T Float](level cpu.Level, threads int) float64 {
	f := familyOf[T](level, false)
	const tries = 10
	times := 400_000_000 / f.flops // about 3 ms with AVX-512: much longer than it takes to wake a thread
	best := time.Duration(1 << 62)
	for range tries {
		var wg sync.WaitGroup
		begin := time.Now()
		for range threads - 1 {
			wg.Go(func() { f.peak(times) })
		}
		f.peak(times)
		wg.Wait()
		best = min(best, time.Since(begin))
	}
	return float64(times) * float64(f.flops) * float64(threads) / float64(best.Nanoseconds())
}

// peakGo is the loop of multiply-adds in plain Go.
func peakGo[T Float](times int) {
	x, y := T(unsafe.Sizeof(T(0)))/16, T(times)
	var a, b, c, d, e, f, g, h T
	for range times {
		a = a*x + y
		b = b*x + y
		c = c*x + y
		d = d*x + y
		e = e*x + y
		f = f*x + y
		g = g*x + y
		h = h*x + y
	}
	if a+b+c+d+e+f+g+h < 0 {
		panic("gemm: sums of positive numbers are not negative")
	}
}
