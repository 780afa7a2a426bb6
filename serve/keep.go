package serve

import (
	"cmp"
	"maps"
	"slices"
)

// Curves take memory: about 40 KB for each metric of a long run. All of them together take no more bytes than they may;
// those that nobody has asked for lately are let go, and read again from the journal when they are asked for.

// letGo drops the cells of a curve, which is known by its last value from then on.
func (c *curve) letGo() { c.cells, c.logs, c.width, c.gone = nil, nil, 0, true }

func sizeOf(curves map[string]*curve) (bytes int64) {
	for name, c := range curves {
		bytes += int64(len(name)) + c.bytes()
	}
	return bytes
}

func sortedNames(curves map[string]*curve) []string { return slices.Sorted(maps.Keys(curves)) }

// held is a curve that can be let go.
type held struct {
	*entry
	name   string
	places bool // it is the entry's glance
	asked  uint64
	bytes  int64
}

// holds lists all curves that are there, those first that were asked for longest ago.
func (x *index) holds() (all []held) {
	for _, e := range x.all() {
		e.mu.Lock()
		for name, c := range e.curves {
			if !c.gone {
				all = append(all, held{e, name, false, c.asked, c.bytes()})
			}
		}
		if e.glance.curve != nil {
			all = append(all, held{e, e.glance.name, true, e.glance.asked, e.glance.bytes()})
		}
		e.mu.Unlock()
	}
	slices.SortFunc(all, func(a, b held) int {
		return cmp.Or(cmp.Compare(a.asked, b.asked), cmp.Compare(b.name, a.name), cmp.Compare(b.dir, a.dir))
	})
	return all
}

// makeRoom lets curves go if they take too much, down to four fifths of that.
func (x *index) makeRoom() {
	if x.held.Load() <= x.most {
		return
	}
	for _, h := range x.holds() {
		if x.held.Load() <= x.most/5*4 {
			return
		}
		h.mu.Lock()
		if h.places {
			h.glance = glance{}
		} else if c := h.curves[h.name]; c != nil {
			c.letGo()
		}
		h.account()
		h.mu.Unlock()
	}
}

// wants returns the entries with curves that were let go and are asked for, as far as there is room beside those that
// were asked for at the same time or later: others would be let go for them, and come back, without an end.
func (x *index) wants() map[*entry][]string {
	type want struct {
		*entry
		name  string
		asked uint64
	}
	var wanted []want
	for _, e := range x.all() {
		e.mu.Lock()
		for name := range e.wanted {
			if c := e.curves[name]; c != nil && c.gone {
				wanted = append(wanted, want{e, name, c.asked})
			}
		}
		e.wanted = nil
		e.mu.Unlock()
	}
	if wanted == nil {
		return nil
	}
	slices.SortFunc(wanted, func(a, b want) int {
		return cmp.Or(cmp.Compare(b.asked, a.asked), cmp.Compare(a.name, b.name), cmp.Compare(a.dir, b.dir))
	})
	all, room := x.holds(), x.most/5*4-x.held.Load()
	out := map[*entry][]string{}
	for _, w := range wanted {
		for len(all) > 0 && all[0].asked < w.asked && room < longCurve {
			room += all[0].bytes
			all = all[1:]
		}
		if room < longCurve {
			break
		}
		room -= longCurve
		out[w.entry] = append(out[w.entry], w.name)
	}
	return out
}

// longCurve is what the curve of a long run takes, with the room that slices have beyond their ends.
const longCurve = 256 + cellBytes*(512+192)

// again reads curves of some names from the beginning, as far as the others have been read.
func (e *entry) again(names []string) (more bool) {
	e.reader.Lock()
	defer e.reader.Unlock()
	fresh := map[string]*curve{}
	for _, name := range names {
		fresh[name] = &curve{}
	}
	err := e.follower.Again(func(step float64, name []byte, y float64) {
		if c := fresh[string(name)]; c != nil {
			c.add(step, y)
		}
	})
	e.mu.Lock()
	defer e.mu.Unlock()
	if before := e.unread; err != nil {
		e.unread = err.Error()
		return e.unread != before
	}
	e.unread = ""
	for name, c := range fresh {
		if old := e.curves[name]; old != nil && old.gone {
			c.asked = old.asked
			e.curves[name] = c
		}
	}
	if e.glance.curve != nil && fresh[e.glance.name] != nil {
		e.glance = glance{}
	}
	e.account()
	return true
}
