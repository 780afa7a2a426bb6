package main

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/gfnem/gfnem/config"
	"github.com/gfnem/gfnem/internal/memory"
	"github.com/gfnem/gfnem/run"
)

// large is what a command was told that takes memory: keys or flags, the largest first.
var large struct {
	sync.Mutex
	names []string
}

// takesMemory says what can be lowered should memory not be enough.
func takesMemory(names ...string) {
	large.Lock()
	defer large.Unlock()
	large.names = names
}

// refusal is the line about something that does not fit into memory. What err says after that is kept.
func refusal(cause *memory.Error, err error) string {
	large.Lock()
	names := large.names
	large.Unlock()
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
	usual, now := numbers(task.Config(task.Presets()[0])), numbers(c)
	above := func(key string) float64 { return now[key] / max(usual[key], 1) }
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
