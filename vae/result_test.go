package vae

import (
	"slices"
	"testing"
)

func TestCount(t *testing.T) {
	if got := count([]Codes{{0, 1, 1}, {3, 1, 0}}, 5); !slices.Equal(got, []float64{2, 3, 0, 1, 0}) {
		t.Errorf("codes are counted as %v", got)
	}
}
