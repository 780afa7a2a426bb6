package serve

import (
	"sync"
	"time"
)

// turnLasts is how long a model computes alone. Two models at once are slower than one after the other, since each uses
// all cores; but who takes longer than this must not hold up the others.
const turnLasts = 100 * time.Millisecond

// turns say which models compute: one, beside those that have taken longer than a turn, a few at most.
type turns struct {
	all   chan struct{} // has room for as many as compute at once
	alone chan struct{} // is held by the one whose turn it is
}

func newTurns(most int) *turns { return &turns{make(chan struct{}, most), make(chan struct{}, 1)} }

// enter waits for a turn, which lasts until leave is called.
func (t *turns) enter() (leave func()) {
	t.all <- struct{}{}
	t.alone <- struct{}{}
	over := sync.OnceFunc(func() { <-t.alone })
	timer := time.AfterFunc(turnLasts, over)
	return func() {
		timer.Stop()
		over()
		<-t.all
	}
}
