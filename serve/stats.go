package serve

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// bounds are those of the histogram of how long requests take, in seconds.
var bounds = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}

// stats counts what Prometheus asks for.
type stats struct {
	mu       sync.Mutex
	requests map[[2]string]int // by question and status
	took     map[string]*histogram
	waiting  int
	calls    int // of models
	joined   int // requests that these answered
	opened   int
}

type histogram struct {
	counts []int // by bound, cumulative
	n      int
	sum    float64
}

func newStats() *stats { return &stats{requests: map[[2]string]int{}, took: map[string]*histogram{}} }

// enter counts a request as waiting, unless there are too many.
func (s *stats) enter(most int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting >= most {
		return false
	}
	s.waiting++
	return true
}

func (s *stats) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting--
}

// answered counts a request that was answered, one way or the other.
func (s *stats) answered(question string, status int, took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests[[2]string{question, fmt.Sprint(status)}]++
	h := s.took[question]
	if h == nil {
		h = &histogram{counts: make([]int, len(bounds))}
		s.took[question] = h
	}
	x := took.Seconds()
	for i, b := range bounds {
		if x <= b {
			h.counts[i]++
		}
	}
	h.n, h.sum = h.n+1, h.sum+x
}

func (s *stats) called(requests int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls, s.joined = s.calls+1, s.joined+requests
}

func (s *stats) models(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opened = n
}

// ServeHTTP writes all numbers in the text format of Prometheus.
func (s *stats) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	s.mu.Lock()
	defer s.mu.Unlock()
	io.WriteString(w, s.text())
}

func (s *stats) text() string {
	var b strings.Builder
	head := func(name, kind, help string) { fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %[1]s %[3]s\n", name, help, kind) }
	head("gfnem_requests_total", "counter", "Questions to models, by HTTP status.")
	keys := slices.SortedFunc(maps.Keys(s.requests), func(a, b [2]string) int { return slices.Compare(a[:], b[:]) })
	for _, k := range keys {
		fmt.Fprintf(&b, "gfnem_requests_total{question=%q,status=%q} %d\n", k[0], k[1], s.requests[k])
	}
	head("gfnem_request_seconds", "histogram", "Time from question to answer.")
	for _, q := range slices.Sorted(maps.Keys(s.took)) {
		h := s.took[q]
		for i, bound := range bounds {
			fmt.Fprintf(&b, "gfnem_request_seconds_bucket{question=%q,le=\"%g\"} %d\n", q, bound, h.counts[i])
		}
		fmt.Fprintf(&b, "gfnem_request_seconds_bucket{question=%q,le=\"+Inf\"} %d\n", q, h.n)
		fmt.Fprintf(&b, "gfnem_request_seconds_sum{question=%q} %g\n", q, h.sum)
		fmt.Fprintf(&b, "gfnem_request_seconds_count{question=%q} %d\n", q, h.n)
	}
	for _, one := range []struct {
		name, kind, help string
		value            int
	}{
		{"gfnem_requests_waiting", "gauge", "Questions that wait or are being answered.", s.waiting},
		{"gfnem_model_calls_total", "counter", "Calls of models, each of which answers one question or several.", s.calls},
		{"gfnem_model_call_requests_total", "counter", "Questions that these calls answered.", s.joined},
		{"gfnem_models_open", "gauge", "Models in memory.", s.opened},
	} {
		head(one.name, one.kind, one.help)
		fmt.Fprintf(&b, "%s %d\n", one.name, one.value)
	}
	return b.String()
}
