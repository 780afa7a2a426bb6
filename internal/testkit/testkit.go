// Package testkit holds what tests of several packages need.
package testkit

import (
	"cmp"
	"maps"
	"os"
	"slices"
	"strconv"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
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

// ChiSquare compares counts with probabilities and returns how improbable so great a distance is. Outcomes that are rarely
// expected are taken together.
func ChiSquare(counts map[string]int, p map[string]float64) float64 {
	total := 0
	for k, c := range counts {
		if total += c; p[k] == 0 {
			return 0
		}
	}
	keys := slices.SortedFunc(maps.Keys(p), func(a, b string) int { return cmp.Or(cmp.Compare(p[a], p[b]), cmp.Compare(a, b)) })
	distance, groups, seen, want := 0.0, 0, 0.0, 0.0
	for _, k := range keys {
		seen, want = seen+float64(counts[k]), want+p[k]*float64(total)
		if want > 10 { // so that the distance is near enough to its limit distribution
			distance += (seen - want) * (seen - want) / want
			groups, seen, want = groups+1, 0, 0
		}
	}
	return distuv.ChiSquared{K: float64(groups - 1)}.Survival(distance)
}
