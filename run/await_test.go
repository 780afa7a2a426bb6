package run

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gfnem/gfnem/internal/crash"
)

// stuck is a job whose step after so many ends only when it is let go.
type stuck struct {
	counting
	after uint64
	began func()
	letGo chan struct{}
	ended sync.WaitGroup
}

func newStuck(total, after uint64, began func()) *stuck {
	return &stuck{counting: counting{total: total}, after: after, began: began, letGo: make(chan struct{})}
}

func (s *stuck) Step() (Tick, error) {
	if s.N == s.after {
		s.ended.Add(1)
		defer s.ended.Done()
		s.began()
		<-s.letGo
	}
	return s.counting.Step()
}

// shorten makes the grace time of a test a short one.
func shorten(t *testing.T, grace time.Duration) {
	t.Helper()
	before := Grace
	Grace = grace
	t.Cleanup(func() { Grace = before })
}

// TestDriveLeavesALongStep: what was saved before it is kept, whatever the step does later.
func TestDriveLeavesALongStep(t *testing.T) {
	shorten(t, 20*time.Millisecond)
	for _, c := range []struct {
		after uint64
		want  string
	}{
		{0, "interrupted in the middle of a step; nothing is saved yet: continue with "},
		{7, "interrupted in the middle of a step; the last checkpoint is step 7 of 50: continue with "},
	} {
		dir := filepath.Join(t.TempDir(), "run")
		r, err := Create(dir, Options{Task: "count"})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		job := newStuck(50, c.after, cancel)
		err = r.Drive(ctx, job, 0, nil)
		if !errors.Is(err, ErrInterrupted) || !errors.Is(err, ErrBusy) || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("after %d steps: %v", c.after, err)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		close(job.letGo)
		job.ended.Wait()
		if r, err = Open(dir); err != nil {
			t.Fatal(err)
		}
		again := &counting{total: 50}
		if err := r.Drive(t.Context(), again, 0, nil); err != nil || again.Sum != 50*51/2 {
			t.Errorf("after %d steps: resumed, the sum is %d, error %v", c.after, again.Sum, err)
		}
		r.Close()
	}
}

// A step that ends within the grace time is saved.
func TestDriveWaitsForAStep(t *testing.T) {
	r := newRun(t)
	ctx, cancel := context.WithCancel(t.Context())
	job := newStuck(50, 7, cancel)
	time.AfterFunc(20*time.Millisecond, func() { close(job.letGo) })
	err := r.Drive(ctx, job, time.Hour, nil)
	if !errors.Is(err, ErrInterrupted) || errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), "at step 8: ") {
		t.Error(err)
	}
}

// Without a checkpoint of its own, a resumed run names the one that it was restored from.
func TestDriveNamesTheCheckpointItBeganWith(t *testing.T) {
	shorten(t, time.Millisecond)
	r := newRun(t)
	if err := r.Drive(t.Context(), &counting{total: 7}, time.Hour, nil); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	job := newStuck(50, 7, cancel)
	err := r.Drive(ctx, job, time.Hour, nil)
	if !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), "the last checkpoint is step 7: ") {
		t.Error(err)
	}
	close(job.letGo)
	job.ended.Wait()
}

// failingStep is a job whose steps do what they are told.
type failingStep struct {
	counting
	do func()
}

func (f *failingStep) Step() (Tick, error) {
	f.do()
	return f.counting.Step()
}

// What a step panics with reaches who drives it, with the place; and a step that ends its goroutine ends that of Drive.
func TestDrivePassesPanicsOn(t *testing.T) {
	cause := errors.New("the cause")
	r := newRun(t)
	func() {
		defer func() {
			err, _ := recover().(*crash.Error)
			if err == nil || !errors.Is(err, cause) || !strings.Contains(string(err.Stack), "await_test.go") {
				t.Errorf("the panic is %v", err)
			}
		}()
		err := r.Drive(t.Context(), &failingStep{counting{total: 2}, func() { panic(cause) }}, 0, nil)
		t.Errorf("Drive returned %v", err)
	}()
	var text any
	func() {
		defer func() {
			if err, ok := recover().(*crash.Error); ok {
				text = err.Value
			}
		}()
		r.Drive(t.Context(), &failingStep{counting{total: 2}, func() { panic("text") }}, 0, nil)
	}()
	if text != "text" {
		t.Errorf("the panic is %v", text)
	}
	done := make(chan bool)
	go func() {
		defer close(done)
		t := &testing.T{}
		r.Drive(context.Background(), &failingStep{counting{total: 2}, t.FailNow}, 0, nil)
		done <- true
	}()
	if <-done {
		t.Error("Drive went on after a step had ended its goroutine")
	}
}

// A process that is told to end in a step of a minute ends soon, with what it had saved.
func TestSignalInALongStep(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		cmd, _, out := startHelper(t, "long", dir)
		expectLine(t, out, "ready")
		begin := time.Now()
		if err := cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		expectLine(t, out, fmt.Sprintf(
			"interrupted in the middle of a step; the last checkpoint is step 7 of 50: continue with %q", "gfnem resume "+dir))
		if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != 3 || time.Since(begin) > 20*time.Second {
			t.Errorf("%v: the process ended with %v after %v", sig, err, time.Since(begin))
		}
	}
}

// longSession is a session with a step of a minute.
type longSession struct{ countSession }

func (s *longSession) Step() (Tick, error) {
	if s.N == 7 {
		fmt.Println("ready")
		time.Sleep(time.Minute)
	}
	return s.counting.Step()
}

func (s *longSession) Close() { panic("closed in the middle of a step") }

// helperLong drives a session with a step of a minute.
func helperLong(dir string) (code int) {
	Grace = 200 * time.Millisecond
	ctx, stop := WithSignals(context.Background())
	defer stop()
	r, err := Open(dir)
	if errors.Is(err, ErrNotRun) {
		r, err = Create(dir, Options{Task: "count"})
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer r.Close()
	s := &longSession{countSession{counting: counting{total: 50}}}
	err = r.Drive(ctx, s, 0, nil)
	defer Release(s, err)
	fmt.Println(err)
	if errors.Is(err, ErrInterrupted) {
		return 3
	}
	return 1
}
