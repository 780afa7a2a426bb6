package serve

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/cli/command"
	"github.com/gfnem/gfnem/internal/crash"
)

// Errors of requests that are not answered.
var (
	errBusy    = errors.New("too many requests are waiting: try again later")
	errTooSlow = errors.New("the time for this request is up: ask for less, or try again later")
	errClosing = errors.New("the server is shutting down")
)

// mostTogether is how much requests that are answered together ask for, unless one alone asks for more.
const mostTogether = 256

// asker asks one model, by one goroutine. Requests that come while it computes wait, and those that can be answered
// together are: so the more clients there are, the larger the batches.
type asker struct {
	open    func() (command.Model, error) // opens it, when it is first asked
	compute chan struct{}                 // is held while anything computes
	counted func(requests int)            // is told of each call

	mu      sync.Mutex
	waiting []*job
	busy    bool // a goroutine works on what is waiting
	closed  bool
	idle    *sync.Cond

	model  command.Model // belongs to that goroutine
	failed error         // opening it
}

// job is a request that waits.
type job struct {
	ask     func(m command.Model, requests []any) ([]any, error)
	kind    string // those of the same can be answered together; "" with none
	request any
	size    int
	ctx     context.Context
	done    chan struct{}
	answer  any
	err     error
}

func newAsker(open func() (command.Model, error), compute chan struct{}, counted func(int)) *asker {
	a := &asker{open: open, compute: compute, counted: counted}
	a.idle = sync.NewCond(&a.mu)
	return a
}

// do waits for the answer to a request, or for the end of its context.
func (a *asker) do(j *job) (any, error) {
	j.done = make(chan struct{})
	a.mu.Lock()
	if a.closed {
		a.mu.Unlock()
		return nil, errClosing
	}
	a.waiting = append(a.waiting, j)
	if !a.busy {
		a.busy = true
		go a.work()
	}
	a.mu.Unlock()
	select {
	case <-j.done:
		return j.answer, j.err
	case <-j.ctx.Done():
		a.forget(j)
		return nil, errTooSlow
	}
}

// forget drops a request that nobody waits for any more, so that those do not pile up behind one that takes long.
func (a *asker) forget(j *job) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.waiting = slices.DeleteFunc(a.waiting, func(o *job) bool { return o == j })
}

// work answers what is waiting, and ends when nothing is.
func (a *asker) work() {
	for {
		jobs := a.next()
		if jobs == nil {
			return
		}
		a.compute <- struct{}{}
		a.answer(jobs)
		<-a.compute
	}
}

// next takes the requests that are answered by the next call; nil if there are none.
func (a *asker) next() (jobs []*job) {
	a.mu.Lock()
	defer a.mu.Unlock()
	total := 0
	var rest []*job
	for _, j := range a.waiting {
		switch {
		case j.ctx.Err() != nil: // nobody waits for it
			j.err = errTooSlow
			close(j.done)
		case jobs == nil, j.kind != "" && j.kind == jobs[0].kind && total+j.size <= mostTogether:
			jobs, total = append(jobs, j), total+j.size
		default:
			rest = append(rest, j)
		}
	}
	if a.waiting = rest; jobs == nil {
		a.busy = false
		a.idle.Broadcast()
	}
	return jobs
}

// answer answers requests by one call, or one by one if that fails.
func (a *asker) answer(jobs []*job) {
	requests := make([]any, len(jobs))
	for i, j := range jobs {
		requests[i] = j.request
	}
	answers, err := a.ask(jobs[0], requests)
	if err != nil && len(jobs) > 1 {
		for _, j := range jobs {
			a.answer([]*job{j})
		}
		return
	}
	for i, j := range jobs {
		if j.err = err; err == nil {
			j.answer = answers[i]
		}
		close(j.done)
	}
}

// ask calls the model, which it opens if that has not been done; a panic becomes an error.
func (a *asker) ask(j *job, requests []any) (answers []any, err error) {
	defer crash.Recover(&err)
	if a.model == nil && a.failed == nil {
		if a.model, a.failed = a.open(); a.failed != nil && !isInput(a.failed) {
			err, a.failed = a.failed, nil // it may go better next time
			return nil, err
		}
	}
	if a.failed != nil {
		return nil, a.failed
	}
	a.counted(len(requests))
	return j.ask(a.model, requests)
}

func isInput(err error) bool {
	var input *badinput.Error
	return errors.As(err, &input)
}

// close waits until nothing is waiting, and closes the model. Requests that come later fail.
func (a *asker) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	for a.busy {
		a.idle.Wait()
	}
	if a.model != nil {
		a.model.Close()
		a.model = nil
	}
}
