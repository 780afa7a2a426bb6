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
	done       chan struct{} // receives when the last chunk is done
	failed     atomic.Pointer[any]
	users      atomic.Int64 // the caller, and those who have yet to take part
}

// idle keeps tasks that no one uses any more.
var idle = sync.Pool{New: func() any { return &task{done: make(chan struct{}, 1)} }}

// leave is called by every user of a task when it is done with it.
func (t *task) leave() {
	if t.users.Add(-1) == 0 {
		t.body = nil
		idle.Put(t)
	}
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
	t := idle.Get().(*task)
	t.chunks, t.n, t.grain, t.body = int64(chunks), n, grain, body
	t.next.Store(0)
	t.left.Store(int64(chunks))
	t.failed.Store(nil)
	t.users.Store(1)
	for range threads - 1 {
		t.users.Add(1)
		select {
		case queue <- t:
		default: // all hands are busy: the caller does it
			t.users.Add(-1)
		}
	}
	t.work()
	<-t.done
	p := t.failed.Load()
	t.leave()
	if p != nil {
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
				t.leave()
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
			t.done <- struct{}{}
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
