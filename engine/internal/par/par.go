// Package par divides work among a fixed pool of goroutines.
//
// How work is cut into chunks depends on its size alone, never on the number of threads, so a computation whose chunks
// are independent, or are combined in order, gives the same bits whatever GOMAXPROCS is.
package par

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// task is one call of For. Whoever takes part draws chunk numbers until there are none left.
type task struct {
	next, left atomic.Int64
	chunks     int64
	n, grain   int
	body       func(lo, hi int)
	done       chan struct{}
	failed     atomic.Pointer[any]
}

var (
	start sync.Once
	queue chan *task
)

// For calls body on chunks [lo,hi) of [0,n), of grain elements each (the last one may be shorter). Chunks run at the same
// time if there are several and GOMAXPROCS allows it; For returns when all are done. A panic of body is raised in the
// caller. Body may call For.
func For(n, grain int, body func(lo, hi int)) {
	if n <= 0 {
		return
	}
	chunks := (n + grain - 1) / grain
	threads := min(runtime.GOMAXPROCS(0), chunks)
	if threads == 1 {
		for lo := 0; lo < n; lo += grain {
			body(lo, min(lo+grain, n))
		}
		return
	}
	start.Do(launch)
	t := &task{chunks: int64(chunks), n: n, grain: grain, body: body, done: make(chan struct{})}
	t.left.Store(int64(chunks))
	for range threads - 1 {
		select {
		case queue <- t:
		default: // all hands are busy: the caller does it
		}
	}
	t.work()
	if t.left.Load() > 0 {
		<-t.done
	}
	if p := t.failed.Load(); p != nil {
		panic(*p)
	}
}

// launch starts the pool, one goroutine per core; it lives as long as the program.
func launch() {
	workers := runtime.NumCPU()
	queue = make(chan *task, workers)
	for range workers {
		go func() {
			for t := range queue {
				t.work()
			}
		}()
	}
}

// work runs chunks until none is left.
func (t *task) work() {
	for {
		c := t.next.Add(1) - 1
		if c >= t.chunks {
			return
		}
		t.chunk(int(c))
		if t.left.Add(-1) == 0 {
			close(t.done)
		}
	}
}

func (t *task) chunk(c int) {
	defer func() {
		if p := recover(); p != nil {
			t.failed.CompareAndSwap(nil, &p)
		}
	}()
	t.body(c*t.grain, min((c+1)*t.grain, t.n))
}
