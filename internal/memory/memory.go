// Package memory knows how much memory the process may use, and refuses what would need more, before it is allocated.
//
// Where much is allocated, and where a program is compiled, Need or Fits is asked first. What grows little by little is
// seen by Guard.
package memory

import (
	"cmp"
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/gfnem/gfnem/badinput"
)

// Large is the size from which an allocation is worth asking for.
const Large = 1 << 20

// Error says that something needs more memory than there is.
type Error struct {
	What  string
	Bytes float64  // that would be used in all
	Room  float64  // that there is
	Of    string   // what sets the limit
	Lower []string // the keys that alone matter, if they are known
}

func (e *Error) Error() string {
	what := cmp.Or(e.What, "a tensor")
	return fmt.Sprintf("%s needs %s of memory, and %s leaves %s", what, size(e.Bytes), e.Of, size(e.Room))
}

// size writes a number of bytes, in GiB from one on.
func size(bytes float64) string {
	if bytes < 1<<30 {
		return fmt.Sprintf("%.0f MiB", bytes/(1<<20))
	}
	return fmt.Sprintf("%.2f GiB", bytes/(1<<30))
}

// limit is one of the limits of a process.
type limit struct {
	bytes float64
	of    string
	used  func() float64
}

// room is what may be used. A little is left for what is not asked for: stacks, tables of the runtime, small objects.
func (l limit) room() float64 { return l.bytes - l.bytes/16 - 32<<20 }

var (
	forced atomic.Bool
	// limits are those of the process, the least first.
	limits = sync.OnceValue(func() []limit {
		all := system()
		if soft := debug.SetMemoryLimit(-1); soft < math.MaxInt64 {
			all = append(all, limit{float64(soft), "GOMEMLIMIT", resident})
		}
		all = slices.DeleteFunc(all, func(l limit) bool { return !(l.bytes > 0) })
		slices.SortStableFunc(all, func(a, b limit) int { return cmp.Compare(a.bytes, b.bytes) })
		return all
	})
)

// Force lets everything be allocated from now on.
func Force() { forced.Store(true) }

// least returns the smallest limit, and false if there is none, or none that matters.
func least() (limit, bool) {
	if forced.Load() || len(limits()) == 0 {
		return limit{}, false
	}
	return limits()[0], true
}

// Need returns an error, of badinput, if what is used now leaves no room for something else. Its size is the product of
// factors, which may exceed any integer.
func Need(what string, factors ...int) error {
	n := product(factors)
	if n < Large || forced.Load() {
		return nil
	}
	clean := false
	for _, l := range limits() {
		if l.used()+n <= l.room() {
			continue
		}
		if !clean {
			debug.FreeOSMemory()
			clean = true
		}
		if used := l.used(); used+n > l.room() {
			return badinput.Errorf("%w", &Error{What: what, Bytes: used + n, Room: l.room(), Of: l.of})
		}
	}
	return nil
}

// Fits returns an error, of badinput, if something of so many bytes has no room even while nothing else is there. Keys to
// lower may be given, if no others matter.
func Fits(what string, bytes float64, lower ...string) error {
	if l, ok := least(); ok && bytes > l.room() {
		return badinput.Errorf("%w", &Error{what, bytes, l.room(), l.of, lower})
	}
	return nil
}

// Must panics where Need returns an error.
func Must(what string, factors ...int) {
	if err := Need(what, factors...); err != nil {
		panic(err)
	}
}

func product(factors []int) float64 {
	n := 1.0
	for _, f := range factors {
		n *= float64(f)
	}
	return n
}

// Guard makes the garbage collector keep the process below its limit, and calls stop, once, when that has become
// impossible. The process is about to be killed then.
func Guard(stop func(error)) {
	l, ok := least()
	if !ok {
		return
	}
	debug.SetMemoryLimit(min(debug.SetMemoryLimit(-1), int64(l.room())))
	watch(func() bool {
		if live := alive(); live > l.room() && !forced.Load() {
			stop(badinput.Errorf("%w", &Error{What: "the process", Bytes: live, Room: l.room(), Of: l.of}))
			return false
		}
		return true
	})
}

// watch calls f after every garbage collection, as long as it returns true.
func watch(f func() bool) {
	type sentinel struct{ _ *int }
	var arm func()
	arm = func() {
		runtime.SetFinalizer(&sentinel{}, func(*sentinel) {
			if f() {
				arm()
			}
		})
	}
	arm()
}

// resident is what the runtime has taken from the system, without free memory, which serves first.
func resident() float64 {
	m := read("/memory/classes/total:bytes", "/memory/classes/heap/released:bytes", "/memory/classes/heap/free:bytes")
	return m[0] - m[1] - m[2]
}

// alive is resident without garbage.
func alive() float64 {
	m := read("/gc/heap/live:bytes", "/memory/classes/heap/objects:bytes", "/memory/classes/heap/unused:bytes")
	return resident() + m[0] - m[1] - m[2]
}

// read reads metrics of the runtime.
func read(names ...string) []float64 {
	s, out := make([]metrics.Sample, len(names)), make([]float64, len(names))
	for i, name := range names {
		s[i].Name = name
	}
	metrics.Read(s)
	for i := range s {
		out[i] = float64(s[i].Value.Uint64())
	}
	return out
}

// Taken is what the process has taken from the system so far, without what serves first when more is needed.
func Taken() float64 { return resident() }

// Room is what may be taken in all, and what sets that limit; false if nothing does.
func Room() (bytes float64, of string, ok bool) {
	l, ok := least()
	if !ok {
		return 0, "", false
	}
	return l.room(), l.of, true
}

// Size writes a number of bytes for a person.
func Size(bytes float64) string { return size(bytes) }
