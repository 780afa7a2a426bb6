package main

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// program runs the test binary as gfnem, see TestMain.
func program(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	path, err := exec.LookPath("gfnem")
	if err != nil {
		t.Fatal(err)
	}
	return exec.Command(path, args...)
}

// TestKilled kills a run with SIGKILL at random instants, many of them during saves, which follow each other closely, and
// resumes it each time. It must end as a run that was never killed: the same state and the same metrics, to the bit.
func TestKilled(t *testing.T) {
	kills := 100
	if testing.Short() {
		kills = 10
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d, %d kills", seed, kills)
	r := rand.New(rand.NewPCG(seed, 0))
	dir := t.TempDir()
	config := filepath.Join(dir, "config.toml")
	text := "seed = 3\nn_points = 200\nbatch = 50\nfirst_e_steps = 25\ne_steps = 25\niterations = 400\nhidden = 8\n"
	if err := os.WriteFile(config, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}

	type outcome struct {
		Hash string `json:"state_sha256"`
	}
	end := func(out []byte) (o outcome) {
		t.Helper()
		if err := json.Unmarshal(out, &o); err != nil || o.Hash == "" {
			t.Fatalf("result %q: %v", out, err)
		}
		return o
	}
	whole := filepath.Join(dir, "whole")
	begin := time.Now()
	out, err := program(t, "train", "mixture", "--config", config, "--out", whole, "--json").Output()
	if err != nil {
		t.Fatal(err)
	}
	want := end(out)
	took := time.Since(begin) / 3 // lives are killed within a part of the time that a whole run takes on this machine

	killed := filepath.Join(dir, "killed")
	next := func() *exec.Cmd {
		if _, err := os.Stat(filepath.Join(killed, "run.json")); err != nil {
			return program(t, "train", "mixture", "--config", config, "--out", killed, "--save-every", "1ms", "--json")
		}
		return program(t, "resume", killed, "--save-every", "1ms", "--json")
	}
	const least = 3 // lives that must have saved something for the test to show anything
	done, advanced, newest := 0, 0, ""
	for life := 0; life < kills || advanced < least && life < 3*kills; life++ {
		cmd := next()
		var errOut bytes.Buffer
		cmd.Stderr = &errOut
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		timer := time.AfterFunc(time.Duration(r.Int64N(int64(took))), func() { cmd.Process.Kill() })
		err := cmd.Wait()
		timer.Stop()
		switch {
		case err == nil:
			done++ // the run ended before the signal; resuming a finished run must change nothing either
		case cmd.ProcessState.ExitCode() != -1:
			t.Fatalf("a run that was killed before does not resume: %v\n%s", err, errOut.Bytes())
		}
		if saved, _ := filepath.Glob(filepath.Join(killed, "state", "????????????")); len(saved) > 0 && saved[len(saved)-1] > newest {
			newest = saved[len(saved)-1]
			advanced++
		}
	}
	t.Logf("%d of %d lives saved a checkpoint, %d reached the end", advanced, kills, done)
	if advanced < least {
		t.Errorf("only %d lives saved anything: the test shows too little", advanced)
	}
	if out, err = program(t, "resume", killed, "--json").Output(); err != nil {
		t.Fatal(err)
	}
	if got := end(out); got != want {
		t.Errorf("state after kills %v, without %v", got, want)
	}
	a, err := os.ReadFile(filepath.Join(whole, "metrics.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(killed, "metrics.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(a, b) {
		t.Errorf("metrics after kills differ: %d and %d bytes", len(b), len(a))
	}
}
