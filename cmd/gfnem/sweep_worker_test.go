package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gfnem/gfnem/internal/faults"
	"github.com/gfnem/gfnem/sweep"
)

const fourCells = `task = "mixture"
seeds = 2
[set]
points = 200
batch = 50
iterations = 20
gate.e_steps = 20
[axes]
policy.hidden = [8, 16]
`

// snapshot is what a sweep says of itself.
type snapshot struct{ sweep.Snapshot }

// status is what the sweep says of itself.
func (s *sweeping) status(name string) (now snapshot) {
	data, err := os.ReadFile(filepath.Join(s.out(name), sweep.StatusName))
	if err == nil {
		err = json.Unmarshal(data, &now.Snapshot)
	}
	if err != nil && !os.IsNotExist(err) {
		s.Error(err)
	}
	return now
}

// wait waits until the sweep says something of itself, which must last.
func (s *sweeping) wait(name, what string, is func(snapshot) bool) {
	s.Helper()
	for begin := time.Now(); time.Since(begin) < 3*time.Minute; time.Sleep(20 * time.Millisecond) {
		if is(s.status(name)) {
			return
		}
	}
	s.Fatalf("%s: %+v\n%s", what, s.status(name), s.said())
}

// ends runs a process that must end with an exit code, and say a line that begins and ends in some way.
func (s *sweeping) ends(cmd *exec.Cmd, code int, begin, end string, during ...func()) {
	s.Helper()
	var errOut strings.Builder
	cmd.Stderr = &errOut
	if err := cmd.Start(); err != nil {
		s.Fatal(err)
	}
	for _, do := range during {
		do()
	}
	_ = cmd.Wait() // the exit code says it
	lines := strings.Split(strings.TrimSpace(errOut.String()), "\n")
	last := lines[len(lines)-1]
	if got := cmd.ProcessState.ExitCode(); got != code || !strings.HasPrefix(last, begin) || !strings.HasSuffix(last, end) {
		s.Errorf("exit code %d, says %q, want %d and %q ... %q", got, errOut.String(), code, begin, end)
	}
}

func (s *sweeping) workerArgs() []string {
	return []string{"worker", "nats://" + s.address, "--work", s.out("work")}
}

// cellOf returns the cell that a process makes, and how far it is.
func (now snapshot) cellOf(cmd *exec.Cmd) (cell string, step uint64) {
	for _, w := range now.Workers {
		if strings.HasSuffix(w.Name, fmt.Sprintf("/%d", cmd.Process.Pid)) {
			return w.Cell, w.Step
		}
	}
	return "", 0
}

// TestSweepWorkers has workers of another build, with a full disk, and one that comes back from the dead: each says so
// in a line, and the sweep is as if they had not been.
func TestSweepWorkers(t *testing.T) {
	if testing.Short() {
		t.Skip("takes processes and seconds")
	}
	s := newSweeping(t, strings.NewReplacer("iterations = 20", "iterations = 200", "[8, 16]", "[8]").Replace(fourCells))
	s.alone()
	gate := closedGate(t, s.dir, "")
	server := waitOf(s.server("many"))
	s.ends(s.otherBuild(), exitBadInput, "gfnem: the sweep is made by another build of the program (", "): give its workers the same")
	s.fullWorker()

	dead := s.worker()
	var cell string
	s.wait("many", "nobody works", func(now snapshot) (is bool) {
		var step uint64
		cell, step = now.cellOf(dead)
		return step > 0
	})
	if err := dead.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	others := []*exec.Cmd{s.worker(), s.worker()} // one of them takes the other cell
	s.wait("many", "nobody else takes the cell", func(now snapshot) bool {
		return slices.ContainsFunc(others, func(one *exec.Cmd) bool { has, _ := now.cellOf(one); return has == cell })
	})
	if err := dead.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	s.wait("many", "who comes back goes on", func(snapshot) bool {
		return strings.Contains(s.said(), "the claim is stale: somebody else has the cell: what was made of it since is dropped")
	})
	gate.open(t)
	if err := <-server; err != nil {
		t.Errorf("the sweep: %v", err)
	}
	s.same("many")
	if t.Failed() {
		t.Log(s.said())
	}
}

