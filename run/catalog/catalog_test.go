package catalog_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gfnem/gfnem/run"
	"github.com/gfnem/gfnem/run/catalog"
)

// counting is a session that counts to Total; its metrics are those of a formula.
type counting struct {
	at, total uint64
	seed      uint64
	slope     float64
	stop      uint64 // it gives up there; 0: never
}

type counted struct {
	Sum   float64    `json:"sum"`
	Inner run.Values `json:"inner"`
	Good  bool       `json:"good"`
	List  []float64  `json:"list"`
	Name  string     `json:"name"`
}

func (counted) Print(io.Writer) error { return nil }
func (c counted) Headline() (run.Headline, bool) {
	return run.Headline{Name: "sum", Value: c.Sum, Low: true}, true
}

func (c *counting) Done() bool { return c.at >= c.total }
func (c *counting) Step() (run.Tick, error) {
	if c.stop > 0 && c.at == c.stop {
		return run.Tick{}, run.ErrGaveUp
	}
	c.at++
	return run.Tick{Step: c.at, Total: c.total, Log: c.metrics(c.at)}, nil
}
func (c *counting) metrics(step uint64) map[string]float64 {
	log := map[string]float64{"loss": c.slope*float64(step) + float64(c.seed)}
	if step%3 == 0 {
		log["eval/score"] = -float64(step)
	}
	return log
}
func (c *counting) State() (run.State, error) {
	return run.State{Step: c.at, Extra: json.RawMessage(fmt.Sprint(c.at))}, nil
}
func (c *counting) Restore(s run.State) error      { return json.Unmarshal(s.Extra, &c.at) }
func (c *counting) Seed() uint64                   { return c.seed }
func (c *counting) Data() map[string]string        { return nil }
func (c *counting) Progress() (step, total uint64) { return c.at, c.total }
func (c *counting) Close()                         {}
func (c *counting) Evaluate() (run.Result, error) {
	return counted{
		Sum: c.slope + float64(c.seed), Inner: run.Values{"nan": math.NaN(), "two": 2}, Good: true, List: []float64{1}, Name: "x",
	}, nil
}
func (c *counting) Report(*run.Run, string, run.Result) error { return nil }
func (c *counting) Parameters() (map[string]run.Array, error) { return nil, nil }

// settings are the configuration of a run of counting.
type settings struct {
	Seed   uint64 `toml:"seed"`
	Method string `toml:"method"`
	Data   string `toml:"data"`
	Model  struct {
		Slope float64 `toml:"slope"`
	} `toml:"model"`
}

func train(t *testing.T, dir, method string, job *counting) error {
	t.Helper()
	c := settings{Seed: job.seed, Method: method, Data: "/corpora/words.txt"}
	c.Model.Slope = job.slope
	_, err := run.Train(context.Background(), dir, &c, job, run.TrainOptions{Task: "count",
		Command: []string{"gfnem", "train", "count", "--preset", "small"}})
	return err
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestFind(t *testing.T) {
	top := t.TempDir()
	at := func(parts ...string) string { return filepath.Join(append([]string{top}, parts...)...) }
	must(t, train(t, at("grid", "row", "2"), "a", &counting{total: 10, seed: 2, slope: 1}))
	must(t, train(t, at("grid", "row", "10"), "a", &counting{total: 10, seed: 10, slope: 1}))
	if err := train(t, at("stopped"), "b", &counting{total: 10, stop: 4}); !errors.Is(err, run.ErrGaveUp) {
		t.Fatal(err)
	}
	must(t, train(t, at("broken"), "b", &counting{total: 2}))
	must(t, os.WriteFile(at("broken", "run.json"), []byte("{}"), 0o666))
	must(t, train(t, at("result"), "b", &counting{total: 2}))
	must(t, os.WriteFile(at("result", "result.json"), []byte("{"), 0o666))
	must(t, train(t, at("summary"), "b", &counting{total: 2}))
	must(t, os.Remove(at("summary", "summary.json")))
	must(t, os.Mkdir(at("empty"), 0o777))
	must(t, os.Mkdir(at(".hidden"), 0o777))
	must(t, os.Symlink(at("grid"), at("link")))
	must(t, train(t, at("running"), "b", &counting{total: 6}))
	busy, err := run.Open(at("running"))
	must(t, err)
	defer busy.Close()

	runs, err := catalog.Find(top)
	must(t, err)
	var got []string
	for _, r := range runs {
		dir, _ := filepath.Rel(top, r.Dir)
		line := fmt.Sprintf("%s %s %s/%s/%s/%s seed %d %d/%d", dir, r.Status, r.Task, r.Method, r.Preset, r.Data, r.Seed, r.Step, r.Total)
		if h := r.Headline; h != nil {
			line += fmt.Sprintf(" %s=%g low=%t", h.Name, h.Value, h.Low)
		}
		got = append(got, line)
	}
	want := []string{
		"broken broken /// seed 0 0/0",
		"grid/row/2 finished count/a/small/words.txt seed 2 10/10 sum=3 low=true",
		"grid/row/10 finished count/a/small/words.txt seed 10 10/10 sum=11 low=true",
		"result finished count/b/small/words.txt seed 0 2/2 sum=0 low=true",
		"running running count/b/small/words.txt seed 0 6/6 sum=0 low=true",
		"stopped stopped count/b/small/words.txt seed 0 4/10 eval/score=-3 low=false",
		"summary finished count/b/small/words.txt seed 0 2/2 loss=0 low=true",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, r := range runs {
		name := filepath.Base(r.Dir)
		if broken := name == "broken" || name == "result"; broken != (r.Wrong != "") {
			t.Errorf("%s: wrong is %q", name, r.Wrong)
		}
		if _, err := json.Marshal(r); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	two := runs[1]
	if two.Config["model.slope"] != "1" || two.Config["method"] != "a" || two.Took <= 0 || two.Updated.IsZero() {
		t.Errorf("%+v", two)
	}
	if r := two.Results; r["sum"] != 3 || r["good"] != 1 || r["inner.two"] != 2 || !math.IsNaN(r["inner.nan"]) || len(r) != 4 {
		t.Errorf("results %v", two.Results)
	}
	if two.Last["loss"] != 12 || two.Last["eval/score"] != -9 {
		t.Errorf("last %v", two.Last)
	}
	if _, err := catalog.Find(at("none")); err == nil {
		t.Error("no error for a missing folder")
	}
}

// TestFindUnlocked is the broken twin of the running one: the same folder, of which nobody holds the lock. To look at a
// run must not keep anybody from opening it either.
func TestFindUnlocked(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "r")
	must(t, train(t, dir, "a", &counting{total: 3}))
	if r := catalog.Open(dir); r.Status != catalog.Finished {
		t.Errorf("status %s", r.Status)
	}
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
				catalog.Open(dir)
			}
		}
	}()
	for range 100 {
		r, err := run.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		must(t, r.Close())
	}
	close(stop)
	<-done
}

