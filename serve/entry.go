package serve

import (
	"cmp"
	"maps"
	"sync"
	"sync/atomic"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/run"
	"github.com/gfnem/gfnem/run/catalog"
)

// mostNames is how many metrics of a run are known: each takes memory, even without its curve.
const mostNames = 5000

// entry is what is known of the metrics of a run.
type entry struct {
	dir      string
	most     int64         // bytes that its curves may take while they are being read
	held     *atomic.Int64 // bytes of the curves of all runs
	follower catalog.Follower
	reader   sync.Mutex // who reads

	mu     sync.Mutex
	curves map[string]*curve
	beyond bool            // there are more than mostNames
	wanted map[string]bool // of those that were let go and are asked for again
	glance glance
	whole  bool
	wrong  string
	unread string // what keeps curves from being read again
	bytes  int64  // of these curves, as held has them
}

// glance is a curve from a few places of the journal, until all has been read.
type glance struct {
	name string
	*curve
}

func newEntry(dir string, most int64, held *atomic.Int64) *entry {
	return &entry{dir: dir, most: most, held: held, follower: catalog.Follower{Dir: dir}, curves: map[string]*curve{}}
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
	var fresh *reading // nil unless it is read from the beginning
	if first {
		fresh = &reading{curves: map[string]*curve{}, most: e.most}
	}
	var added []value
	names := map[string]string{}
	err := e.follower.Next(func() {
		fresh, added, more = &reading{curves: map[string]*curve{}, most: e.most}, nil, true
	}, func(step float64, name []byte, y float64) {
		more = true
		if fresh != nil {
			fresh.put(name, step, y)
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
	if fresh != nil {
		for name, c := range fresh.curves {
			if old := e.curves[name]; old != nil {
				c.asked = old.asked
			}
		}
		if c := fresh.curves[e.glance.name]; c != nil && e.glance.curve != nil {
			c.asked = max(c.asked, e.glance.asked)
		}
		e.curves, e.beyond, e.wanted, e.unread = fresh.curves, fresh.beyond, nil, ""
	}
	if e.beyond {
		err = badinput.Errorf("%s has more than %d metrics: the others are left out", e.dir, mostNames)
	}
	wrong := e.wrong
	if e.wrong = ""; err != nil {
		e.wrong = err.Error()
	}
	e.whole = true
	if more || first {
		e.glance = glance{}
		e.account()
	}
	return more || first || wrong != e.wrong
}

// account says how many bytes the curves take; the lock is held.
func (e *entry) account() {
	bytes := sizeOf(e.curves)
	if e.glance.curve != nil {
		bytes += e.glance.bytes()
	}
	e.held.Add(bytes - e.bytes)
	e.bytes = bytes
}

// forget drops all curves of a run that is not there any more.
func (e *entry) forget() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.curves, e.glance, e.whole = map[string]*curve{}, glance{}, true
	e.account()
}

// reading is curves that are being read from the beginning.
type reading struct {
	curves map[string]*curve
	most   int64
	beyond bool
	values int
}

func (r *reading) put(name []byte, x, y float64) {
	r.beyond = put(r.curves, name, x, y) || r.beyond
	if r.values++; r.values%addedAtOnce == 0 && sizeOf(r.curves) > r.most {
		for i, name := range sortedNames(r.curves) { // each second one, so that some of all kinds stay
			if i%2 == 1 {
				r.curves[name].letGo()
			}
		}
	}
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
		e.beyond = put(e.curves, []byte(v.name), v.x, v.y) || e.beyond
	}
}

// put adds a value to the curve of a name; beyond says that there are too many names.
func put(curves map[string]*curve, name []byte, x, y float64) (beyond bool) {
	c := curves[string(name)]
	if c == nil {
		if len(curves) >= mostNames {
			return true
		}
		c = &curve{}
		curves[string(name)] = c
	}
	c.add(x, y)
	return false
}

// places are where a run is looked at before it has been read: enough for a picture.
const places = 24

// look shows a metric's curve to a function, which must not keep it, and says whether it is whole. When it was asked
// for is noted. A curve that was let go is asked for, and shown from a few places until it is there again.
func (e *entry) look(name string, now uint64, f func(c *curve)) (whole bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	one := e.curves[name]
	if one != nil {
		one.asked = max(one.asked, now)
	}
	if e.whole && (one == nil || !one.gone) {
		if one != nil {
			f(one)
		}
		return true
	}
	if e.whole && e.wanted == nil {
		e.wanted = map[string]bool{}
	}
	if e.whole {
		e.wanted[name] = true
	}
	if e.glance.curve == nil || e.glance.name != name {
		e.glance = glance{name, &curve{}}
		catalog.Glimpse(e.dir, places, func(step float64, other []byte, y float64) {
			if string(other) == name {
				e.glance.add(step, y)
			}
		})
		e.account()
	}
	e.glance.asked = now
	f(e.glance.curve)
	return false
}

// lasts adds the last values of metrics to those that are known from the end of the journal.
func (e *entry) lasts(known run.Values) run.Values {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.whole || len(e.curves) <= len(known) {
		return known
	}
	all := maps.Clone(known)
	if all == nil {
		all = run.Values{}
	}
	for name, c := range e.curves {
		if _, ok := all[name]; !ok {
			all[name] = c.last
		}
	}
	return all
}

// problem says what could not be read.
func (e *entry) problem() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return cmp.Or(e.wrong, e.unread)
}