// fullWorker has a worker whose disk is full.
func (s *sweeping) fullWorker() {
	s.Helper()
	cmd := programNamed(s.T, "gfnem-gated", s.workerArgs()...)
	var errOut strings.Builder
	cmd.Stderr = &errOut
	full := faults.Fault{At: 25, Kind: faults.Kind{Errno: syscall.ENOSPC, Extent: faults.Full}}
	res, err := faults.Run(cmd, faults.Options{Below: []string{realPath(s.T, s.dir) + "/work"}, Fault: full})
	if err != nil {
		s.Skipf("no faults here: %v", err)
	}
	if code := res.Exit; code != exitBadInput || strings.Count(errOut.String(), "gfnem: ") != 1 ||
		!strings.Contains(errOut.String(), "no space left on device: this worker ends, and others go on with policy.hidden=") {
		s.Errorf("a full disk: exit code %d, says %q", code, errOut.String())
	}
}

func realPath(t *testing.T, path string) string {
	t.Helper()
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		t.Fatal(err)
	}
	return real
}

// otherBuild is a worker whose program is another file.
func (s *sweeping) otherBuild() *exec.Cmd {
	s.Helper()
	path, err := exec.LookPath("gfnem")
	if err != nil {
		s.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		s.Fatal(err)
	}
	other := filepath.Join(s.dir, "gfnem")
	if err := os.WriteFile(other, append(data, 0), 0o777); err != nil {
		s.Fatal(err)
	}
	return exec.Command(other, s.workerArgs()...)
}

// TestSweepInterrupted: Ctrl-C saves, says how to go on, and the same command does.
func TestSweepInterrupted(t *testing.T) {
	if testing.Short() {
		t.Skip("takes processes and seconds")
	}
	s := newSweeping(t, strings.Replace(fourCells, "iterations = 20", "iterations = 200", 1))
	s.alone()
	gate := closedGate(t, s.dir, "")
	args := []string{"sweep", s.file, "--out", s.out("again"), "--workers", "1"}
	cmd := programNamed(t, "gfnem-gated", args...)
	s.ends(cmd, exitInterrupted, "gfnem: interrupted and saved: give the same command again to go on", "", func() {
		s.wait("again", "no cell is made", func(now snapshot) bool { return len(now.Workers) > 0 && now.Workers[0].Step > 0 })
		cmd.Process.Signal(syscall.SIGINT)
	})
	gate.open(t)
	if out, err := program(t, args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	s.same("again")
}

// TestSweepFullDisk: when the disk of the sweep itself is full, wherever that is noticed, it says so in one line, and
// the same command goes on.
func TestSweepFullDisk(t *testing.T) {
	if testing.Short() {
		t.Skip("takes processes and seconds")
	}
	s := newSweeping(t, fourCells)
	s.alone()
	for _, at := range []int{60, 300} {
		cmd := program(t, "sweep", s.file, "--out", s.out("full"), "--workers", "1")
		var errOut strings.Builder
		cmd.Stderr = &errOut
		full := faults.Fault{At: at, Kind: faults.Kind{Errno: syscall.ENOSPC, Extent: faults.Full}}
		res, err := faults.Run(cmd, faults.Options{Below: []string{realPath(t, s.dir) + "/full"}, Fault: full})
		if err != nil {
			t.Skipf("no faults here: %v", err)
		}
		if code := res.Exit; code != exitBadInput || strings.Count(errOut.String(), "gfnem: ") != 1 ||
			!strings.Contains(errOut.String(), "no space left on device") {
			t.Errorf("at call %d: exit code %d, says %q", at, code, errOut.String())
		}
	}
	if out, err := program(t, "sweep", s.file, "--out", s.out("full"), "--workers", "1").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	s.same("full")
}
