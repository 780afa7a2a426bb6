package serve_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gfnem/gfnem/run"
	"github.com/gfnem/gfnem/serve"
)

// A query chooses runs by words, keys and values.
func TestFilter(t *testing.T) {
	dir := t.TempDir()
	for i, rate := range []string{"0.1", "0.01", "1e-3"} {
		r, err := run.Create(filepath.Join(dir, "sweep", fmt.Sprint("run-", i)), run.Options{
			Task: "mixture", Seed: uint64(i), Config: fmt.Sprintf("seed = %d\n[optim.phi]\nrate = %s\n", i, rate),
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := r.Load(); err == nil {
			t.Fatal("a new run has a checkpoint")
		}
		if err := r.Log(1, map[string]float64{"e/loss": float64(i)}); err != nil {
			t.Fatal(err)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	s := start(t, serve.Options{Dir: dir})
	for _, one := range []struct{ query, want string }{
		{"", "0 1 2"}, {"mixture", "0 1 2"}, {"run-1", "1"}, {"!run-1", "0 2"}, {"optim.phi.rate=0.001", "2"}, {"optim.phi.rate>=0.01", "0 1"},
		{"seed!=0 e/loss<2", "1"}, {"grammar", ""}, {"nothing=1", ""}, {"status=stopped seed=2", "2"},
	} {
		status, _, body := get(t, s.URL+"/api/runs?q="+url.QueryEscape(one.query))
		var l struct {
			Runs    []struct{ Name string }
			Keys    []string
			Metrics []string
			Metric  string
		}
		if err := json.Unmarshal([]byte(body), &l); err != nil || status != 200 {
			t.Fatal(status, err, body)
		}
		var names []string
		for _, r := range l.Runs {
			names = append(names, strings.TrimPrefix(r.Name, "sweep/run-"))
		}
		if got := strings.Join(names, " "); got != one.want {
			t.Errorf("%q: %q, want %q", one.query, got, one.want)
		}
		if one.query == "" && (fmt.Sprint(l.Keys) != "[optim.phi.rate]" || fmt.Sprint(l.Metrics) != "[e/loss]" || l.Metric != "e/loss") {
			t.Errorf("keys %v, metrics %v, first %s", l.Keys, l.Metrics, l.Metric)
		}
	}
	if status, _, body := get(t, s.URL+"/api/runs?q="+url.QueryEscape("seed<x")); status != 400 || !strings.Contains(body, "not a number") {
		t.Errorf("status %d: %s", status, body)
	}
	for _, bad := range []string{`{"points":1e6}`, `{"smooth":1}`, `{"q":"a<b"}`, `[`} {
		if status, body := post(t, s.URL+"/api/curves", bad); status != 400 {
			t.Errorf("%s: status %d: %s", bad, status, body)
		}
	}
}

// What sweeps below the folder say of their workers is shown.
func TestWorkers(t *testing.T) {
	dir := fakeRuns(t, "sweep/row/0", "alone")
	s := start(t, serve.Options{Dir: dir})
	if _, _, body := get(t, s.URL+"/api/status"); strings.TrimSpace(body) != "[]" {
		t.Error(body)
	}
	const status = `{"cells":{"total":3,"done":1,"running":1,"failed":0},"workers":[{"name":"w1","host":"here","cell":"row/1","step":5,"total":9}]}`
	if err := os.WriteFile(filepath.Join(dir, "sweep", "status.json"), []byte(status), 0o600); err != nil {
		t.Fatal(err)
	}
	_, _, body := get(t, s.URL+"/api/status")
	var all []struct {
		Name   string
		Status json.RawMessage
	}
	if err := json.Unmarshal([]byte(body), &all); err != nil || len(all) != 1 || all[0].Name != "sweep" || !strings.Contains(string(all[0].Status), `"w1"`) {
		t.Errorf("%v: %s", err, body)
	}
	b := chromium(t, s.URL)
	b.look(390, "light")
	b.open("/")
	b.until("a worker", `document.getElementById("workers-body").textContent.includes("1 of 3 cells done") && document.querySelector("#workers progress")`)
	b.fits("the list of workers")
	b.clean()
}

// What cannot be read of a journal, and what is not finite, is said and shown; the rest is there.
func TestDamagedJournal(t *testing.T) {
	dir := fakeRuns(t, "bad", "good")
	var good, bad []byte
	for step := range 60 {
		line := fmt.Appendf(nil, "{\"step\":%d,\"e/loss\":%d,\"m/loss\":1}\n", step, 60-step)
		good, bad = append(good, line...), append(bad, line...)
		switch {
		case step == 7 || step == 9:
			bad = append(bad, "{\"step\":7.5,nonsense\n"...)
		case step >= 30 && step < 40:
			bad = append(bad[:len(bad)-len(line)], fmt.Sprintf("{\"step\":%d,\"e/loss\":\"NaN\",\"m/loss\":1}\n", step)...)
		}
	}
	for name, text := range map[string][]byte{"good": good, "bad": bad} {
		if err := os.WriteFile(filepath.Join(dir, name, "metrics.jsonl"), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := start(t, serve.Options{Dir: dir})
	var l struct {
		Reading int
		Runs    []struct{ Name, Wrong string }
	}
	waitFor(t, func() bool {
		_, _, body := get(t, s.URL+"/api/runs")
		if err := json.Unmarshal([]byte(body), &l); err != nil {
			t.Fatal(err)
		}
		return l.Reading == 0
	})
	if len(l.Runs) != 2 || l.Runs[1].Wrong != "" || !strings.Contains(l.Runs[0].Wrong, "2 lines are left out, the first of them line 9") {
		t.Errorf("%+v", l.Runs)
	}
	b := chromium(t, s.URL)
	for _, width := range []int64{390, 1280} {
		b.look(width, "light")
		b.open("/?metric=e%2Floss")
		b.until("notes", `document.querySelector(".notes")?.textContent.includes("bad: 10 values are not finite")`)
		b.until("a damaged journal", `document.getElementById("runs").textContent.includes("2 lines are left out")`)
		b.fits("a list with a damaged journal")
		b.open("/run?name=bad")
		b.until("notes", `document.querySelector(".notes")?.textContent.includes("10 values are not finite")`)
		b.until("a damaged journal", `document.getElementById("wrong").textContent.includes("2 lines are left out")`)
		b.fits("a run with a damaged journal")
	}
	b.shoot("damaged")
	b.clean()
}
