package task_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/run"
	"github.com/gfnem/gfnem/task"
)

// train makes a run of a task in a new folder.
func train(t *testing.T, of run.Task, c any) (dir string, result run.Result) {
	t.Helper()
	s, err := of.Start(open(t), c)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	dir = filepath.Join(t.TempDir(), "run")
	result, err = run.Train(context.Background(), dir, c, s, run.TrainOptions{Task: of.Name(), Every: 1})
	if err != nil {
		t.Fatal(err)
	}
	return dir, result
}

func mends(t *testing.T, err error, why string) {
	t.Helper()
	if _, ok := errors.AsType[*badinput.Error](err); !ok || !strings.Contains(err.Error(), why) || strings.Contains(err.Error(), "\n") {
		t.Errorf("error %v, want %s", err, why)
	}
}

// Who opens a run has the posterior of the session that trained it.
func TestOpen(t *testing.T) {
	c := toy.Config("quick").(*config)
	c.Seed, c.Updates = 5, 9
	s, err := toy.Start(open(t), c)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	dir := filepath.Join(t.TempDir(), "run")
	if _, err := run.Train(context.Background(), dir, c, s, run.TrainOptions{Task: "coins", Every: 1}); err != nil {
		t.Fatal(err)
	}
	drawn := func(s *task.Session) ([]int32, [][]float64) {
		q, err := s.Posterior()
		if err != nil {
			t.Fatal(err)
		}
		defer q.Close()
		all, err := q.Sample(20, tossed(9, 4))
		if err != nil {
			t.Fatal(err)
		}
		return tensors.MustCopyFlatData[int32](all.Z[0]), all.LogWeights
	}
	o, err := toy.Open(nil, dir)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	if o.Step != 18 || o.Config != *c || o.Skipped != nil || o.Counters().M != 9 {
		t.Errorf("opened %+v at step %d, skipped %q", o.Config, o.Step, o.Skipped)
	}
	z, w := drawn(s.(*task.Session))
	gotZ, gotW := drawn(o.Session)
	if !slices.Equal(gotZ, z) || !reflect.DeepEqual(gotW, w) {
		t.Errorf("opened, the posterior draws %v with %v, want %v with %v", gotZ, gotW, z, w)
	}

	newest := filepath.Join(dir, "state", "000000000018", "state.json")
	if err := os.WriteFile(newest, []byte("{}"), 0o666); err != nil {
		t.Fatal(err)
	}
	older, err := toy.Open(open(t), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer older.Close()
	if older.Step != 17 || len(older.Skipped) != 1 || !strings.Contains(older.Skipped[0], "checkpoint 18 is damaged") {
		t.Errorf("opened step %d, skipped %q", older.Step, older.Skipped)
	}
}

// moody is a task whose data depend on more than its configuration.
func moody(seed uint64) *task.Task[struct{}] {
	return task.Of(task.Definition[struct{}]{
		Name: "moody",
		Start: func(compute.Backend, struct{}) (task.Learning, error) {
			return learning(config{Seed: seed, Updates: 2, Rows: 4})
		},
	})
}

// A run of another task, or with other data, is not opened.
func TestOpenRefuses(t *testing.T) {
	dir, _ := train(t, moody(1), &struct{}{})
	_, err := toy.Open(nil, dir)
	mends(t, err, `is a run of the task "moody", not of "coins"`)
	_, err = moody(2).Open(nil, dir)
	mends(t, err, "was made with other data")
	_, err = moody(1).Open(nil, filepath.Dir(dir))
	mends(t, err, "is not a run folder")
	o, err := moody(1).Open(nil, dir)
	if err != nil {
		t.Fatal(err)
	}
	o.Close()
}

// A task without a configuration has a preset, and no seed.
func TestNoConfiguration(t *testing.T) {
	of := moody(1)
	if p := of.Presets(); !slices.Equal(p, []string{"default"}) || of.Config("default") == nil || of.Config("other") != nil {
		t.Errorf("presets %q", p)
	}
	dir, result := train(t, of, of.Config("default"))
	if r := result.(*task.Result); r.Seed != 0 || r.MSteps != 2 {
		t.Errorf("%+v", r)
	}
	r, err := run.Read(dir)
	if err != nil || r.Config() != "" {
		t.Errorf("configuration %q, error %v", r.Config(), err)
	}
}

// A configuration is a copy: what is changed there leaves presets as they are.
func TestConfigIsACopy(t *testing.T) {
	toy.Config("quick").(*config).Updates = 1
	if c := toy.Config("quick").(*config); c.Updates != 6 {
		t.Errorf("the preset became %+v", c)
	}
	if c := toy.Config("long").(*config); c.Rows != 200 {
		t.Errorf("the other preset is %+v", c)
	}
}

// A report has what a reader looks for, and files that it shows.
func TestReport(t *testing.T) {
	dir, _ := train(t, toy, toy.Config("quick"))
	page, err := os.ReadFile(filepath.Join(dir, "report.html"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"<h2>Result</h2>", "<h2>Training</h2>", "<h2>Posterior</h2>", "<h2>Configuration</h2>", "<h2>Provenance</h2>",
		"Two coins, of which one is tossed eight times.", "mean rank", "updates = 6", "measured while the model was trained",
	} {
		if !strings.Contains(string(page), want) {
			t.Errorf("the report lacks %q", want)
		}
	}
	for _, name := range []string{"loss.png", "gate.svg", "calibration.png", "eval-spread.svg", "model.svg", "gradients.png"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
}

// Of moves and of dreams there are curves, too.
func TestReportOfMoves(t *testing.T) {
	l, err := learning(config{Rows: 20, Updates: 6})
	if err != nil {
		t.Fatal(err)
	}
	l.Spec.MStep.Moves, l.Spec.Gate = 2, em.Adaptive{Threshold: em.Constant(100)}
	l.Spec.Sleep, l.Uncalibrated = em.Sleep{Weight: 1, Batch: 4}, true
	dir, _ := train(t, startOf(l), &struct{}{})
	for name, want := range map[string]bool{"accepted.svg": true, "sleep.svg": true, "gate.svg": true, "calibration.svg": false} {
		if _, err := os.Stat(filepath.Join(dir, name)); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
	if page, err := os.ReadFile(filepath.Join(dir, "report.html")); err != nil || !strings.Contains(string(page), "were accepted before M-steps") {
		t.Errorf("the report says nothing of moves, %v", err)
	}
}

// A table has the results of its trainings, which are those that anybody gets with the same settings.
func TestTables(t *testing.T) {
	if got := toy.Tables(); !reflect.DeepEqual(got, map[string][]string{"coins": {"few", "many"}}) {
		t.Errorf("tables %v", got)
	}
	dir := t.TempDir()
	study := func() run.Study {
		return run.Study{Grid: run.Grid{Dir: dir, Task: toy, Backend: open(t), Name: "test", Workers: 2}, Table: "coins"}
	}
	reproduce := func(s run.Study) (out struct {
		Seeds []uint64
		Rows  []struct {
			Name string
			Runs []task.Values
		}
	}) {
		t.Helper()
		r, err := toy.Reproduce(context.Background(), s)
		if err != nil {
			t.Fatal(err)
		}
		data, err := json.Marshal(r)
		if err == nil {
			err = json.Unmarshal(data, &out)
		}
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	both := reproduce(study())
	if !slices.Equal(both.Seeds, []uint64{0, 1}) || len(both.Rows) != 2 || both.Rows[1].Name != "many" || len(both.Rows[1].Runs) != 2 {
		t.Fatalf("the table is %+v", both)
	}
	c := toy.Config("quick").(*config)
	c.Seed, c.Rows = 1, 40
	_, alone := train(t, toy, c)
	if got, want := both.Rows[1].Runs[1]["spread"], alone.(*task.Result).Metrics["spread"]; got != want {
		t.Errorf("in the table the spread is %g, alone %g", got, want)
	}
	if got, want := both.Rows[1].Runs[1]["log p(x)"], alone.(*task.Result).LogLikelihood.Mean; got != want {
		t.Errorf("in the table log p(x) is %g, alone %g", got, want)
	}
	if !math.IsNaN(both.Rows[0].Runs[0]["undefined"]) {
		t.Errorf("what is not a number became %g", both.Rows[0].Runs[0]["undefined"])
	}
	one := study()
	one.Rows, one.Seeds, one.Dir = []string{"many"}, []uint64{1}, t.TempDir()
	if got := reproduce(one); !reflect.DeepEqual(got.Rows[0].Runs[0]["spread"], both.Rows[1].Runs[1]["spread"]) || len(got.Rows) != 1 {
		t.Errorf("one row is %+v", got)
	}
	own := study()
	own.Set = []string{"rows=9"}
	_, err := toy.Reproduce(context.Background(), own)
	mends(t, err, "--set rows=9: the row few has rows of its own")
	if err := run.Verify(dir, func(f run.Finding) {
		if f.Status != run.Intact {
			t.Errorf("%+v", f)
		}
	}); err != nil {
		t.Error(err)
	}
}

// Values that are not finite survive JSON.
func TestValues(t *testing.T) {
	in := task.Values{"a": 0.1, "nan": math.NaN(), "high": math.Inf(1), "low": math.Inf(-1), "zero": 0}
	data, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	var out task.Values
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	for name, v := range in {
		if got, ok := out[name]; !ok || got != v && !(math.IsNaN(v) && math.IsNaN(got)) {
			t.Errorf("%s: %g became %g in %s", name, v, got, data)
		}
	}
	if err := json.Unmarshal([]byte(`{"a": null}`), &out); err == nil {
		t.Error("null is a value")
	}
}
