package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/gomlx/compute"

	"github.com/gfnem/gfnem/run"
)

// A gate lets a test decide when trainings of other processes may go on: while its file is there, those that it is for
// take seconds for each step. They end as they would without.

const gateFile, gateSeed = "GFNEM_TEST_GATE", "GFNEM_TEST_GATE_SEED"

// mainGated is the program with a gate before its trainings.
func mainGated() {
	for i, t := range gfnem.Tasks {
		gfnem.Tasks[i] = gated{t}
	}
	main()
}

type gated struct{ run.Task }

// Start implements run.Task.
func (g gated) Start(b compute.Backend, config any) (run.Session, error) {
	s, err := g.Task.Start(b, config)
	if only := os.Getenv(gateSeed); err != nil || only != "" && only != strconv.FormatUint(s.Seed(), 10) {
		return s, err
	}
	return gatedSession{s}, nil
}

type gatedSession struct{ run.Session }

// Step implements run.Session.
func (s gatedSession) Step() (run.Tick, error) {
	const most = 3 * time.Second // less than run.Grace, so that it can be interrupted
	for begin := time.Now(); time.Since(begin) < most; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Lstat(os.Getenv(gateFile)); err != nil {
			break
		}
	}
	return s.Session.Step()
}

// gate is the file of one.
type gate string

// closedGate makes a gate for trainings with a seed; "" means all.
func closedGate(t *testing.T, dir, seed string) gate {
	t.Helper()
	g := gate(filepath.Join(dir, "gate"))
	t.Setenv(gateFile, string(g))
	t.Setenv(gateSeed, seed)
	g.close(t)
	return g
}

func (g gate) close(t *testing.T) {
	t.Helper()
	if err := os.WriteFile(string(g), nil, 0o666); err != nil {
		t.Fatal(err)
	}
}

func (g gate) open(t *testing.T) {
	t.Helper()
	if err := os.Remove(string(g)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
}
