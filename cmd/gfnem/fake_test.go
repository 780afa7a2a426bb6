package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gomlx/compute"

	"github.com/gfnem/gfnem/cli/command"
	"github.com/gfnem/gfnem/config"
	"github.com/gfnem/gfnem/run"
)

// fakeTask adds up the numbers from 1 to total, as slowly as it is told to.
type fakeTask struct{}

type fakeConfig struct {
	Seed  uint64 `toml:"seed"`
	Total int    `toml:"total"`
	Start bool   `toml:"start"` // to prepare a session takes a minute
	Slow  int    `toml:"slow"`  // the number of a step that takes a minute; 0 means none
}

func (fakeTask) Name() string      { return "fake" }
func (fakeTask) Presets() []string { return []string{"quick"} }
func (fakeTask) Config(string) any { return &fakeConfig{Total: 10} }

func (fakeTask) Start(_ compute.Backend, config any) (run.Session, error) {
	s := &fakeSession{fakeConfig: *config.(*fakeConfig)}
	if s.Start {
		pause()
	}
	return s, nil
}

// pause takes a minute, and says so.
func pause() {
	fmt.Println("pause")
	time.Sleep(time.Minute)
}

var _ run.Reproducer = fakeTask{}

func (fakeTask) Tables() map[string][]string { return map[string][]string{"fake-table": {"row"}} }

func (fakeTask) Reproduce(context.Context, run.Study) (run.Result, error) {
	pause()
	return nil, nil
}

type fakeSession struct {
	fakeConfig
	n, sum uint64
	busy   bool
}

// evaluating is called while a fake session is measured.
var evaluating = func(*fakeSession) error { return nil }

func (s *fakeSession) Done() bool                                { return s.n >= uint64(s.Total) }
func (s *fakeSession) Progress() (step, total uint64)            { return s.n, uint64(s.Total) }
func (s *fakeSession) Seed() uint64                              { return s.fakeConfig.Seed }
func (s *fakeSession) Data() map[string]string                   { return nil }
func (s *fakeSession) Parameters() (map[string]run.Array, error) { return nil, nil }

func (s *fakeSession) Step() (run.Tick, error) {
	if s.n+1 == uint64(s.Slow) {
		s.busy = true
		pause()
		s.busy = false
	}
	s.n++
	s.sum += s.n
	return run.Tick{Step: s.n, Total: uint64(s.Total), Log: map[string]float64{"sum": float64(s.sum)}}, nil
}

func (s *fakeSession) State() (run.State, error) {
	extra, err := json.Marshal([]uint64{s.n, s.sum})
	return run.State{Extra: extra}, err
}

func (s *fakeSession) Restore(state run.State) error {
	return json.Unmarshal(state.Extra, &[]*uint64{&s.n, &s.sum})
}

func (s *fakeSession) Evaluate() (run.Result, error) {
	r := fakeResult{s.sum}
	return r, evaluating(s)
}

func (s *fakeSession) Report(_ *run.Run, dir string, _ run.Result) error {
	return os.WriteFile(filepath.Join(dir, "report.html"), nil, 0o666)
}

func (s *fakeSession) Close() {
	if s.busy {
		panic("closed in the middle of a step")
	}
}

type fakeResult struct {
	Sum uint64 `json:"sum"`
}

func (r fakeResult) Print(w io.Writer) error { return command.PrintJSON(w, r) }

// fake lets a test that is not parallel train the fake task.
func fake(t *testing.T) {
	t.Helper()
	before := gfnem.Tasks
	gfnem.Tasks = append(before[:len(before):len(before)], fakeTask{})
	t.Cleanup(func() { gfnem.Tasks, evaluating = before, func(*fakeSession) error { return nil } })
}

// told runs the program, which must end with a code, and returns its output and what it says besides.
func told(t *testing.T, code int, args ...string) (out, besides string) {
	t.Helper()
	var o, e strings.Builder
	if got := execute(args, &o, &e); got != code {
		t.Fatalf("%v: exit code %d, want %d\n%s%s", args, got, code, o.String(), e.String())
	}
	return o.String(), e.String()
}

// trainFake makes a run whose newest checkpoint is a step, and returns its folder and the hash of that state.
func trainFake(t *testing.T, total, step int) (dir, hash string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "run")
	s := &fakeSession{fakeConfig: fakeConfig{Total: total}}
	text, err := config.Encode(&s.fakeConfig)
	if err != nil {
		t.Fatal(err)
	}
	r, err := run.Create(dir, run.Options{Task: "fake", Config: text})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for range step {
		if hash, err = advance(r, s); err != nil {
			t.Fatal(err)
		}
	}
	return dir, hash
}

// advance makes a step and saves it. It returns the hash of the state.
func advance(r *run.Run, s *fakeSession) (string, error) {
	if _, err := s.Step(); err != nil {
		return "", err
	}
	state, err := s.State()
	if err != nil {
		return "", err
	}
	state.Step = s.n
	return run.StateHash(state), r.Save(state)
}
