package run

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomlx/compute"

	"github.com/gfnem/gfnem/badinput"
)

// counting is a job that adds up the numbers from 1 to total. After stop steps, if not 0, it cancels its context, and at
// the step fail it fails.
type counting struct {
	N, Sum      uint64
	total       uint64
	stop, fail  uint64
	cancel      func()
	restoreFail bool
}

func (c *counting) Done() bool { return c.N == c.total }

func (c *counting) Step() (Tick, error) {
	if c.N+1 == c.fail {
		return Tick{}, errors.New("step failed")
	}
	c.N++
	c.Sum += c.N
	if c.N == c.stop {
		c.cancel()
	}
	return Tick{Step: c.N, Total: c.total, Log: map[string]float64{"sum": float64(c.Sum)}}, nil
}

func (c *counting) State() (State, error) {
	extra, err := json.Marshal(c)
	return State{Extra: extra}, err
}

func (c *counting) Restore(s State) error {
	if c.restoreFail {
		return errors.New("does not fit")
	}
	return json.Unmarshal(s.Extra, c)
}

// slowing is a job that finds out how long it is, and whose last step is slow.
type slowing struct{ counting }

func (s *slowing) Step() (Tick, error) {
	t, err := s.counting.Step()
	t.Total = 10 * t.Step
	if s.Done() {
		t.Phase = "slow"
		time.Sleep(50 * time.Millisecond)
	}
	return t, err
}

// TestDriveTells: the last line counts towards what was expected last, at the rate of the last phase.
func TestDriveTells(t *testing.T) {
	r, err := Create(filepath.Join(t.TempDir(), "run"), Options{Task: "count"})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var b bytes.Buffer
	if err := r.Drive(t.Context(), &slowing{counting{total: 100}}, time.Hour, &b); err != nil {
		t.Fatal(err)
	}
	var at, total int
	var rate float64
	if _, err := fmt.Sscanf(b.String(), "count %d/%d %f/s", &at, &total, &rate); err != nil || at != 100 || total != 1000 || rate > 25 {
		t.Errorf("the run says %q: want 100/1000 and at most 25/s, %v", b.String(), err)
	}
}

func TestDriveResumes(t *testing.T) {
	whole, parts := filepath.Join(t.TempDir(), "whole"), filepath.Join(t.TempDir(), "parts")
	r, err := Create(whole, Options{Task: "count"})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Drive(t.Context(), &counting{total: 50}, time.Hour, nil); err != nil {
		t.Fatal(err)
	}
	r.Close()

	r, err = Create(parts, Options{Task: "count"})
	for _, stop := range []uint64{7, 8, 30, 49} {
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		err = r.Drive(ctx, &counting{total: 50, stop: stop, cancel: cancel}, time.Hour, nil)
		if !errors.Is(err, ErrInterrupted) || !strings.Contains(err.Error(), fmt.Sprintf("at step %d: continue with", stop)) {
			t.Fatalf("stopped at %d: %v", stop, err)
		}
		r.Close()
		r, err = Open(parts)
	}
	// A step that fails loses what came after the last checkpoint, and no more.
	if err := r.Drive(t.Context(), &counting{total: 50, fail: 50}, time.Hour, nil); err == nil || err.Error() != "step failed" {
		t.Fatalf("failing step: %v", err)
	}
	r.Close()
	if r, err = Open(parts); err != nil {
		t.Fatal(err)
	}
	if err := r.Drive(t.Context(), &counting{total: 50, restoreFail: true}, time.Hour, nil); err == nil {
		t.Fatal("a state that does not fit was restored")
	}
	job := &counting{total: 50}
	if err := r.Drive(t.Context(), job, 0, nil); err != nil {
		t.Fatal(err)
	}
	if job.Sum != 50*51/2 {
		t.Errorf("sum %d", job.Sum)
	}
	// Driving a finished run changes nothing.
	if err := r.Drive(t.Context(), &counting{total: 50}, 0, nil); err != nil {
		t.Fatal(err)
	}
	r.Close()
	a, err := os.ReadFile(filepath.Join(whole, metricsName))
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(parts, metricsName))
	if err != nil || !bytes.Equal(a, b) {
		t.Errorf("metrics differ (%v):\n%s\n%s", err, a, b)
	}
}

// giving is a job that gives up after a number of steps.
type giving struct {
	counting
	after uint64
}

func (g *giving) Step() (Tick, error) {
	if g.N == g.after {
		return Tick{}, fmt.Errorf("%w: it leads nowhere", ErrGaveUp)
	}
	return g.counting.Step()
}

