package cli

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/gfnem/gfnem/cli/command"
	"github.com/gfnem/gfnem/config"
	"github.com/gfnem/gfnem/internal/memory"
	"github.com/gfnem/gfnem/run"
)

// refusal is the line about something that does not fit into memory. What err says after that is kept.
func refusal(cause *memory.Error, err error) string {
	names := command.Large()
	if len(cause.Lower) > 0 {
		names = cause.Lower
	}
	_, more, _ := strings.Cut(err.Error(), cause.Error())
	text := cause.Error() + ": "
	if n := len(names); n > 0 {
		text += "lower " + strings.Join(names[:n-1], ", ")
		if n > 1 {
			text += " or "
		}
		text += names[n-1] + ", or "
	}
	return text + "go on regardless with --force-memory" + more
}

// largeKeys returns the keys of a configuration that are furthest above the default preset, of those that memory grows
// with, and the first of these if none is above it.
func largeKeys(task run.Task, c any) []string {
	const most = 4
	sized, ok := c.(interface{ MemoryKeys() []string })
	if !ok {
		return nil
	}
	preset := usual(task)
	_ = config.Resolve(preset) // fills in what it leaves open; if that fails, c has said so
	typical, now := numbers(preset), numbers(c)
	above := func(key string) float64 { return now[key] / max(typical[key], 1) }
	keys := sized.MemoryKeys()
	all := slices.DeleteFunc(slices.Clone(keys), func(key string) bool { return above(key) <= 1 })
	if len(all) == 0 {
		return keys[:min(most, len(keys))]
	}
	slices.SortStableFunc(all, func(a, b string) int { return cmp.Compare(above(b), above(a)) })
	return all[:min(most, len(all))]
}

// numbers are the keys of a configuration that are numbers.
func numbers(c any) map[string]float64 {
	out := map[string]float64{}
	fields, _ := config.Fields(c) // a tag that makes no sense hides no key
	for _, f := range fields {
		if x, err := strconv.ParseFloat(f.Value, 64); err == nil {
			out[f.Name] = x
		}
	}
	return out
}
