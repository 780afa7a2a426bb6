package serve_test

import (
	"fmt"
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
	case <-time.After(3 * limit):
	}
}
