package run

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gfnem/gfnem/badinput"
)

// reporting is a session that writes what it has counted.
type reporting struct{ countSession }

func (*reporting) Report(_ *Run, dir string, result Result) error {
	return os.WriteFile(filepath.Join(dir, "report.html"), []byte("counted"), 0o666)
}

// TestTrain trains a session whole, in two calls of which the first is interrupted, and once more when it is done.
func TestTrain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	ctx, cancel := context.WithCancel(context.Background())
	session := func() *reporting {
		return &reporting{countSession{counting: counting{total: 9, stop: 4, cancel: cancel}, seed: 5}}
	}
	configuration := &countConfig{Total: 9}
	var log bytes.Buffer
	o := TrainOptions{Task: "count", Backend: "none", Command: []string{"test"}, Log: &log}
	if _, err := Train(ctx, dir, configuration, session(), o); !errors.Is(err, ErrInterrupted) {
		t.Fatalf("error %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "report.html")); err == nil {
		t.Error("there is a report of an interrupted training")
	}
	for range 2 {
		result, err := Train(context.Background(), dir, configuration, session(), o)
		if err != nil || result.(countResult).Value != 45+5 {
			t.Errorf("result %v, error %v", result, err)
		}
		if bad := verify(t, dir).bad(); len(bad) > 0 {
			t.Errorf("verify finds %v", bad)
		}
	}
	r, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	if info := r.Info(); info.Task != "count" || info.Seed != 5 || info.Backend != "none" || info.Command[0] != "test" {
		t.Errorf("provenance %+v", info)
	}
	points, err := ReadMetrics(dir)
	if err != nil || len(points) != 9 || points[8].Values["sum"] != 45 {
		t.Errorf("metrics %v, %v", points, err)
	}
	other := *configuration
	other.Total = 10
	for _, c := range []struct {
		configuration any
		task, why     string
	}{
		{&other, "count", "was made with other settings"},
		{nil, "count", "was made with other settings"},
		{configuration, "other", "is a run of the task count"},
	} {
		o.Task = c.task
		_, err := Train(context.Background(), dir, c.configuration, session(), o)
		if _, ok := errors.AsType[*badinput.Error](err); !ok || !strings.Contains(err.Error(), c.why) {
			t.Errorf("error %v, want %s", err, c.why)
		}
	}
}

// TestTrainJob trains what is no session: there is a run, and no result.
func TestTrainJob(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	result, err := Train(context.Background(), dir, nil, &counting{total: 3}, TrainOptions{})
	if result != nil || err != nil {
		t.Errorf("result %v, error %v", result, err)
	}
	r, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	if s, _, err := r.Load(); err != nil || s.Step != 3 || r.Info().Task != "job" || len(r.Info().Command) == 0 {
		t.Errorf("step %d of %+v, error %v", s.Step, r.Info(), err)
	}
}
