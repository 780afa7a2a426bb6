package serve_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/cli/command"
	"github.com/gfnem/gfnem/run"
	"github.com/gfnem/gfnem/serve"
)

// fake is a task whose models double numbers, as slowly as a test wants.
type fake struct {
	gate   chan struct{} // is received from at each call, if not nil
	gated  string        // of this run alone, if not ""
	broken atomic.Bool   // models cannot be opened
	spins  atomic.Int64  // questions that compute without an end
	calls  atomic.Int64
	open   atomic.Int64
	closed atomic.Int64
}

type (
	doubleRequest struct {
		N int `json:"n"`
	}
	doubled struct {
		Twice int `json:"twice"`
	}
	fakeModel struct {
		*fake
		run     string
		backend compute.Backend
	}
)

func (doubleRequest) Join() string { return "double" }

func (*fake) Name() string                                    { return "fake" }
func (*fake) Presets() []string                               { return []string{"one"} }
func (*fake) Config(string) any                               { return &struct{}{} }
func (*fake) Start(compute.Backend, any) (run.Session, error) { return nil, errors.New("no") }

func (f *fake) Questions() []command.Question {
	return []command.Question{
		command.Ask("double", "Twice a number.", (*fakeModel).double),
		command.AskOne("spin", "Computes without an end.", (*fakeModel).spin),
	}
}

func (f *fake) Inspect(b compute.Backend, r *run.Run) (command.Model, []string, error) {
	if f.broken.Load() {
		return nil, nil, badinput.Errorf("the checkpoint is damaged")
	}
	f.open.Add(1)
	return &fakeModel{f, filepath.Base(r.Dir()), b}, nil, nil
}

// spin runs a program until that fails.
func (m *fakeModel) spin(doubleRequest) (out doubled, err error) {
	m.spins.Add(1)
	defer m.spins.Add(-1)
	e := graph.MustNewExec(m.backend, func(x *graph.Node) *graph.Node { return graph.OnePlus(x) })
	defer e.Finalize()
	for err == nil {
		_, err = e.Call(float32(1))
	}
	return out, err
}

func (m *fakeModel) About() any { return struct{}{} }
func (m *fakeModel) Close()     { m.closed.Add(1) }

func (m *fakeModel) double(all []doubleRequest) (out []doubled, err error) {
	m.calls.Add(1)
	if m.gate != nil && (m.gated == "" || m.gated == m.run) {
		<-m.gate
	}
	for _, q := range all {
		switch {
		case q.N < 0:
			return nil, badinput.Errorf("%d is negative", q.N)
		case q.N == 13:
			panic(errors.New("a mistake"))
		}
		out = append(out, doubled{2 * q.N})
	}
	return out, nil
}

// fakeRuns makes folders of runs of the fake task.
func fakeRuns(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		r, err := run.Create(filepath.Join(dir, name), run.Options{Task: "fake"})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Requests that wait are answered together; each gets its own answer, and one that fails spoils no other.
func TestTogether(t *testing.T) {
	f := &fake{gate: make(chan struct{})}
	s := start(t, serve.Options{Dir: fakeRuns(t, "a"), Tasks: []run.Task{f}, Log: func(string) {}})
	var wg sync.WaitGroup
	const n = 40
	send := func(i int) {
		status, body := post(t, s.URL+"/api/double", fmt.Sprintf(`{"run":"a","n":%d}`, i))
		want := fmt.Sprintf(`{"twice":%d}`, 2*i)
		switch {
		case i < 0 && status != 400, i == 13 && status != 500, i >= 0 && i != 13 && strings.TrimSpace(body) != want:
			t.Errorf("%d: status %d, %s", i, status, body)
		}
	}
	wg.Go(func() { send(0) })
	waitFor(t, func() bool { return f.calls.Load() == 1 }) // it computes, so that all others wait
	for i := 1; i < n; i++ {
		wg.Go(func() { send(i - 3) })
	}
	waiting := func(k int) func() bool {
		return func() bool {
			_, _, text := get(t, s.URL+"/metrics")
			return strings.Contains(text, fmt.Sprintf("gfnem_requests_waiting %d\n", k))
		}
	}
	waitFor(t, waiting(n))
	close(f.gate)
	wg.Wait()
	waitFor(t, waiting(0))
	f.calls.Store(0)
	f.gate = make(chan struct{})
	wg.Go(func() { send(0) })
	waitFor(t, func() bool { return f.calls.Load() == 1 })
	for i := range n {
		wg.Go(func() { send(i + 100) })
	}
	waitFor(t, waiting(n+1))
	close(f.gate)
	wg.Wait()
	if calls := f.calls.Load(); calls > n/2 { // 2, but for requests that are counted as waiting and are still being read
		t.Errorf("%d calls for %d requests that wait", calls, n)
	}
}

func waitFor(t *testing.T, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("not in two minutes")
		}
	}
}

