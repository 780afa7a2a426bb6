package envtest

import (
	"math/rand/v2"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/gfn/internal/rowbytes"
	"github.com/gfnem/gfnem/rng"
)

// all checks every state of an enumerated environment.
func (c *checker) all(d *gfn.DAG, initial string) {
	states := rowbytes.Of(d.States())
	known := make(map[string]bool, len(states))
	for _, s := range states {
		known[s] = true
	}
	for from := 0; from < len(states); from += size {
		answers, ok := c.ask(states[from:min(from+size, len(states))], size)
		if !ok {
			return
		}
		for _, a := range answers {
			c.laws(a, initial)
			for b, m := range a.prev {
				if m.legal && !known[m.to] {
					c.broke(lawReach, "backward action %d leads from %s to %s", b, c.show(a.state), c.show(m.to))
				}
			}
		}
		c.alone(answers[:min(len(answers), 1+singles*size/len(states))])
	}
	depth := make([]int, len(states)) // the longest path to each state
	for _, e := range d.Edges {
		depth[e.To] = max(depth[e.To], depth[e.From]+1)
	}
	for i, n := range depth {
		if n > c.env.Steps() {
			c.broke(lawSteps, "%d actions lead to %s", n, c.show(states[i]))
		}
	}
}

// laws checks what can be said of one state.
func (c *checker) laws(a answer, initial string) {
	s := c.show(a.state)
	var anyBack bool
	for b, m := range a.prev {
		anyBack = anyBack || m.legal
		if m.legal && a.state == initial {
			c.broke(lawInitial, "action %d is legal in %s", b, s)
		}
		if m.legal && (!m.allowed || m.end != a.state) {
			c.broke(lawRedo, "s = %s, b = %d: action %d (legal: %t) leads from %s to %s", s, b, m.reverse, m.allowed, c.show(m.to), c.show(m.end))
		}
	}
	if !anyBack && a.state != initial {
		c.broke(lawOthers, "none is legal in %s", s)
	}
	for act, m := range a.next {
		if m.legal && (!m.allowed || m.end != a.state) {
			c.broke(lawUndo, "s = %s, a = %d: backward action %d (legal: %t) leads from %s to %s", s, act, m.reverse, m.allowed, c.show(m.to), c.show(m.end))
		}
	}
	c.distinct(lawChildren, a.state, a.next)
	c.distinct(lawParents, a.state, a.prev)
}

// distinct checks that no two legal moves lead to the same state.
func (c *checker) distinct(law, state string, moves []move) {
	first := map[string]int{}
	for i, m := range moves {
		if !m.legal {
			continue
		}
		if j, ok := first[m.to]; ok {
			c.broke(law, "%d and %d lead from %s to %s", j, i, c.show(state), c.show(m.to))
		}
		first[m.to] = i
	}
}

// alone asks again for each state, in a batch of its own.
func (c *checker) alone(answers []answer) {
	for _, a := range answers {
		got, ok := c.ask([]string{a.state}, 1)
		if !ok {
			return
		}
		same(a.next, got[0].next, func(i int) {
			c.broke(lawRows, "action %d in %s is not the same alone", i, c.show(a.state))
		})
		same(a.prev, got[0].prev, func(i int) {
			c.broke(lawRows, "backward action %d in %s is not the same alone", i, c.show(a.state))
		})
	}
}

// same compares moves; what illegal ones do does not matter.
func same(a, b []move, differ func(i int)) {
	for i := range a {
		if a[i].legal != b[i].legal || a[i].legal && a[i] != b[i] {
			differ(i)
		}
	}
}

// walk checks the states on random walks from the initial state to the end and, on another way, back.
func (c *checker) walk(initial string, first answer) {
	r := rng.New(seed, "envtest")
	at := make([]answer, walks)
	for i := range at {
		at[i] = first
	}
	if at, ok := c.moves(r, at, initial, func(a answer) []move { return a.next }); ok {
		c.moves(r, at, initial, func(a answer) []move { return a.prev })
	}
}

// moves takes Steps() random moves from each state, after which none must be legal.
func (c *checker) moves(r *rand.Rand, at []answer, initial string, side func(answer) []move) ([]answer, bool) {
	for step := 0; ; step++ {
		for _, a := range at {
			c.laws(a, initial)
		}
		c.alone(at[:1])
		if step == c.env.Steps() {
			break
		}
		states := make([]string, len(at))
		for i, a := range at {
			states[i] = a.state
			if m := legal(side(a)); len(m) > 0 {
				states[i] = m[r.IntN(len(m))].to
			}
		}
		var ok bool
		if at, ok = c.ask(states, size); !ok {
			return nil, false
		}
	}
	for _, a := range at {
		if len(legal(side(a))) > 0 {
			c.broke(lawSteps, "after %d actions, forward or back, there are more in %s", c.env.Steps(), c.show(a.state))
		}
	}
	return at, true
}

func legal(moves []move) []move {
	var out []move
	for _, m := range moves {
		if m.legal {
			out = append(out, m)
		}
	}
	return out
}
