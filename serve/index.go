package serve

import (
	"cmp"
	"context"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gfnem/gfnem/run/catalog"
)

// How often the folder is looked at while somebody watches: for new runs and for what runs log.
const (
	listEvery = 3 * time.Second
	logEvery  = time.Second
)

// index knows the runs below a folder and the curves of all their metrics. Curves are read once; later only what was
// added.
type index struct {
	dir  string
	most int64 // bytes of curves, see keep.go
	log  func(line string)

	clock atomic.Uint64 // counts requests for curves
	held  atomic.Int64  // bytes of curves

	mu      sync.Mutex
	runs    []catalog.Run
	entries map[string]*entry // by folder
	version uint64            // of all that it knows
	reading int               // runs whose curves have not been read whole yet
	changed chan struct{}     // closed at the next change
	watched int               // clients
	wake    chan struct{}
	listed  chan struct{}    // closed when the folder has been looked at
	known   map[string]known // belongs to the goroutine that lists
}

func newIndex(dir string, most int64, log func(string)) *index {
	return &index{
		dir: dir, most: most, log: log, entries: map[string]*entry{}, changed: make(chan struct{}), wake: make(chan struct{}, 1),
		listed: make(chan struct{}),
	}
}

// run looks at the folder until the context ends: at once, and then as often as clients watch.
func (x *index) run(ctx context.Context) {
	var listed time.Time
	for {
		if first := listed.IsZero(); time.Since(listed) >= listEvery {
			x.list()
			if listed = time.Now(); first {
				close(x.listed)
			}
		}
		x.read(ctx)
		if x.pause(ctx); ctx.Err() != nil {
			return
		}
	}
}

// pause waits until it is time to look again.
func (x *index) pause(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-x.wake:
			return
		case <-time.After(logEvery):
			if x.isWatched() {
				return
			}
		}
	}
}

// poke ends a pause.
func (x *index) poke() {
	select {
	case x.wake <- struct{}{}:
	default:
	}
}

func (x *index) isWatched() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.watched > 0
}

// watch says that a client wants to see changes, until it calls what is returned.
func (x *index) watch() (stop func()) {
	x.mu.Lock()
	x.watched++
	x.mu.Unlock()
	x.poke()
	return func() {
		x.mu.Lock()
		x.watched--
		x.mu.Unlock()
	}
}

// next returns the version, and a channel that is closed when there is another one.
func (x *index) next() (version uint64, changed <-chan struct{}, reading int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.version, x.changed, x.reading
}

// note says that something has changed; the lock is held.
func (x *index) note() {
	x.version++
	close(x.changed)
	x.changed = make(chan struct{})
}

// list finds runs.
func (x *index) list() {
	runs, err := catalog.Folders(x.dir)
	if err != nil {
		x.log("warning: " + err.Error())
		return
	}
	x.refresh(runs)
	x.mu.Lock()
	defer x.mu.Unlock()
	entries := make(map[string]*entry, len(runs))
	x.reading = 0
	for _, r := range runs {
		e := x.entries[r.Dir]
		if e == nil {
			e = newEntry(r.Dir, x.most/4, &x.held)
		}
		if entries[r.Dir] = e; !e.isWhole() {
			x.reading++
		}
	}
	for dir, e := range x.entries {
		if entries[dir] == nil {
			e.forget()
		}
	}
	same := slices.EqualFunc(runs, x.runs, func(a, b catalog.Run) bool {
		return a.Dir == b.Dir && a.Status == b.Status && a.Step == b.Step && a.Wrong == b.Wrong && a.Updated.Equal(b.Updated)
	})
	if x.runs, x.entries = runs, entries; !same {
		x.note()
	}
}

// refresh opens runs that are new or may have changed, and takes the others as they were.
func (x *index) refresh(runs []catalog.Run) {
	marks := make([]string, len(runs))
	inParts(len(runs), func(i int) {
		if runs[i].Status != "" {
			return
		}
		marks[i] = catalog.Mark(runs[i].Dir)
		if old, ok := x.known[runs[i].Dir]; ok && old.mark == marks[i] && old.run.Status != catalog.Running {
			runs[i] = old.run
		} else {
			runs[i] = catalog.Open(runs[i].Dir)
		}
	})
	x.known = make(map[string]known, len(runs))
	for i, r := range runs {
		x.known[r.Dir] = known{r, marks[i]}
	}
}

// known is a run as it was when it had a mark.
type known struct {
	run  catalog.Run
	mark string
}

func (x *index) all() []*entry {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Collect(maps.Values(x.entries))
}

// read reads what runs have logged: first what is asked for again, then those that log little.
func (x *index) read(ctx context.Context) {
	var todo []func() (more bool)
	for e, names := range x.wants() {
		todo = append(todo, func() bool { return e.again(names) })
	}
	all, size := x.all(), map[*entry]int64{}
	for _, e := range all {
		if info, err := os.Stat(filepath.Join(e.dir, "metrics.jsonl")); err == nil {
			size[e] = info.Size()
		}
	}
	slices.SortFunc(all, func(a, b *entry) int { return cmp.Or(cmp.Compare(size[a], size[b]), cmp.Compare(a.dir, b.dir)) })
	for _, e := range all {
		todo = append(todo, func() bool {
			first := !e.isWhole()
			more := e.read()
			if first {
				x.mu.Lock()
				x.reading--
				x.mu.Unlock()
			}
			return more
		})
	}
	var next atomic.Int64
	var wg sync.WaitGroup
	for range max(1, runtime.GOMAXPROCS(0)-1) { // requests are answered meanwhile
		wg.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= len(todo) {
					return
				}
				if todo[i]() {
					x.makeRoom()
					x.mu.Lock()
					x.note()
					x.mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	x.makeRoom() // requests have looked at places
}

// snapshot returns the runs as they are known, as soon as the folder has been looked at for the first time.
func (x *index) snapshot(ctx context.Context) (runs []catalog.Run, version uint64, reading int) {
	select {
	case <-x.listed:
	case <-ctx.Done():
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	runs = slices.Clone(x.runs)
	for i := range runs {
		runs[i].Last = x.entries[runs[i].Dir].lasts(runs[i].Last)
	}
	return runs, x.version, x.reading
}

func (x *index) entry(dir string) *entry {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.entries[dir]
}
