package serve_test

import (
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gfnem/gfnem/serve"
)

var (
	clients  = flag.Int("clients", 64, "clients that ask at once")
	loadTime = flag.Duration("clients.time", 2*time.Second, "how long they do")
)

// question is a request with the answer that one client alone gets.
type question struct{ path, body, want string }

// questions are of all kinds. TestAnswers compares their answers with those of the commands.
func questions(t *testing.T, url string) (out []question) {
	r := rand.New(rand.NewPCG(1, 2))
	add := func(path, body string) {
		status, want := post(t, url+"/api/"+path, body)
		if status != http.StatusOK {
			t.Fatalf("%s %s: %s", path, body, want)
		}
		out = append(out, question{"/api/" + path, body, want})
	}
	for i, s := range sentencesOf(t, url) {
		add("parse", fmt.Sprintf(`{"run":"english","sentences":[%q]}`, s))
		add("parse", fmt.Sprintf(`{"run":"english","sentences":[%q],"decode":"gfn","seed":%d}`, s, i))
		add("sample", fmt.Sprintf(`{"run":"english","sentences":[%q],"count":10,"seed":%d}`, s, i))
	}
	for range 8 {
		pixels := make([]int, 28*28)
		for i := range pixels {
			pixels[i] = r.IntN(2)
		}
		add("encode", fmt.Sprintf(`{"run":"digits","images":[%s]}`, asJSON(pixels)))
	}
	add("sample", `{"run":"digits","count":4,"seed":1}`)
	return out
}

// load is how clients were served.
type load struct {
	took   []time.Duration // of all requests
	wrong  []string
	during time.Duration
}

// ask has clients ask at random for a while.
func (l *load) ask(url string, all []question, clients int, d time.Duration) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	transport := &http.Transport{MaxIdleConnsPerHost: clients}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	begin := time.Now()
	for c := range clients {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(c), 3))
			for time.Since(begin) < d {
				q := all[r.IntN(len(all))]
				sent := time.Now()
				answer, err := client.Post(url+q.path, "application/json", strings.NewReader(q.body))
				var text []byte
				if err == nil {
					text, err = io.ReadAll(answer.Body)
					answer.Body.Close()
				}
				took := time.Since(sent)
				mu.Lock()
				l.took = append(l.took, took)
				if err != nil || answer.StatusCode != http.StatusOK || string(text) != q.want {
					l.wrong = append(l.wrong, fmt.Sprintf("%s %s: %v: %.300s, not %.300s", q.path, q.body, err, text, q.want))
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	l.during = time.Since(begin)
	slices.Sort(l.took)
}

func (l *load) String() string {
	at := func(p float64) time.Duration {
		return l.took[int(p*float64(len(l.took)-1))].Round(100 * time.Microsecond)
	}
	return fmt.Sprintf("%d requests in %v: %.0f a second, median %v, 99th percentile %v, longest %v",
		len(l.took), l.during.Round(100*time.Millisecond), float64(len(l.took))/l.during.Seconds(), at(.5), at(.99), at(1))
}

// Many clients parse, encode and sample at once: no error, and each gets what one client alone gets. For figures, on a
// machine that does nothing else:
//
//	go test ./serve -run TestClients -v -clients.time 1m -serve.runs runs
func TestClients(t *testing.T) {
	s := start(t, serve.Options{Dir: runsOf(t)})
	all := questions(t, s.URL)
	for _, n := range []int{1, *clients} {
		var l load
		l.ask(s.URL, all, n, *loadTime)
		t.Logf("%d clients: %v", n, &l)
		for _, line := range l.wrong[:min(len(l.wrong), 5)] {
			t.Error(line)
		}
		if len(l.wrong) > 0 {
			t.Errorf("%d of %d answers are wrong", len(l.wrong), len(l.took))
		}
	}
	_, _, text := get(t, s.URL+"/metrics")
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "gfnem_model_call") {
			t.Log(strings.TrimSpace(line))
		}
	}
}
