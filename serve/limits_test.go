package serve_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gfnem/gfnem/run"
	"github.com/gfnem/gfnem/serve"
)

// Clients cannot name what is counted, of which there would be no end.
func TestCountedNames(t *testing.T) {
	s := start(t, serve.Options{Dir: fakeRuns(t, "a"), Tasks: []run.Task{&fake{}}})
	for i := range 5 {
		r, err := http.Post(fmt.Sprintf("%s/api/made-up-%d", s.URL, i), "text/plain", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		r.Body.Close()
		post(t, fmt.Sprintf("%s/api/made-up-%d", s.URL, i), `{"run":"nobody"}`)
		post(t, fmt.Sprintf("%s/api/made-up-%d", s.URL, i), `{`)
	}
	post(t, s.URL+"/api/double", `{"run":"a","n":1}`)
	_, _, text := get(t, s.URL+"/metrics")
	if strings.Contains(text, "made-up") || !strings.Contains(text, `question="double",status="200"} 1`) {
		t.Error(text)
	}
}

// The folder that is served may be a run itself: its page leads to its report.
func TestReportOfFolder(t *testing.T) {
	dir := filepath.Join(fakeRuns(t, "a"), "a")
	if err := os.WriteFile(filepath.Join(dir, "report.html"), []byte("all is well"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := start(t, serve.Options{Dir: dir, Tasks: []run.Task{&fake{}}})
	if _, _, page := get(t, s.URL+"/run?name=."); !strings.Contains(page, `href="/report/report.html"`) {
		t.Error("the page does not lead to the report")
	}
	if status, _, text := get(t, s.URL+"/report/report.html"); status != 200 || text != "all is well" {
		t.Errorf("status %d: %s", status, text)
	}
	status, h, _ := get(t, s.URL+"/run?name=nobody")
	if status != 404 || h.Get("Cache-Control") != "no-store" || !strings.HasPrefix(h.Get("Content-Type"), "text/html") {
		t.Errorf("a run that is not there: status %d, %v", status, h)
	}
}

// Requests that do not come end; who listens to events is not one of them.
func TestSlowClients(t *testing.T) {
	const limit = 300 * time.Millisecond
	s := start(t, serve.Options{Dir: fakeRuns(t, "a"), Tasks: []run.Task{&fake{}}, Timeout: limit})
	for _, path := range []string{"/api/curves", "/api/double"} {
		body, w, err := os.Pipe() // nothing comes out of it
		if err != nil {
			t.Fatal(err)
		}
		r, err := http.NewRequest(http.MethodPost, s.URL+path, body)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		begin := time.Now()
		if answer, err := http.DefaultTransport.RoundTrip(r); err == nil {
			if answer.Body.Close(); answer.StatusCode != http.StatusBadRequest {
				t.Errorf("%s: status %d", path, answer.StatusCode)
			}
		}
		if took := time.Since(begin); took < limit || took > time.Minute {
			t.Errorf("%s: ended after %v", path, took)
		}
		w.Close()
	}
	const longer = 5 * time.Second // on a busy machine it takes a while from a question to who answers it
	s = start(t, serve.Options{Dir: fakeRuns(t, "a"), Tasks: []run.Task{&fake{}}, Timeout: longer})
	events, err := http.Get(s.URL + "/api/events")
	if err != nil {
		t.Fatal(err)
	}
	defer events.Body.Close()
	ended := make(chan error, 1)
	go func() {
		buffer := make([]byte, 1<<10)
		for {
			if _, err := events.Body.Read(buffer); err != nil {
				ended <- err
				return
			}
		}
	}()
	select {
	case err := <-ended:
		t.Errorf("events ended: %v", err)
	case <-time.After(longer + time.Second):
	}
}

// All requests together are only so large: the next one is refused at once, whether it says its size or not.
func TestTotal(t *testing.T) {
	f := &fake{gate: make(chan struct{})}
	s := start(t, serve.Options{Dir: fakeRuns(t, "a"), Tasks: []run.Task{f}, Bytes: 1000, Total: 1500, Timeout: time.Hour})
	question := `{"run":"a","n":1` + strings.Repeat(" ", 900) + "}"
	answered := make(chan int)
	go func() {
		status, _ := post(t, s.URL+"/api/double", question)
		answered <- status
	}()
	waitFor(t, func() bool { return f.calls.Load() == 1 })
	if status, body := post(t, s.URL+"/api/double", question); status != 503 {
		t.Errorf("a request beyond the total: status %d: %s", status, body)
	}
	for _, path := range []string{"/api/double", "/api/curves"} {
		r, err := http.Post(s.URL+path, "application/json", struct{ io.Reader }{strings.NewReader(`{"run":"a","n":1}`)}) // of unknown size
		if err != nil {
			t.Fatal(err)
		}
		if r.Body.Close(); r.StatusCode != 503 || r.Header.Get("Retry-After") == "" {
			t.Errorf("%s of unknown size beyond the total: status %d", path, r.StatusCode)
		}
	}
	if status, _ := post(t, s.URL+"/api/double", strings.Repeat(" ", 2000)); status != 413 {
		t.Errorf("a request that is too large: status %d", status)
	}
	close(f.gate)
	if status := <-answered; status != 200 {
		t.Errorf("the first request: status %d", status)
	}
	if status, body := post(t, s.URL+"/api/double", question); status != 200 {
		t.Errorf("a request after that: status %d: %s", status, body)
	}
}

// Only so many clients listen; when one leaves there is room for another.
func TestStreams(t *testing.T) {
	s := start(t, serve.Options{Dir: fakeRuns(t, "a"), Streams: 2})
	listen := func() *http.Response {
		r, err := http.Get(s.URL + "/api/events")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { r.Body.Close() })
		return r
	}
	first, second := listen(), listen()
	if first.StatusCode != 200 || second.StatusCode != 200 {
		t.Fatal(first.Status, second.Status)
	}
	if third := listen(); third.StatusCode != 503 {
		t.Error(third.Status)
	}
	first.Body.Close()
	waitFor(t, func() bool { return listen().StatusCode == 200 })
}
