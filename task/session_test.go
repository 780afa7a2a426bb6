package task_test

import (
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"

	"github.com/gfnem/gfnem/em"
	"github.com/gfnem/gfnem/gfn"
	"github.com/gfnem/gfnem/run"
	"github.com/gfnem/gfnem/run/runtest"
	"github.com/gfnem/gfnem/task"
)

// changed starts a session of the toy with another Learning.
func changed(t *testing.T, change func(l *task.Learning)) *task.Session {
	t.Helper()
	l, err := learning(config{Updates: 6, Rows: 20})
	if err != nil {
		t.Fatal(err)
	}
	change(&l)
	s, err := task.Start(open(t), 3, l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// A session keeps the laws of a job, however it learns and whatever ends it.
func TestSessionIsAJob(t *testing.T) {
	for name, c := range map[string]struct {
		change        func(l *task.Learning)
		iterations, m uint64 // at its end; 0 is not looked at
	}{
		"M-steps":    {func(*task.Learning) {}, 12, 6},
		"iterations": {func(l *task.Learning) { l.MSteps, l.Iterations = 0, 9 }, 9, 4},
		"both":       {func(l *task.Learning) { l.Iterations = 5 }, 5, 2},
		"blocks of M-steps": {func(l *task.Learning) {
			l.Spec.Gate = em.Blocks{E: 3, First: 4, M: 2}
		}, 10, 6},
		"adaptive, moves, joint sleep": {func(l *task.Learning) {
			l.Spec.Gate = em.Adaptive{Threshold: em.Linear{From: 1e6, To: 1e6}}
			l.Spec.MStep.Moves, l.Spec.Sleep = 2, em.Sleep{Weight: 1, Batch: 8, Probability: 0.5}
		}, 0, 6},
		"turns, sleep apart, all noted": {func(l *task.Learning) {
			l.Spec.Gate, l.Every, l.Watch = em.Turns{Length: 2}, 1, 0
			l.Spec.Sleep = em.Sleep{Weight: 1, Batch: 8, Apart: true}
		}, 0, 6},
		"the best state counts": {func(l *task.Learning) { l.Watch, l.Best = 3, "spread" }, 12, 6},
		"patience":              {impatient, 6, 3},
		"notes of the user's own": {func(l *task.Learning) {
			l.Note = func(m *task.Learned, r em.Report) map[string]float64 {
				return map[string]float64{"count": float64(m.Counters().Iteration)}
			}
		}, 12, 6},
	} {
		t.Run(name, func(t *testing.T) {
			s := runtest.Job(t, func() run.Job { return changed(t, c.change) }, runtest.Options{}).(*task.Session)
			at := s.Counters()
			if c.iterations != 0 && at.Iteration != c.iterations || at.M != c.m || at.Skipped != 0 {
				t.Errorf("it ended as %+v", at)
			}
			if step, total := s.Progress(); step != at.Iteration || total != step {
				t.Errorf("at its end it is at %d of %d", step, total)
			}
		})
	}
}

// impatient measures a training after 3, 6 ... of 12 iterations, of which the first is the best one.
func impatient(l *task.Learning) {
	l.Watch, l.Best, l.Patience = 3, "earliness", 1
	l.Metrics = func(m *task.Learned) (map[string]float64, error) {
		logits := tensors.MustCopyFlatData[float32](m.Theta().GetVariable("logits").MustValue())
		return map[string]float64{"earliness": -float64(m.Counters().Iteration), "first logit": float64(logits[0])}, nil
	}
}

// The best state is what is evaluated, exported and opened, and the training goes on from the last one.
func TestBestState(t *testing.T) {
	l, err := learning(config{Updates: 6, Rows: 20})
	if err != nil {
		t.Fatal(err)
	}
	impatient(&l)
	coins := startOf(l)
	dir, result := train(t, coins, &struct{}{})
	points, err := run.ReadMetrics(dir)
	if err != nil {
		t.Fatal(err)
	}
	_, logits := run.Curve(points, "eval/first logit") // after 3 and 6 iterations
	if len(logits) != 2 || logits[0] == logits[1] {
		t.Fatalf("measured %v", logits)
	}
	r := result.(*task.Result)
	if r.Metrics["first logit"] != logits[0] || r.Measured != (run.Standing{State: "best", Step: 3, Last: 6, Score: -3}) || r.Iterations != 6 {
		t.Errorf("%+v, want the first logit %v", r, logits[0])
	}
	o, err := coins.Open(open(t), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	again, err := o.Evaluate()
	if err != nil || again.(*task.Result).Metrics["first logit"] != logits[0] {
		t.Errorf("opened, it is evaluated as %+v, error %v", again, err)
	}
	if got := tensors.MustCopyFlatData[float32](o.Theta().GetVariable("logits").MustValue()); float64(got[0]) != logits[0] {
		t.Errorf("opened, the first logit is %v, want %v", got[0], logits[0])
	}
	data, err := os.ReadFile(filepath.Join(dir, "parameters.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	exported, err := run.ParseSafetensors(data)
	if err != nil {
		t.Fatal(err)
	}
	if got := math.Float32frombits(binary.LittleEndian.Uint32(exported["/theta/logits"].Data)); float64(got) != logits[0] {
		t.Errorf("exported, the first logit is %v, want %v", got, logits[0])
	}
}

// A metric that is not there is named when it is first looked for.
func TestBestOfNothing(t *testing.T) {
	s := changed(t, func(l *task.Learning) { l.Watch, l.Best = 1, "sprad" })
	if _, err := s.Step(); err == nil || !strings.Contains(err.Error(), `Learning.Best is "sprad", which Learning.Metrics does not return`) {
		t.Errorf("error %v", err)
	}
}

// noted steps a session to its end and returns what its steps log.
func noted(t *testing.T, s *task.Session) (logs []map[string]float64) {
	t.Helper()
	for !s.Done() {
		tick, err := s.Step()
		if err != nil {
			t.Fatal(err)
		}
		logs = append(logs, tick.Log)
	}
	return logs
}

// Iterations are noted now and then, rare M-steps always, and metrics are measured where they are due.
func TestNotes(t *testing.T) {
	has := func(log map[string]float64, key string) bool { _, ok := log[key]; return ok }
	logs := noted(t, changed(t, func(l *task.Learning) { l.Spec.Gate, l.MSteps, l.Every = em.Blocks{E: 5}, 4, 4 }))
	for i, log := range logs {
		n := i + 1
		if due := n%4 == 0 || n%5 == 0 || n == len(logs); has(log, "e/loss") != due {
			t.Errorf("iteration %d of %d logs %v", n, len(logs), log)
		}
		if has(log, "m/loss") != (n%5 == 0) || has(log, "eval/spread") != (n%7 == 0 || n == len(logs)) {
			t.Errorf("iteration %d of %d logs %v", n, len(logs), log)
		}
	}
	logs = noted(t, changed(t, func(l *task.Learning) {
		l.Spec.Gate, l.MSteps, l.Every, l.Watch = em.Adaptive{Threshold: em.Linear{From: 9, To: 9}}, 0, 1, 0
		l.Iterations, l.Spec.MStep.Moves = 30, 1
		l.Spec.Wake.Objective, l.Spec.Sleep = gfn.TB{}, em.Sleep{Weight: 1, Batch: 8}
	}))
	for i, log := range logs {
		for _, key := range []string{"gate/average", "e/grad_norm", "sleep/loss", "skipped", "m/updates"} {
			if !has(log, key) {
				t.Errorf("iteration %d lacks %s: %v", i+1, key, log)
			}
		}
		if log["gate/threshold"] != 9 || has(log, "m/accepted") != has(log, "m/loss") || has(log, "eval/spread") {
			t.Errorf("iteration %d logs %v", i+1, log)
		}
	}
}

// The expectation of a training that is ended by M-steps follows how rare they are.
func TestProgress(t *testing.T) {
	s := changed(t, func(l *task.Learning) { l.Spec.Gate, l.MSteps, l.Watch = em.Blocks{E: 10}, 20, 0 })
	for range 100 {
		if _, err := s.Step(); err != nil {
			t.Fatal(err)
		}
	}
	// With two M-steps of one iteration each counted before: 100 + 10 (100+2)/(10+2).
	if step, total := s.Progress(); step != 100 || total != 185 {
		t.Errorf("step %d of %d", step, total)
	}
}

// What makes no sense is refused when a session starts.
func TestStartRefuses(t *testing.T) {
	for why, change := range map[string]func(l *task.Learning){
		"are both 0":           func(l *task.Learning) { l.MSteps = 0 },
		"with the gate em.Nev": func(l *task.Learning) { l.Spec.Gate = em.Never },
		"Samples is -1":        func(l *task.Learning) { l.Samples = -1 },
		"Metrics is not":       func(l *task.Learning) { l.Metrics = nil },
		"Watch is not":         func(l *task.Learning) { l.Watch, l.Best = 0, "spread" },
		"Best is not":          func(l *task.Learning) { l.Patience = 3 },
		"needs a Model":        func(l *task.Learning) { l.Spec.Model = nil },
		"HeldOut has 2 tensors, and Spec.Data supplies 1": func(l *task.Learning) { l.HeldOut = append(l.HeldOut, l.HeldOut[0]) },
		"tensor 0 of Learning.HeldOut is nil":             func(l *task.Learning) { l.HeldOut = []*tensors.Tensor{nil} },
		"HeldOut is (Int32)[2], and that of Spec.Data (Float32)[10, 8]": func(l *task.Learning) {
			l.HeldOut = []*tensors.Tensor{tensors.FromValue([]int32{1, 2})}
		},
		"Learning.Calibrate: -1 pairs": func(l *task.Learning) { l.Calibrate.Pairs = -1 },
		"Buckets needs Cut": func(l *task.Learning) {
			l.Buckets = &em.Buckets{Sizes: []int{4, 8}, Length: func([]*tensors.Tensor) []int { return nil }}
		},
		"Buckets.Length returns 0 lengths of 50 observations": func(l *task.Learning) {
			l.Buckets = &em.Buckets{Sizes: []int{8}, Length: func([]*tensors.Tensor) []int { return nil }}
		},
	} {
		l, err := learning(config{Updates: 6, Rows: 20})
		if err != nil {
			t.Fatal(err)
		}
		change(&l)
		_, err = task.Start(open(t), 0, l)
		wrong(t, err, why, "session_test.go:")
		// The user of a program is told where the function is that returned it, or a nearer one.
		place := "task coins: toy_test.go:"
		if strings.HasPrefix(why, "Buckets.Length returns") {
			place = "task coins: session_test.go:"
		}
		_, err = startOf(l).Start(open(t), &struct{}{})
		wrong(t, err, why, place)
	}
}

func wrong(t *testing.T, err error, want ...string) {
	t.Helper()
	for _, w := range want {
		if err == nil || !strings.Contains(err.Error(), w) {
			t.Errorf("error %v, want %s", err, w)
		}
	}
}

// A state of a longer training is refused.
func TestRestoreRefusesCounters(t *testing.T) {
	limited := func(n uint64) func(l *task.Learning) {
		return func(l *task.Learning) { l.MSteps, l.Iterations, l.Watch = 0, n, 0 }
	}
	long, short := changed(t, limited(8)), changed(t, limited(6))
	noted(t, long)
	s, err := long.State()
	if err != nil {
		t.Fatal(err)
	}
	if err := short.Restore(s); err == nil || !strings.Contains(err.Error(), "iteration 8 of 6") {
		t.Errorf("error %v", err)
	}
	if short.Counters() != (em.State{}) {
		t.Errorf("the counters became %+v", short.Counters())
	}
}

// What is measured is that of the posterior, and the user's own.
func TestEvaluate(t *testing.T) {
	s := changed(t, func(l *task.Learning) { l.Samples = 7 })
	noted(t, s)
	result, err := s.Evaluate()
	if err != nil {
		t.Fatal(err)
	}
	q, err := s.Posterior()
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	x := tossed(1, 50)
	estimates, err := q.LogLikelihood(7, x)
	if err != nil {
		t.Fatal(err)
	}
	mean := 0.0
	for _, e := range estimates {
		mean += e.LogZ / 50
	}
	r := result.(*task.Result)
	if l := r.LogLikelihood; math.Abs(l.Mean-mean) > 1e-9 || l.Samples != 7 || l.Count != 50 || !(l.ELBO < l.Mean) ||
		!(l.ESS > 1 && l.ESS <= 7) || !(0 < l.SampleErr && l.SampleErr < l.StdErr) {
		t.Errorf("log p(x) is %+v, want %g", l, mean)
	}
	if v, ok := r.Metrics["spread"]; !ok || !(v > 0) || r.MSteps != 6 || r.Iterations != 12 || r.Seed != 3 {
		t.Errorf("%+v", r)
	}
	var b strings.Builder
	if err := r.Print(&b); err != nil || !strings.Contains(b.String(), "50 observations with 7 samples each") ||
		!strings.Contains(b.String(), "spread") {
		t.Errorf("error %v\n%s", err, b.String())
	}
}
