package run

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/gfnem/gfnem/config"
)

// Seeds of repetitions are what a configuration file can hold, from the largest one on, too.
func TestSeedsFrom(t *testing.T) {
	for first, want := range map[uint64][]uint64{7: {7, 8, 9}, math.MaxInt64 - 1: {math.MaxInt64 - 1, math.MaxInt64, 0}} {
		if got := SeedsFrom(first, 3); !slices.Equal(got, want) {
			t.Errorf("from %d: %d, want %d", first, got, want)
		}
	}
}

func TestCheckSet(t *testing.T) {
	rows := []config.Set{{"a=1", "b=2"}, {"a = 3"}}
	for set, want := range map[string]string{
		"b=5": "", "c=5": "", "a=5": "--set a=5: every row asked for has a of its own", "seed=3": "those of --seed and --seeds",
	} {
		err := CheckSet(config.Set{set}, rows)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: error %v, want %q", set, err, want)
		}
	}
}