// What a job has that gives up is saved.
// A run that has lost all its checkpoints begins anew, and says so; a new one says nothing.
func TestDriveBeginsAnew(t *testing.T) {
	r := newRun(t)
	for _, want := range []string{"", "has no checkpoint: the training begins anew"} {
		var out bytes.Buffer
		job := &counting{total: 3}
		if err := r.Drive(t.Context(), job, 0, &out); err != nil || job.Sum != 6 {
			t.Fatalf("%v, sum %d", err, job.Sum)
		}
		if got := out.String(); strings.Contains(got, "warning") != (want != "") || !strings.Contains(got, want) {
			t.Errorf("it says %q, want %q", got, want)
		}
		steps, err := r.checkpoints()
		if err != nil {
			t.Fatal(err)
		}
		for _, step := range steps {
			if err := os.RemoveAll(r.checkpointPath(step)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestDriveGivesUp(t *testing.T) {
	r, err := Create(filepath.Join(t.TempDir(), "run"), Options{Task: "count"})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	err = r.Drive(t.Context(), &giving{counting{total: 50}, 7}, time.Hour, nil)
	if !errors.Is(err, ErrGaveUp) || !strings.Contains(err.Error(), "it leads nowhere; the last good state is kept in "+r.Dir()) {
		t.Errorf("error %v", err)
	}
	s, _, err := r.Load()
	var job counting
	if err != nil || s.Step != 7 || job.Restore(s) != nil || job.Sum != 7*8/2 {
		t.Errorf("step %d with %+v is kept, error %v", s.Step, job, err)
	}
}

// countTask is a task of counting jobs.
type countTask struct {
	mu      *sync.Mutex
	started *[]uint64 // seeds, guarded by mu: a grid starts several at once
}

type countConfig struct {
	Seed  uint64 `toml:"seed"`
	Total uint64 `toml:"total"`
}

func (countTask) Name() string      { return "count" }
func (countTask) Presets() []string { return []string{"quick"} }
func (countTask) Config(string) any { return &countConfig{} }
func (k countTask) Start(_ compute.Backend, config any) (Session, error) {
	c := config.(*countConfig)
	k.mu.Lock()
	defer k.mu.Unlock()
	*k.started = append(*k.started, c.Seed)
	return &countSession{counting{total: c.Total}, c.Seed}, nil
}

type countSession struct {
	counting
	seed uint64
}

func (s *countSession) Seed() uint64                          { return s.seed }
func (s *countSession) Data() map[string]string               { return nil }
func (s *countSession) Progress() (step, total uint64)        { return s.N, s.total }
func (s *countSession) Evaluate() (Result, error)             { return countResult{s.Sum + s.seed}, nil }
func (s *countSession) Report(*Run, string, Result) error     { return nil }
func (s *countSession) Parameters() (map[string]Array, error) { return nil, nil }
func (s *countSession) Close()                                {}

type countResult struct{ Value uint64 }

func (countResult) Print(io.Writer) error { return nil }

func TestGrid(t *testing.T) {
	var started []uint64
	g := Grid{Dir: t.TempDir(), Task: countTask{new(sync.Mutex), &started}, Workers: 1, Every: time.Hour}
	var cells []Cell
	for k := range 5 {
		cells = append(cells, Cell{Row: "row", Index: k, Config: &countConfig{Seed: uint64(k), Total: 10}})
	}
	check := func(name string, cells []Cell) {
		t.Helper()
		out, err := g.Run(t.Context(), cells)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for k, data := range out {
			if want := fmt.Sprintf(`{"Value":%d}`, 55+k); string(data) != want {
				t.Errorf("%s: cell %d is %s, want %s", name, k, data, want)
			}
		}
	}
	check("first", cells[:3])
	started = nil
	g.Workers = 3
	check("again", cells) // the first three are read, not made again
	slices.Sort(started)
	if !slices.Equal(slices.Compact(started), []uint64{3, 4}) {
		t.Errorf("started %v, want cells 3 and 4 alone", started)
	}
	cells[1].Config = &countConfig{Seed: 1, Total: 11}
	var input *badinput.Error
	if _, err := g.Run(t.Context(), cells); !errors.As(err, &input) || !strings.Contains(err.Error(), "other settings") {
		t.Errorf("other settings: %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(ErrInterrupted)
	g.Dir = t.TempDir()
	if _, err := g.Run(ctx, cells); !errors.Is(err, ErrInterrupted) {
		t.Errorf("cancelled: %v", err)
	}
}

// failTask's trainings all fail: that of seed 0 when it is to save itself because another one has failed, the others at once.
type failTask struct{ countTask }

func (failTask) Start(_ compute.Backend, config any) (Session, error) {
	if seed := config.(*countConfig).Seed; seed > 0 {
		return nil, badinput.Errorf("seed %d fails", seed)
	}
	return &unsavable{countSession{counting: counting{total: 10_000}}}, nil
}

// unsavable is a session of ten seconds that cannot be saved.
type unsavable struct{ countSession }

func (s *unsavable) Step() (Tick, error) {
	time.Sleep(time.Millisecond)
	return s.counting.Step()
}

func (*unsavable) State() (State, error) { return State{}, errors.New("seed 0 fails") }

func TestGridNamesTheFirstFailure(t *testing.T) {
	g := Grid{Dir: t.TempDir(), Task: failTask{}, Workers: 2, Every: time.Hour}
	cells := []Cell{{Row: "row", Index: 0, Config: &countConfig{}}, {Row: "row", Index: 1, Config: &countConfig{Seed: 1}}}
	_, err := g.Run(t.Context(), cells)
	if err == nil || !strings.HasPrefix(err.Error(), "row, run 0: ") || !strings.HasSuffix(err.Error(), "seed 0 fails") {
		t.Errorf("got %v, want the failure of run 0", err)
	}
}

// lingerTask makes sessions that take long to start, to step or to be measured, by their seed.
type lingerTask struct {
	countTask
	cancel  func()
	letGo   chan struct{}
	pending *sync.WaitGroup
	t       *testing.T
}

type lingering struct {
	countSession
	task lingerTask
	busy atomic.Bool
}

func (k lingerTask) linger() {
	k.pending.Add(1)
	defer k.pending.Done()
	k.cancel()
	<-k.letGo
}

func (k lingerTask) Start(_ compute.Backend, config any) (Session, error) {
	c := config.(*countConfig)
	if c.Seed == 0 {
		k.linger()
	}
	return &lingering{countSession: countSession{counting{total: c.Total}, c.Seed}, task: k}, nil
}

func (s *lingering) Step() (Tick, error) {
	if s.seed == 1 && s.N == 3 {
		s.busy.Store(true)
		s.task.linger()
	}
	return s.countSession.Step()
}

func (s *lingering) Evaluate() (Result, error) {
	if s.seed == 2 {
		s.busy.Store(true)
		s.task.linger()
	}
	return s.countSession.Evaluate()
}

func (s *lingering) Close() {
	if s.busy.Load() {
		s.task.t.Error("a session was closed while it was in use")
	}
}

// TestGridLeavesWhatTakesLong: a grid that is told to end does so, whatever a training is at.
func TestGridLeavesWhatTakesLong(t *testing.T) {
	shorten(t, 20*time.Millisecond)
	for seed := range uint64(3) {
		ctx, cancel := context.WithCancelCause(t.Context())
		task := lingerTask{cancel: func() { cancel(ErrInterrupted) }, letGo: make(chan struct{}), pending: new(sync.WaitGroup), t: t}
		g := Grid{Dir: t.TempDir(), Task: task, Workers: 1, Every: 0, Log: new(bytes.Buffer)}
		_, err := g.Run(ctx, []Cell{{Row: "row", Config: &countConfig{Seed: seed, Total: 10}}})
		if !errors.Is(err, ErrInterrupted) {
			t.Errorf("seed %d: %v", seed, err)
		}
		close(task.letGo)
		task.pending.Wait()
		out, err := Grid{Dir: g.Dir, Task: countTask{new(sync.Mutex), new([]uint64)}, Workers: 1}.Run(t.Context(),
			[]Cell{{Row: "row", Config: &countConfig{Seed: seed, Total: 10}}})
		if want := fmt.Sprintf(`{"Value":%d}`, 55+seed); err != nil || string(out[0]) != want {
			t.Errorf("seed %d: %s, error %v, want %s", seed, out, err, want)
		}
	}
}

func TestInfoString(t *testing.T) {
	info := Info{Task: "mixture", Command: []string{"gfnem", "train"}, Seed: 3, Go: "go1", OS: "linux", Arch: "amd64",
		Data: map[string]string{"b": "2", "a": "1"}}
	want := "task      mixture\ncommand   gfnem train\nseed      3\ncreated   0001-01-01T00:00:00Z\n" +
		"go        go1 linux/amd64\ndata      a sha256 1\ndata      b sha256 2"
	if got := info.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