// Too many requests get 429 at once, those that take too long 503.
func TestLimits(t *testing.T) {
	f := &fake{gate: make(chan struct{})}
	s := start(t, serve.Options{Dir: fakeRuns(t, "a"), Tasks: []run.Task{f}, Queue: 3, Timeout: time.Hour})
	var wg sync.WaitGroup
	for i := range 3 {
		wg.Go(func() {
			if status, _ := post(t, s.URL+"/api/double", fmt.Sprintf(`{"run":"a","n":%d}`, i)); status != 200 {
				t.Errorf("a request in the queue: status %d", status)
			}
		})
	}
	waitFor(t, func() bool {
		_, _, text := get(t, s.URL+"/metrics")
		return strings.Contains(text, "gfnem_requests_waiting 3\n")
	})
	for range 3 {
		if status, _ := post(t, s.URL+"/api/double", `{"run":"a","n":1}`); status != 429 {
			t.Errorf("a request beyond the queue: status %d", status)
		}
	}
	close(f.gate)
	wg.Wait()

	f = &fake{gate: make(chan struct{})}
	s = start(t, serve.Options{Dir: fakeRuns(t, "a"), Tasks: []run.Task{f}, Timeout: 200 * time.Millisecond})
	if status, _ := post(t, s.URL+"/api/double", `{"run":"a","n":1}`); status != 503 {
		t.Errorf("a request that takes too long: status %d", status)
	}
	close(f.gate)
}

// A slow question holds up no other model.
func TestSideBySide(t *testing.T) {
	f := &fake{gate: make(chan struct{}), gated: "a"}
	s := start(t, serve.Options{Dir: fakeRuns(t, "a", "b", "c"), Tasks: []run.Task{f}})
	slow := make(chan int)
	go func() {
		status, _ := post(t, s.URL+"/api/double", `{"run":"a","n":1}`)
		slow <- status
	}()
	waitFor(t, func() bool { return f.calls.Load() == 1 })
	for _, name := range []string{"b", "c"} {
		if status, body := post(t, s.URL+"/api/double", fmt.Sprintf(`{"run":%q,"n":1}`, name)); status != 200 {
			t.Errorf("%s: status %d: %s", name, status, body)
		}
	}
	close(f.gate)
	if status := <-slow; status != 200 {
		t.Errorf("the slow question: status %d", status)
	}
}

// A question whose time is up is not computed any more: the model answers others.
func TestStopped(t *testing.T) {
	f := &fake{}
	s := start(t, serve.Options{Dir: fakeRuns(t, "a"), Tasks: []run.Task{f}, Timeout: 2 * time.Second})
	if status, body := post(t, s.URL+"/api/spin", `{"run":"a","n":1}`); status != 503 {
		t.Errorf("status %d: %s", status, body)
	}
	waitFor(t, func() bool { return f.spins.Load() == 0 })
	waitFor(t, func() bool {
		status, _ := post(t, s.URL+"/api/double", `{"run":"a","n":1}`)
		return status == 200
	})
}

