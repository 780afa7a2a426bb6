// Package testkit holds what tests of several packages need.
package testkit

import (
	"os"
	"strconv"
	"testing"
)

// Seed returns the seed of a randomised test, which GFNEM_SEED changes, and prints it.
func Seed(t testing.TB) uint64 {
	t.Helper()
	seed, err := strconv.ParseUint(os.Getenv("GFNEM_SEED"), 10, 64)
	if err != nil {
		seed = 1
	}
	t.Logf("seed %d (GFNEM_SEED)", seed)
	return seed
}
