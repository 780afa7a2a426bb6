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
	dir string
	log func(line string)

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

// entry is what is known of the metrics of a run.
type entry struct {
	dir      string
	follower catalog.Follower
	reader   sync.Mutex // who reads

	mu     sync.Mutex
	curves map[string]*curve
	glance map[string]*curve // from a few places, until all has been read
	whole  bool
	wrong  string
}

func newEntry(dir string) *entry {
	return &entry{dir: dir, follower: catalog.Follower{Dir: dir}, curves: map[string]*curve{}}
}

func newIndex(dir string, log func(string)) *index {
	return &index{
		dir: dir, log: log, entries: map[string]*entry{}, changed: make(chan struct{}), wake: make(chan struct{}, 1),
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
		for first := true; first || !x.isWatched(); first = false {
			select {
			case <-ctx.Done():
				return
			case <-time.After(logEvery):
			case <-x.wake:
			}
		}
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
	select {
	case x.wake <- struct{}{}:
	default:
	}
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
			e = newEntry(r.Dir)
		}
		if entries[r.Dir] = e; !e.isWhole() {
			x.reading++
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
	var wg sync.WaitGroup
	marks := make([]string, len(runs))
	part := len(runs)/runtime.GOMAXPROCS(0) + 1
	for from := 0; from < len(runs); from += part {
		wg.Go(func() {
			for i := from; i < min(from+part, len(runs)); i++ {
				if runs[i].Status != "" {
					continue
				}
				marks[i] = catalog.Mark(runs[i].Dir)
				if old, ok := x.known[runs[i].Dir]; ok && old.mark == marks[i] && old.run.Status != catalog.Running {
					runs[i] = old.run
				} else {
					runs[i] = catalog.Open(runs[i].Dir)
				}
			}
		})
	}
	wg.Wait()
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

// read reads what runs have logged, those that log little first.
func (x *index) read(ctx context.Context) {
	x.mu.Lock()
	all := slices.Collect(maps.Values(x.entries))
	x.mu.Unlock()
	size := map[*entry]int64{}
	for _, e := range all {
		if info, err := os.Stat(filepath.Join(e.dir, "metrics.jsonl")); err == nil {
			size[e] = info.Size()
		}
	}
	slices.SortFunc(all, func(a, b *entry) int { return cmp.Or(cmp.Compare(size[a], size[b]), cmp.Compare(a.dir, b.dir)) })
	todo := make(chan *entry)
	var wg sync.WaitGroup
	for range max(1, runtime.GOMAXPROCS(0)-1) { // requests are answered meanwhile
		wg.Go(func() {
			for e := range todo {
				first := !e.isWhole()
				if e.read() {
					x.mu.Lock()
					if first {
						x.reading--
					}
					x.note()
					x.mu.Unlock()
				}
			}
		})
	}
	for _, e := range all {
		if ctx.Err() != nil {
			break
		}
		todo <- e
	}
	close(todo)
	wg.Wait()
}

func (e *entry) isWhole() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.whole
}

// addedAtOnce is how many values are added to curves that others look at in one go.
const addedAtOnce = 1 << 16

// read reads what was added, and says whether there was anything. What is read from the beginning replaces all curves
// at the end; what was added since goes to them bit by bit.
func (e *entry) read() (more bool) {
	e.reader.Lock()
	defer e.reader.Unlock()
	first := !e.isWhole()
	var fresh map[string]*curve // nil unless it is read from the beginning
	if first {
		fresh = map[string]*curve{}
	}
	var added []value
	names := map[string]string{}
	err := e.follower.Next(func() {
		fresh, added, more = map[string]*curve{}, nil, true
	}, func(step float64, name []byte, y float64) {
		more = true
		if fresh != nil {
			put(fresh, name, step, y)
			return
		}
		text, ok := names[string(name)]
		if !ok {
			text = string(name)
			names[text] = text
		}
		if added = append(added, value{text, step, y}); len(added) == addedAtOnce {
			e.add(added)
			added = added[:0]
		}
	})
	e.add(added)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.wrong = ""; err != nil {
		e.wrong = err.Error()
	}
	if fresh != nil {
		e.curves = fresh
	}
	e.whole, e.glance = true, nil
	return more || first
}

// value is one that was logged.
type value struct {
	name string
	x, y float64
}

// add adds values to curves.
func (e *entry) add(all []value) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, v := range all {
		put(e.curves, []byte(v.name), v.x, v.y)
	}
}

// put adds a value to the curve of a name.
func put(curves map[string]*curve, name []byte, x, y float64) {
	c := curves[string(name)]
	if c == nil {
		c = &curve{}
		curves[string(name)] = c
	}
	c.add(x, y)
}

// places are where a run is looked at before it has been read: enough for a picture.
const places = 24

// curve returns a copy of a metric's curve, and whether it is whole.
func (e *entry) curve(name string) (c curve, whole bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	from := e.curves
	if !e.whole {
		if e.glance == nil {
			glance := map[string]*curve{}
			catalog.Glimpse(e.dir, places, func(step float64, name []byte, y float64) {
				put(glance, name, step, y)
			})
			e.glance = glance
		}
		from = e.glance
	}
	if one := from[name]; one != nil {
		c = *one
		c.cells = slices.Clone(one.cells)
	}
	return c, e.whole
}

// snapshot returns the runs as they are known, as soon as the folder has been looked at for the first time.
func (x *index) snapshot(ctx context.Context) (runs []catalog.Run, version uint64, reading int) {
	select {
	case <-x.listed:
	case <-ctx.Done():
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.runs, x.version, x.reading
}

func (x *index) entry(dir string) *entry {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.entries[dir]
}
