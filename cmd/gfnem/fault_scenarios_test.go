package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/gfnem/gfnem/internal/faults"
)

// faultProgram is a command of the program in a folder. It has one thread for work, so that its calls come in the same
// order in every life.
func faultProgram(t *testing.T, dir string, args []string) *exec.Cmd {
	t.Helper()
	cmd := program(t, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOMAXPROCS=1", "GODEBUG=asyncpreemptoff=1")
	return cmd
}

// made runs a command of the program to its end.
func made(t *testing.T, dir string, args ...string) {
	t.Helper()
	if out, err := faultProgram(t, dir, args).CombinedOutput(); err != nil {
		t.Fatalf("gfnem %v: %v: %s", args, err, out)
	}
}

// killedAt runs a command of the program and kills it before it renames something to a path.
func killedAt(t *testing.T, dir, path string, args ...string) {
	t.Helper()
	cmd := faultProgram(t, dir, args)
	res := followed(t, cmd, faults.Options{Below: []string{dir}, Before: func(c faults.Call) {
		if c.To == filepath.Join(dir, path) {
			cmd.Process.Kill()
		}
	}})
	if res.Signal != syscall.SIGKILL {
		t.Fatalf("gfnem %v never made %s", args, path)
	}
}

// followed follows a program to its end, and skips the test where that is not possible.
func followed(t *testing.T, cmd *exec.Cmd, o faults.Options) faults.Result {
	t.Helper()
	res, err := faults.Run(cmd, o)
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	return res
}

// tinySettings are those of a file of testdata/tiny, as arguments.
func tinySettings(t *testing.T, name string, more ...string) []string {
	t.Helper()
	args, err := withKeys(filepath.Join("testdata", "tiny", name+".toml"), []string{""})
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range more {
		args = append(args, "--set", one)
	}
	return args[1:]
}

// faultScenarios are the commands that are disturbed.
func faultScenarios(t *testing.T) []scenario {
	t.Helper()
	// A data set that all lives of a grid read: its path is in what they write.
	shared := realDir(t)
	copyTiny(t, shared)
	made(t, shared, "data", "treebank", "sentences.trees", "--out", "data", "--valid-fraction", "0.2",
		"--test-fraction", "0.1")

	small := tinySettings(t, "mixture", "points=20", "batch=10", "iterations=2", "gate.first_e_steps=3", "gate.e_steps=3")
	train := append([]string{"train", "mixture", "--out", "run", "--save-every", "1ns", "--json"}, small...)
	resume := []string{"resume", "run", "--save-every", "1ns", "--json"}
	finished := func(t *testing.T, dir string) { made(t, dir, train...) }
	best := append([]string{"train", "grammar", "--out", "run", "--save-every", "1ns", "--json", "--data", filepath.Join(shared, "data")},
		tinySettings(t, "grammar", bestEarlier...)...)
	corpus := append([]string{"train", "grammar", "--out", "run", "--save-every", "1ns", "--json", "--data",
		filepath.Join(shared, "sentences.trees")}, tinySettings(t, "grammar", "text.valid=0.2")...)
	grid := append([]string{"reproduce", "grammar", "--rows", "marginal", "--seeds", "2", "--workers", "1",
		"--out", "grid", "--data", filepath.Join(shared, "data"), "--save-every", "1ns", "--json"},
		tinySettings(t, "grammar")...)
	return []scenario{
		{name: "train", holds: "run", args: train, again: func(dir string) []string {
			if _, err := os.Stat(filepath.Join(dir, "run", "run.json")); err != nil {
				return train
			}
			return resume
		}},
		{name: "resume", holds: "run", args: resume, setup: func(t *testing.T, dir string) {
			killedAt(t, dir, "run/state/000000000004", train...)
		}},
		// The state that counts is an earlier one than the last.
		{name: "best", holds: "run", args: resume, reads: shared, setup: func(t *testing.T, dir string) {
			killedAt(t, dir, "run/state/000000000002", best...)
		}},
		// The run makes its data set, and keeps it.
		{name: "corpus", holds: "run", args: corpus, reads: shared, again: func(dir string) []string {
			if _, err := os.Stat(filepath.Join(dir, "run", "run.json")); err != nil {
				return corpus
			}
			return resume
		}},
		{name: "eval", holds: "run", args: []string{"eval", "run", "--json"}, setup: finished},
		{name: "verify", holds: "run", args: []string{"verify", "run"}, setup: finished},
		// The report that is replaced is of a step before.
		{name: "report", holds: "run", args: []string{"report", "run"}, setup: func(t *testing.T, dir string) {
			killedAt(t, dir, "run/state/000000000004", train...)
			made(t, dir, "report", "run")
			killedAt(t, dir, "run/state/000000000006", resume...)
		}},
		{name: "treebank", holds: "data",
			args: []string{"data", "treebank", "sentences.trees", "--out", "data", "--force", "--json"},
			setup: func(t *testing.T, dir string) {
				copyTiny(t, dir)
				made(t, dir, "data", "treebank", "sentences.trees", "--out", "data", "--max-length", "4")
			}},
		{name: "grid", holds: "grid", args: grid, reads: shared},
		{name: "grid-continued", holds: "grid", args: grid, reads: shared, setup: func(t *testing.T, dir string) {
			killedAt(t, dir, "grid/marginal/1/state/000000000002", grid...)
		}},
	}
}

func copyTiny(t *testing.T, dir string) {
	t.Helper()
	if err := os.CopyFS(dir, tiny); err != nil {
		t.Fatal(err)
	}
}
