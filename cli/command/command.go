// Package command is what commands of package cli and commands of tasks share: where they speak, flags that several have,
// and what a task can add to the program.
//
// A command is a struct with the tags of kong (github.com/alecthomas/kong), whose method Run takes a Console.
package command

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"sync"

	"github.com/gomlx/compute"

	"github.com/gfnem/gfnem/backend"
	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/internal/self"
	"github.com/gfnem/gfnem/internal/suggest"
	"github.com/gfnem/gfnem/run"
)

// Console is where a command reads and speaks: its result goes to Out, everything else to Err.
type Console struct {
	In       io.Reader
	Out, Err io.Writer
	Args     []string // the command line, with the program's name
}

// Warn prints warnings, each in a line.
func (c Console) Warn(lines ...string) {
	for _, line := range lines {
		fmt.Fprintln(c.Err, "warning:", line)
	}
}

// PrintJSON writes one object in one line.
func PrintJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// Backend is a flag that chooses what computes.
type Backend struct {
	Backend string `help:"What computes: auto, simd, go, xla, xla:cuda, xla:/path/plugin.so." default:"auto"`
}

// Open opens it.
func (b Backend) Open() (compute.Backend, error) {
	opened, err := backend.Open(b.Backend)
	if err != nil {
		return nil, badinput.Errorf("%w", err)
	}
	return opened, nil
}

// Fallback is a flag that lets a command whose output cannot say which state it comes from use an older one.
type Fallback struct {
	Fallback bool `help:"If the newest checkpoint is damaged, use an older one, with a warning."`
}

// FallbackHelp says when it is needed.
const FallbackHelp = `The newest checkpoint of the run is used. If it is damaged, that is an error: "gfnem resume" makes it again, to the bit;
with --fallback an older one is used, with a warning.`

// Allow warns of checkpoints of a run that were skipped, or refuses to go on with an older one.
func (f Fallback) Allow(c Console, r *run.Run, skipped []string) error {
	if len(skipped) > 0 && !f.Fallback {
		return badinput.Errorf("%s: %s: make it again with %s, or use an older one with --fallback",
			r.Dir(), strings.Join(skipped, "; "), self.Command("resume %s", r.Dir()))
	}
	c.Warn(skipped...)
	return nil
}

// Unknown complains about a name, suggests what may have been meant, and lists what is known if that is not much.
func Unknown(what, name string, known []string) error {
	list := "; known: " + strings.Join(known, ", ")
	near, ok := suggest.Nearest(name, known)
	if !ok {
		return badinput.Errorf("unknown %s %q%s", what, name, list)
	}
	if len(known) > 8 {
		list = ""
	}
	return badinput.Errorf("unknown %s %q; did you mean %q?%s", what, name, near, strings.TrimPrefix(list, ";"))
}

// CheckSeed refuses seeds that a configuration file cannot hold.
func CheckSeed(seed uint64) error {
	if seed > math.MaxInt64 {
		return badinput.Errorf("--seed %d is too large: at most %d", seed, math.MaxInt64)
	}
	return nil
}

// WriteWhole writes the file of --out, as run.WriteFile does, and nothing that is not a file.
func WriteWhole(path string, write func(io.Writer) error) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return badinput.Errorf("--out %s is not a file", path)
	}
	return run.WriteFile(path, write)
}

// Shorten cuts text that is longer than n.
func Shorten(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.TrimRight(s[:n-3], " ,") + "..."
}

// large is what a command was told that takes memory: keys or flags, the largest first.
var large struct {
	sync.Mutex
	names []string
}

// TakesMemory says what can be lowered should memory not be enough.
func TakesMemory(names ...string) {
	large.Lock()
	defer large.Unlock()
	large.names = names
}

// Large returns what TakesMemory was told last.
func Large() []string {
	large.Lock()
	defer large.Unlock()
	return large.names
}
