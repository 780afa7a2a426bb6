package run

import (
	"math"
	"slices"
	"strings"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/config"
)

// SeedsFrom are the seeds of so many repetitions. After the largest one that a configuration file can hold they go on
// from 0.
func SeedsFrom(seed uint64, repetitions int) []uint64 {
	var out []uint64
	for k := range repetitions {
		out = append(out, (seed+uint64(k))&math.MaxInt64)
	}
	return out
}

// CheckSet refuses settings that change no row of a table, since each of the rows asked for has settings of its own.
func CheckSet(set config.Set, rows []config.Set) error {
	keyOf := func(setting string) string {
		key, _, _ := strings.Cut(setting, "=")
		return strings.TrimSpace(key)
	}
	for _, setting := range set {
		key := keyOf(setting)
		if key == "seed" {
			return badinput.Errorf("--set %s: the seeds of a table are those of --seed and --seeds", setting)
		}
		free := func(row config.Set) bool {
			return !slices.ContainsFunc(row, func(own string) bool { return keyOf(own) == key })
		}
		if len(rows) > 0 && !slices.ContainsFunc(rows, free) {
			return badinput.Errorf("--set %s: every row asked for has %s of its own", setting, key)
		}
	}
	return nil
}