// TestSeriesAgainstDecoder compares the reader of bytes with run.ReadMetrics, which decodes all lines.
func TestSeriesAgainstDecoder(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	names := []string{"loss", "e/loss", `a "quoted", {name}:`, "<b>&", "back\\slash", "ünï", "step2", ""}
	special := []float64{math.NaN(), math.Inf(1), math.Inf(-1), 0, math.Copysign(0, -1), 1e-320, math.MaxFloat64, 5}
	dir := filepath.Join(t.TempDir(), "r")
	folder, err := run.Create(dir, run.Options{Task: "x"})
	must(t, err)
	_, _, err = folder.Load()
	if !errors.Is(err, run.ErrNoCheckpoint) {
		t.Fatal(err)
	}
	for step := range uint64(2000) {
		values := map[string]float64{}
		for _, name := range names {
			if r.IntN(3) > 0 {
				values[name] = r.NormFloat64() * math.Pow(10, float64(r.IntN(40)-20))
				if r.IntN(5) == 0 {
					values[name] = special[r.IntN(len(special))]
				}
			}
		}
		must(t, folder.Log(step*uint64(1+r.IntN(2)), values))
	}
	must(t, folder.Close())
	path := filepath.Join(dir, "metrics.jsonl")
	whole, err := os.ReadFile(path)
	must(t, err)
	must(t, os.WriteFile(path, append(whole, `{"step":9999,"loss":`...), 0o666)) // a line that is being written

	points, err := run.ReadMetrics(dir)
	must(t, err)
	at := catalog.Open(dir)
	got, err := at.Series(append(names, "never")...)
	must(t, err)
	last := map[string]float64{}
	for _, name := range names {
		x, y := run.Curve(points, name)
		if s := got[name]; len(x) == 0 || !same(s.X, x) || !same(s.Y, y) {
			t.Errorf("%q: %d points, want %d", name, len(s.X), len(x))
		}
		last[name] = y[len(y)-1]
		if v := at.Last[name]; !same([]float64{v}, y[len(y)-1:]) {
			t.Errorf("%q: last value %g, want %g", name, v, last[name])
		}
	}
	if len(got["never"].X) != 0 {
		t.Error("a metric that was never logged has points")
	}
	listed, err := at.Metrics()
	must(t, err)
	if want := slices.Sorted(slices.Values(names)); !slices.Equal(listed, want) {
		t.Errorf("names %q, want %q", listed, want)
	}

	for range 400 { // damaged lines: an error or numbers, nothing else
		text := slices.Clone(whole[:400])
		for range 1 + r.IntN(3) {
			text[r.IntN(len(text))] = `{}":,\0e-.N `[r.IntN(12)]
		}
		must(t, os.WriteFile(path, text, 0o666))
		if _, err := at.Series(names...); err != nil && !strings.Contains(err.Error(), "metrics.jsonl:") {
			t.Fatalf("%s: %v", text, err)
		}
	}
	for _, line := range []string{`{"step":1,}`, `{"step":1 ,"a":2}`, `{"a":1,"step":1}`, `{}`, ``, `{"step":1,"a":[1,2]}`, `{"step":1,"a":0x1}`} {
		must(t, os.WriteFile(path, []byte(line+"\n"), 0o666))
		if got, err := at.Series("a"); err == nil {
			t.Errorf("%s: %v", line, got)
		}
	}
}

func same(a, b []float64) bool {
	return slices.EqualFunc(a, b, func(x, y float64) bool { return math.Float64bits(x) == math.Float64bits(y) || x != x && y != y })
}
