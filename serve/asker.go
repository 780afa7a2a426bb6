package serve

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/gomlx/compute"

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

// failureLasts is how long a model that cannot be opened is not tried again: so that many requests do not try at once,
// and what was mended is seen.
const failureLasts = 2 * time.Second

// asker asks one model, by one goroutine. Requests that come while it computes wait, and those that can be answered
// together are: so the more clients there are, the larger the batches. Models are asked side by side.
type asker struct {
	open    func(b compute.Backend) (command.Model, error) // opens it, when it is first asked
	backend func() (compute.Backend, error)
	compute chan struct{}      // has room for as many models as compute at once
	counted func(requests int) // is told of each call

	mu      sync.Mutex
	waiting []*job
	busy    bool // a goroutine works on what is waiting
	closed  bool
	idle    *sync.Cond

	// These belong to that goroutine.
	model    command.Model
	stop     *stoppable // what the model computes on
	failed   error      // opening it
	failedAt time.Time
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

// isAwaited says whether somebody still waits for the answer.
func (j *job) isAwaited() bool { return j.ctx.Err() == nil }

// end answers a request with an error.
func (j *job) end(err error) {
	j.err = err
	close(j.done)
}

func newAsker(
	backend func() (compute.Backend, error), open func(compute.Backend) (command.Model, error), compute chan struct{}, counted func(int),
) *asker {
	a := &asker{backend: backend, open: open, compute: compute, counted: counted}
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
		a.compute <- struct{}{}
		jobs := a.next()
		a.answer(jobs)
		<-a.compute // others may come between
		if jobs == nil {
			return
		}
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
		case !j.isAwaited():
			j.end(errTooSlow)
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
	if len(jobs) == 0 {
		return
	}
	answers, err := a.ask(jobs)
	switch {
	case err == nil:
		for i, j := range jobs {
			j.answer = answers[i]
			close(j.done)
		}
	case !slices.ContainsFunc(jobs, (*job).isAwaited): // and so the error may be that nobody waits
		for _, j := range jobs {
			j.end(errTooSlow)
		}
	case len(jobs) == 1:
		jobs[0].end(err)
	default:
		for _, j := range jobs {
			a.answer([]*job{j})
		}
	}
}

// ask calls the model, which it opens if that has not been done; a panic becomes an error.
func (a *asker) ask(jobs []*job) (answers []any, err error) {
	defer crash.Recover(&err)
	if err := a.begin(); err != nil {
		return nil, err
	}
	requests := make([]any, len(jobs))
	for i, j := range jobs {
		requests[i] = j.request
	}
	a.counted(len(requests))
	defer a.stop.asksFor(jobs)()
	return jobs[0].ask(a.model, requests)
}

// begin opens the model. That is not stopped when a request's time is up: else a model that takes longer would never
// open.
func (a *asker) begin() error {
	if a.model != nil {
		return nil
	}
	if a.failed != nil && time.Since(a.failedAt) < failureLasts {
		return a.failed
	}
	b, err := a.backend()
	if err != nil {
		return err
	}
	stop := &stoppable{Backend: b}
	model, err := a.open(stop)
	if err == nil {
		a.model, a.stop, a.failed = model, stop, nil
	} else if isInput(err) { // else it may go better next time
		a.failed, a.failedAt = err, time.Now()
	}
	return err
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
