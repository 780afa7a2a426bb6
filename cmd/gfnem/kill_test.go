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

// lives is a run that was trained without interruption, and the same one again, killed and resumed.
type lives struct {
	*testing.T
	task, config, dir string
	want              string        // the state in which the whole run ended
	took              time.Duration // by the whole run
}

// newLives trains the whole run.
func newLives(t *testing.T, task, config string) *lives {
	t.Helper()
	l := &lives{T: t, task: task, dir: t.TempDir()}
	l.config = filepath.Join(l.dir, "config.toml")
	if err := os.WriteFile(l.config, []byte(config), 0o666); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	l.want = l.end("train", task, "--config", l.config, "--out", filepath.Join(l.dir, "whole"))
	l.took = time.Since(begin)
	return l
}

// end runs the program to its end and returns the hash of the state.
func (l *lives) end(args ...string) string {
	l.Helper()
	out, err := program(l.T, append(args, "--json")...).Output()
	if err != nil {
		l.Fatal(err)
	}
	var o struct {
		Hash string `json:"state_sha256"`
	}
	if err := json.Unmarshal(out, &o); err != nil || o.Hash == "" {
		l.Fatalf("result %q: %v", out, err)
	}
	return o.Hash
}

func (l *lives) killed() string { return filepath.Join(l.dir, "killed") }

// newest is the newest checkpoint of the run that is killed; empty if there is none.
func (l *lives) newest() string {
	saved, _ := filepath.Glob(filepath.Join(l.killed(), "state", "????????????"))
	if len(saved) == 0 {
		return ""
	}
	return saved[len(saved)-1]
}

// live begins or resumes the run that is killed, kills it when a channel says so, and returns whether it reached its end before.
func (l *lives) live(kill func() <-chan time.Time) (ended bool) {
	l.Helper()
	cmd := program(l.T, "resume", l.killed(), "--save-every", "1ms", "--json")
	if _, err := os.Stat(filepath.Join(l.killed(), "run.json")); err != nil {
		cmd = program(l.T, "train", l.task, "--config", l.config, "--out", l.killed(), "--save-every", "1ms", "--json")
	}
	var errOut bytes.Buffer
	cmd.Stderr = &errOut
	if err := cmd.Start(); err != nil {
		l.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	var err error
	select {
	case err = <-done:
	case <-kill():
		cmd.Process.Kill()
		err = <-done
	}
	if err != nil && cmd.ProcessState.ExitCode() != -1 {
		l.Fatalf("a run that was killed before does not resume: %v\n%s", err, errOut.Bytes())
	}
	return err == nil
}

// compare resumes the run for the last time: it must end as the one that was never killed, with the same state and metrics, to the bit.
func (l *lives) compare() {
	l.Helper()
	if got := l.end("resume", l.killed()); got != l.want {
		l.Errorf("state after kills %v, without %v", got, l.want)
	}
	a, err := os.ReadFile(filepath.Join(l.dir, "whole", "metrics.jsonl"))
	if err != nil {
		l.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(l.killed(), "metrics.jsonl"))
	if err != nil {
		l.Fatal(err)
	}
	if !bytes.Equal(a, b) {
		l.Errorf("metrics after kills differ: %d and %d bytes", len(b), len(a))
	}
}

// TestKilled kills a run with SIGKILL at random instants, many of them during saves, which follow each other closely, and
// resumes it each time.
func TestKilled(t *testing.T) {
	kills := 100
	if testing.Short() {
		kills = 10
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d, %d kills", seed, kills)
	r := rand.New(rand.NewPCG(seed, 0))
	l := newLives(t, "mixture", "seed = 3\npoints = 200\nbatch = 50\niterations = 400\npolicy.hidden = 8\n[gate]\nfirst_e_steps = 25\ne_steps = 25\n")
	// Lives are killed within a part of the time that a whole run takes on this machine.
	kill := func() <-chan time.Time { return time.After(time.Duration(r.Int64N(int64(l.took / 3)))) }
	const least = 3 // lives that must have saved something for the test to show anything
	done, advanced, newest := 0, 0, ""
	for life := 0; life < kills || advanced < least && life < 3*kills; life++ {
		if l.live(kill) {
			done++ // resuming a finished run must change nothing either
		}
		if saved := l.newest(); saved > newest {
			newest = saved
			advanced++
		}
	}
	t.Logf("%d of %d lives saved a checkpoint, %d reached the end", advanced, kills, done)
	if advanced < least {
		t.Errorf("only %d lives saved anything: the test shows too little", advanced)
	}
	l.compare()
}

// TestKilledSlow does the same with GFlowNet-EM for grammars and for images, which takes longer to begin: every life is killed soon after
// its first save.
func TestKilledSlow(t *testing.T) {
	for task, config := range map[string]string{"grammar": `method = "gfn"
data = "small"
ebm = true
ebm_updates = 3
nonterminals = 3
preterminals = 4
width = 8
batch = 8
max_length = 4
bucket = 4
gfn_width = 8
gfn_layers = 1
dream_leaves = 6
dream_steps = 4
moves = 2
threshold = 1e9
threshold_end = 1e9
updates = 150
eval_every = 50
`, "vae": `method = "gfn-gd-prior"
train_images = 800
test_images = 8
batch = 8
epochs = 6
gate.turn = 7
mstep.latents = "greedy"
[model]
rows = 2
columns = 2
codes = 3
channels = 2
[eval]
nll = false
every = 100
`} {
		t.Run(task, func(t *testing.T) { killSlow(t, task, config) })
	}
}

func killSlow(t *testing.T, task, config string) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	l := newLives(t, task, config)
	const kills = 3
	killed := 0
	for range kills {
		before, later := l.newest(), time.Duration(r.Int64N(int64(100*time.Millisecond)))
		kill := func() <-chan time.Time {
			now := make(chan time.Time)
			go func() {
				defer close(now)
				for begin := time.Now(); l.newest() <= before && time.Since(begin) < time.Minute; {
					time.Sleep(time.Millisecond)
				}
				time.Sleep(later)
			}()
			return now
		}
		if !l.live(kill) {
			killed++
		}
	}
	if killed < kills {
		t.Errorf("only %d of %d lives were killed before the end: the run is too short", killed, kills)
	}
	l.compare()
}
