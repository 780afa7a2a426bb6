package engine_test

import (
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/support/backendtest"

	_ "github.com/gfnem/gfnem/engine"
)

// oracle is the go backend, one operation at a time: run in parallel, large products can wait for each other for ever.
const oracle = "go:ops_sequential"

func open(t testing.TB, config string) compute.Backend {
	t.Helper()
	b, err := compute.NewWithConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestBackend runs the suite that every backend of GoMLX has to pass, with and without fusion.
func TestBackend(t *testing.T) {
	for _, config := range []string{"simd", "simd:nofusion"} {
		t.Run(config, func(t *testing.T) {
			backendtest.RunAll(t, open(t, config), &backendtest.AllTestsConfiguration{
				ConvGeneralDTypes: []dtypes.DType{dtypes.Float32, dtypes.Float64, dtypes.Int32, dtypes.Uint64},
			})
		})
	}
}