// Nor is one whose client is gone.
func TestLeft(t *testing.T) {
	f := &fake{}
	s := start(t, serve.Options{Dir: fakeRuns(t, "a"), Tasks: []run.Task{f}, Timeout: time.Hour})
	ctx, leave := context.WithCancel(context.Background())
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+"/api/spin", strings.NewReader(`{"run":"a","n":1}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	left := make(chan error)
	go func() {
		_, err := http.DefaultClient.Do(r)
		left <- err
	}()
	waitFor(t, func() bool { return f.spins.Load() == 1 })
	leave()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	waitFor(t, func() bool { return f.spins.Load() == 0 })
}

// A model that cannot be opened is tried again.
func TestMended(t *testing.T) {
	f := &fake{}
	f.broken.Store(true)
	s := start(t, serve.Options{Dir: fakeRuns(t, "a"), Tasks: []run.Task{f}})
	if status, body := post(t, s.URL+"/api/double", `{"run":"a","n":1}`); status != 400 || !strings.Contains(body, "damaged") {
		t.Errorf("status %d: %s", status, body)
	}
	f.broken.Store(false)
	waitFor(t, func() bool {
		status, _ := post(t, s.URL+"/api/double", `{"run":"a","n":1}`)
		return status == 200
	})
}

// Models make room for others, and are opened again.
func TestModelsMakeRoom(t *testing.T) {
	f := &fake{}
	s := start(t, serve.Options{Dir: fakeRuns(t, "a", "b", "c"), Tasks: []run.Task{f}, Models: 2})
	var wg sync.WaitGroup
	for i := range 60 {
		wg.Go(func() {
			name := string(rune('a' + i%3))
			if status, body := post(t, s.URL+"/api/double", fmt.Sprintf(`{"run":%q,"n":1}`, name)); status != 200 {
				t.Errorf("%s: status %d: %s", name, status, body)
			}
		})
	}
	wg.Wait()
	waitFor(t, func() bool { return f.open.Load()-f.closed.Load() <= 2 })
	if f.open.Load() < 3 {
		t.Errorf("%d models were opened", f.open.Load())
	}
}

// A server that is told to end answers what it has begun, and ends streams of events.
func TestShutdown(t *testing.T) {
	f := &fake{gate: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	addr, ended := make(chan string, 1), make(chan error, 1)
	o := serve.Options{Dir: fakeRuns(t, "a"), Tasks: []run.Task{f}, Backend: openBackend}
	go func() { ended <- serve.Run(ctx, "127.0.0.1:0", o, 20*time.Second, func(a string) { addr <- a }) }()
	base := "http://" + <-addr
	events, err := http.Get(base + "/api/events")
	if err != nil {
		t.Fatal(err)
	}
	defer events.Body.Close()
	answers := make(chan string, 3)
	for i := range 3 {
		go func() {
			_, body := post(t, base+"/api/double", fmt.Sprintf(`{"run":"a","n":%d}`, i))
			answers <- body
		}()
	}
	waitFor(t, func() bool {
		_, _, text := get(t, base+"/metrics")
		return strings.Contains(text, "gfnem_requests_waiting 3\n")
	})
	cancel()
	if _, err := io.ReadAll(events.Body); err != nil {
		t.Errorf("events: %v", err)
	}
	waitFor(t, func() bool { // no new connection is taken
		c, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
		if err == nil {
			c.Close()
		}
		return err != nil
	})
	close(f.gate)
	for range 3 {
		if body := <-answers; !strings.Contains(body, "twice") {
			t.Errorf("a request that was being answered: %s", body)
		}
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if f.open.Load() != f.closed.Load() {
		t.Errorf("%d models opened, %d closed", f.open.Load(), f.closed.Load())
	}
}
