package envlaws

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/gomlx/gomlx/support/xslices"

	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/internal/rows"
	"github.com/gfnem/gfnem/rng"
)

// all checks every state of an enumerated environment.
func (c *Checker) all(d *gfn.DAG, initial string) {
	states := rows.Of(d.States())
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
					c.Broke(Reach, "backward action %d leads from %s to %s", b, c.show(a.state), c.show(m.to))
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
		if n > c.Env.Steps() {
			c.Broke(Steps, "%d actions lead to %s", n, c.show(states[i]))
		}
	}
}

// laws checks what can be said of one state.
func (c *Checker) laws(a answer, initial string) {
	s := c.show(a.state)
	if a.state != initial && len(legal(a.prev)) == 0 {
		c.Broke(Others, "none is legal in %s", s)
	}
	for b, m := range a.prev {
		if m.legal && a.state == initial {
			c.Broke(Initial, "action %d is legal in %s", b, s)
		}
		if m.legal && (!m.allowed || m.end != a.state) {
			c.Broke(Redo, "s = %s, b = %d: action %s", s, b, c.way(m))
		}
	}
	for act, m := range a.next {
		if m.legal && (!m.allowed || m.end != a.state) {
			c.Broke(Undo, "s = %s, a = %d: backward action %s", s, act, c.way(m))
		}
	}
	c.distinct(Children, a.state, a.next)
	c.distinct(Parents, a.state, a.prev)
}

// way prints where the return of a move leads.
func (c *Checker) way(m move) string {
	return fmt.Sprintf("%d (legal: %t) leads from %s to %s", m.reverse, m.allowed, c.show(m.to), c.show(m.end))
}

// distinct checks that no two legal moves lead to the same state.
func (c *Checker) distinct(law, state string, moves []move) {
	first := map[string]int{}
	for i, m := range moves {
		if !m.legal {
			continue
		}
		if j, ok := first[m.to]; ok {
			c.Broke(law, "%d and %d lead from %s to %s", j, i, c.show(state), c.show(m.to))
		}
		first[m.to] = i
	}
}

// alone asks again for each state, in a batch of its own. What illegal moves do does not matter.
func (c *Checker) alone(answers []answer) {
	for _, a := range answers {
		got, ok := c.ask([]string{a.state}, 1)
		if !ok {
			return
		}
		same := func(kind string, together, alone []move) {
			for i, m := range together {
				if m.legal != alone[i].legal || m.legal && m != alone[i] {
					c.Broke(Rows, "%s %d in %s is not the same alone", kind, i, c.show(a.state))
				}
			}
		}
		same("action", a.next, got[0].next)
		same("backward action", a.prev, got[0].prev)
	}
}

// walk checks the states on random walks from the initial state to the end and, on another way, back.
func (c *Checker) walk(initial string, first answer) {
	r := rng.New(c.Seed, "envtest")
	at := slices.Repeat([]answer{first}, Walks)
	if at, ok := c.steps(r, at, initial, func(a answer) []move { return legal(a.next) }); ok {
		c.steps(r, at, initial, func(a answer) []move { return legal(a.prev) })
	}
}

// steps takes Steps() random moves from each state, after which there must be none.
func (c *Checker) steps(r *rand.Rand, at []answer, initial string, moves func(answer) []move) ([]answer, bool) {
	for step := 0; ; step++ {
		for _, a := range at {
			c.laws(a, initial)
		}
		c.alone(at[:1])
		if step == c.Env.Steps() {
			break
		}
		states := xslices.Map(at, func(a answer) string {
			if m := moves(a); len(m) > 0 {
				return m[r.IntN(len(m))].to
			}
			return a.state
		})
		var ok bool
		if at, ok = c.ask(states, size); !ok {
			return nil, false
		}
	}
	for _, a := range at {
		if len(moves(a)) > 0 {
			c.Broke(Steps, "after %d actions, forward or back, there are more in %s", c.Env.Steps(), c.show(a.state))
		}
	}
	return at, true
}

func legal(moves []move) []move {
	return slices.DeleteFunc(slices.Clone(moves), func(m move) bool { return !m.legal })
}
