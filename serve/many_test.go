package serve_test

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gfnem/gfnem/run"
	"github.com/gfnem/gfnem/serve"
)

var (
	manyRuns   = flag.Int("serve.many", 60, "runs that are looked at together")
	manyPoints = flag.Int("serve.points", 2000, "points that each has logged")
	manyKeep   = flag.String("serve.keep", "", "a folder for these runs, which are made if it is empty")
)

// makeMany makes runs as a sweep leaves them.
func makeMany(t *testing.T) string {
	dir := *manyKeep
	if dir == "" {
		dir = t.TempDir()
	} else if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return dir
	}
	r := rand.New(rand.NewPCG(1, 1))
	for i := range *manyRuns {
		rate := []float64{1e-4, 1e-3, 1e-2}[i%3]
		path := filepath.Join(dir, fmt.Sprintf("rate-%g/seed-%d", rate, i/3))
		o := run.Options{Task: "mixture", Seed: uint64(i / 3), Config: fmt.Sprintf("seed = %d\n[optim.phi]\nrate = %g\n", i/3, rate)}
		created, err := run.Create(path, o)
		if err != nil {
			t.Fatal(err)
		}
		if err := created.Close(); err != nil {
			t.Fatal(err)
		}
		f, err := os.Create(filepath.Join(path, "metrics.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		w := bufio.NewWriter(f)
		y, line := 10.0, []byte(nil)
		for step := range *manyPoints {
			y += 0.01*r.NormFloat64() - rate*y
			line = strconv.AppendInt(append(line[:0], `{"step":`...), int64(step+1), 10)
			line = strconv.AppendFloat(append(line, `,"m/loss":`...), y, 'g', -1, 64)
			if _, err := w.Write(append(line, "}\n"...)); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// A folder of many long runs has a picture within a second of opening the page: at once when the server starts, from
// a few
// places of each file, and when all has been read. In full:
//
//	go test ./serve -run TestManyRuns -v -serve.many 1000 -serve.points 100000 -timeout 30m
func TestManyRuns(t *testing.T) {
	dir := makeMany(t)
	begin := time.Now()
	s := start(t, serve.Options{Dir: dir})
	picture := func(what string, b *browser) {
		b.open("/")
		b.until("a picture "+what, `document.documentElement.dataset.picture`)
		ms, n := eval[string](b, `document.documentElement.dataset.picture`), eval[string](b, `document.documentElement.dataset.drawn`)
		t.Logf("%s: first picture %s ms after opening, of %s curves; the server started %v ago", what, ms, n, time.Since(begin).Round(10*time.Millisecond))
		if n != fmt.Sprint(*manyRuns) {
			t.Errorf("%s: %s curves of %d runs", what, n, *manyRuns)
		}
	}
	b := chromium(t, s.URL)
	b.look(1280, "light")
	picture("while curves are read", b)
	for {
		r, err := http.Get(s.URL + "/api/runs?q=seed<0")
		if err != nil {
			t.Fatal(err)
		}
		var l struct{ Reading, All int }
		err = json.NewDecoder(r.Body).Decode(&l)
		r.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if l.Reading == 0 && l.All > 0 {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Logf("all was read %v after the server started", time.Since(begin).Round(10*time.Millisecond))
	picture("when all has been read", b)
	b.do()
	b.open("/?group=optim.phi.rate&smooth=0.5&metric=m%2Floss")
	b.until("groups", `document.documentElement.dataset.drawn == "3"`)
	b.until("parallel coordinates", `document.querySelectorAll("#parallel polyline").length > 0`)
	b.shoot("many-groups")
	if text := eval[string](b, `document.getElementById("legend").textContent`); !strings.Contains(text, "standard deviation") {
		t.Error(text)
	}
	b.clean()
}
