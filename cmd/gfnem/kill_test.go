package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// program runs the test binary as gfnem, see TestMain.
func program(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	return programNamed(t, "gfnem", args...)
}

func programNamed(t *testing.T, name string, args ...string) *exec.Cmd {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatal(err)
	}
	return exec.Command(path, args...)
}

// lives is a run that was trained without interruption, and the same one again, killed and resumed.
type lives struct {
	*testing.T
	task, dir string
	settings  []string // of both
	want      string   // the state in which the whole run ended
}

// newLives trains the whole run. Its configuration is that of testdata/tiny, with other settings.
func newLives(t *testing.T, task string, settings ...string) *lives {
	t.Helper()
	l := &lives{T: t, task: task, dir: t.TempDir()}
	l.settings = []string{"--config", filepath.Join("testdata", "tiny", task+".toml")}
	for _, one := range settings {
		l.settings = append(l.settings, "--set", one)
	}
	l.want = l.end(l.train("whole")...)
	return l
}

// train is the command that begins a run.
func (l *lives) train(name string) []string {
	return append([]string{"train", l.task, "--out", filepath.Join(l.dir, name)}, l.settings...)
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

// saved says when the run that is killed has saved a new checkpoint, and has gone on for a time.
func (l *lives) saved(later time.Duration) <-chan time.Time {
	before, now := l.newest(), make(chan time.Time)
	go func() {
		defer close(now)
		for begin := time.Now(); l.newest() <= before && time.Since(begin) < time.Minute; {
			time.Sleep(time.Millisecond)
		}
		time.Sleep(later)
	}()
	return now
}

// live begins or resumes the run that is killed, kills it when a channel says so, and returns whether it reached its
// end before.
func (l *lives) live(kill <-chan time.Time) (ended bool) {
	l.Helper()
	args := []string{"resume", l.killed()}
	if _, err := os.Stat(filepath.Join(l.killed(), "run.json")); err != nil {
		args = l.train("killed")
	}
	cmd := program(l.T, append(args, "--save-every", "1ms", "--json")...)
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
	case <-kill:
		cmd.Process.Kill()
		err = <-done
	}
	if err != nil && cmd.ProcessState.ExitCode() != -1 {
		l.Fatalf("a run that was killed before does not resume: %v\n%s", err, errOut.Bytes())
	}
	return err == nil
}

// compare resumes the run to its end, which must be that of the one that was never killed, with the same state and
// metrics, to the bit.
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
	if out, err := program(l.T, "verify", l.killed()).Output(); err != nil || !bytes.Contains(out, []byte(" 0 notes, 0 damaged, 0 unread\n")) {
		l.Errorf("the folder after kills: %v\n%s", err, out)
	}
}

// TestKilled kills a run with SIGKILL at random instants, many of them during saves, which follow each other closely, and
// resumes it each time.
func TestKilled(t *testing.T) {
	t.Parallel()
	kills := 100
	if testing.Short() {
		kills = 10
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d, %d kills", seed, kills)
	r := rand.New(rand.NewPCG(seed, 0))
	l := newLives(t, "mixture", "seed=3", "iterations=50", "gate.e_steps=200")
	begin := time.Now()
	l.live(l.saved(0))
	start := time.Since(begin)
	done, advanced, newest := 0, 0, l.newest()
	for life := range kills {
		// Half of the lives are killed at any instant of their beginning, the others soon after their first save.
		var kill <-chan time.Time
		if life%2 == 0 {
			kill = time.After(time.Duration(r.Int64N(int64(2 * start))))
		} else {
			kill = l.saved(time.Duration(r.Int64N(int64(20 * time.Millisecond))))
		}
		if l.live(kill) {
			done++ // resuming a finished run must change nothing either
		}
		if saved := l.newest(); saved > newest {
			newest = saved
			advanced++
		}
	}
	t.Logf("%d of %d lives saved a checkpoint, %d reached the end", advanced, kills, done)
	if advanced < kills/10 {
		t.Errorf("only %d lives saved anything: the test shows too little", advanced)
	}
	begin = time.Now()
	l.compare()
	// Of the finished run as well, while it is measured and reported on.
	took := time.Since(begin)
	for range kills / 10 {
		l.live(time.After(time.Duration(r.Int64N(int64(took)))))
	}
	l.compare()
}

// TestKilledSlow does the same with GFlowNet-EM for grammars, with chains that persist and trees that are replayed, and for
// images, which takes longer to begin: every life is killed soon after its first save.
func TestKilledSlow(t *testing.T) {
	t.Parallel()
	t.Run("grammar", func(t *testing.T) {
		l := killSlow(t, "grammar", "data="+fewTrees(t), "method=gfn", "prior.on=true", "max_length=4", "bucket=4",
			"moves.count=2", "moves.persist=true", "wake.replay=1", "updates=150", "eval.every=50")
		l.logged(`"moves/resumed":1`, `"wake/replayed":1`)
	})
	t.Run("vae", func(t *testing.T) {
		killSlow(t, "vae", "data="+images(t), "method=gfn-gd-prior", "gate.turn=7", "epochs=120",
			"eval.nll=false", "eval.extra_e_updates=0", "eval.every=100")
	})
}

// fewTrees writes trees of so few sentences that each comes many times in a short training.
func fewTrees(t *testing.T) string {
	t.Helper()
	var text strings.Builder
	for i := range 60 {
		verb := fmt.Sprintf("(VB %s)", []string{"saw", "bit", "fed"}[i%3])
		for _, noun := range []string{"cat", "dog"}[:1+i/3%2] {
			verb = fmt.Sprintf("(VP %s (NN %s))", verb, noun)
		}
		fmt.Fprintf(&text, "(S (NN %s) %s)\n", []string{"cat", "dog"}[i/6%2], verb)
	}
	path := filepath.Join(t.TempDir(), "few.trees")
	if err := os.WriteFile(path, []byte(text.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// images writes a data set of small random images.
func images(t *testing.T) string { return imagesOf(t, 8, 40) }

// imagesOf writes a data set of some random images to train with, of some height and width.
func imagesOf(t *testing.T, size byte, count uint16) string {
	t.Helper()
	dir, r := t.TempDir(), rand.New(rand.NewPCG(0, 0))
	for name, n := range map[string]uint16{"train-images-idx3-ubyte": count, "t10k-images-idx3-ubyte": 12} {
		file := []byte{0, 0, 8, 3, 0, 0, byte(n >> 8), byte(n), 0, 0, 0, size, 0, 0, 0, size}
		for range int(n) * int(size) * int(size) {
			file = append(file, byte(255*r.IntN(2)))
		}
		if err := os.WriteFile(filepath.Join(dir, name), file, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func killSlow(t *testing.T, task string, settings ...string) *lives {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	l := newLives(t, task, settings...)
	const kills = 3
	killed := 0
	for range kills {
		if !l.live(l.saved(time.Duration(r.Int64N(int64(100 * time.Millisecond))))) {
			killed++
		}
	}
	if killed < kills {
		t.Errorf("only %d of %d lives were killed before the end: the run is too short", killed, kills)
	}
	l.compare()
	return l
}

// logged fails unless the metrics of the run have all of some texts.
func (l *lives) logged(texts ...string) {
	l.Helper()
	data, err := os.ReadFile(filepath.Join(l.killed(), "metrics.jsonl"))
	if err != nil {
		l.Fatal(err)
	}
	for _, text := range texts {
		if !bytes.Contains(data, []byte(text)) {
			l.Errorf("the metrics have no %s", text)
		}
	}
}
