package engine_test

import (
	"testing"

	"github.com/gomlx/compute"
)

// BenchmarkStep is a small step with two products and an update in place.
func BenchmarkStep(b *testing.B) {
	for _, config := range []string{"simd", "simd:nofusion", "go"} {
		b.Run(config, func(b *testing.B) {
			backend := open(b, config)
			e, s := step(b, backend)
			x, w := buffer(b, backend, s[0], 1), buffer(b, backend, s[1], 2)
			b.ReportAllocs()
			for b.Loop() {
				out, err := e.Execute([]compute.Buffer{x, w}, []bool{false, true}, 0)
				if err != nil {
					b.Fatal(err)
				}
				w = out[0]
				_ = out[1].Finalize()
			}
		})
	}
}
