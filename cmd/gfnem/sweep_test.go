package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gfnem/gfnem/backend"
	"github.com/gfnem/gfnem/run"
	"github.com/gfnem/gfnem/sweep"
)

var sweepFull = flag.Bool("sweep.full", false, "sweeps of 200 cells under 60 kills of workers and 10 of the server, and their overhead")

// sweepSizes are what a test of sweeps makes: of two tasks, this many cells and kills each.
type sweepSizes struct{ seeds, workers, kills, serverKills int }

func sweepSize() sweepSizes {
	if *sweepFull {
		return sweepSizes{seeds: 50, workers: 4, kills: 30, serverKills: 5}
	}
	return sweepSizes{seeds: 3, workers: 2, kills: 3, serverKills: 1}
}

// sweepFiles are two sweeps of two rows, by task.
func sweepFiles(seeds int, long bool) map[string]string {
	mixture, grammar := 20, 20
	if long {
		mixture, grammar = 25, 40
	}
	return map[string]string{
		"mixture": fmt.Sprintf(`task = "mixture"
seeds = %d
[set]
points = 200
batch = 50
iterations = %d
gate.e_steps = 20
[axes]
policy.hidden = [8, 16]
`, seeds, mixture),
		"grammar": fmt.Sprintf(`task = "grammar"
seeds = %d
[set]
data = "small"
model.nonterminals = 3
model.preterminals = 4
model.width = 8
batch = 4
updates = %d
max_length = 6
bucket = 6
eval.every = 10
[axes]
method = ["marginal", "exact"]
`, seeds, grammar),
	}
}

// sweeping is a sweep under test.
type sweeping struct {
	*testing.T
	dir, file string
	address   string
	errOut    strings.Builder
	mu        sync.Mutex
}

func newSweeping(t *testing.T, text string) *sweeping {
	t.Helper()
	s := &sweeping{T: t, dir: t.TempDir()}
	s.file = filepath.Join(s.dir, "sweep.toml")
	if err := os.WriteFile(s.file, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	s.address = steadyAddress(t)
	return s
}

// steadyAddress is one at which a server can be started again and again: its port is none that systems give to those
// who ask for any.
func steadyAddress(t *testing.T) string {
	t.Helper()
	for range 100 {
		address := fmt.Sprintf("127.0.0.1:%d", 10_000+rand.IntN(20_000))
		if l, err := net.Listen("tcp", address); err == nil {
			l.Close()
			return address
		}
	}
	t.Fatal("no port is free")
	return ""
}

// Write keeps what processes say, for when the test fails.
func (s *sweeping) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.errOut.Write(p)
}

func (s *sweeping) said() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.errOut.String()
}

// process starts the program, which is killed when the test ends. Its trainings stop at gates.
func (s *sweeping) process(args ...string) *exec.Cmd {
	s.Helper()
	cmd := programNamed(s.T, "gfnem-gated", args...)
	cmd.Stderr = s
	if err := cmd.Start(); err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	return cmd
}

func (s *sweeping) out(name string) string { return filepath.Join(s.dir, name) }

func (s *sweeping) server(name string, more ...string) *exec.Cmd {
	return s.process(append([]string{"sweep", s.file, "--out", s.out(name), "--workers", "0", "--listen", s.address,
		"--lease", "2s", "--save-every", "200ms"}, more...)...)
}

func (s *sweeping) worker(more ...string) *exec.Cmd {
	return s.process(append([]string{"worker", "nats://" + s.address, "--work", s.out("work")}, more...)...)
}

// alone makes the sweep by one worker in one process.
func (s *sweeping) alone() {
	s.Helper()
	if out, err := program(s.T, "sweep", s.file, "--out", s.out("one"), "--workers", "1").CombinedOutput(); err != nil {
		s.Fatalf("%v\n%s", err, out)
	}
}

// same compares tables, metrics and results with those of one worker, and verifies all files.
func (s *sweeping) same(name string) {
	s.Helper()
	compared := 0
	err := filepath.WalkDir(s.out("one"), func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.Name() != "table.json" && e.Name() != "metrics.jsonl" && e.Name() != "result.json" {
			return err
		}
		below, err := filepath.Rel(s.out("one"), path)
		if err != nil {
			return err
		}
		want, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		got, err := os.ReadFile(filepath.Join(s.out(name), below))
		if err != nil {
			return err
		}
		if compared++; !bytes.Equal(got, want) {
			s.Errorf("%s is not as one worker makes it", below)
		}
		return nil
	})
	if err != nil || compared < 5 {
		s.Errorf("%d files compared: %v", compared, err)
	}
	out, err := program(s.T, "verify", s.out(name)).Output()
	if err != nil || !bytes.Contains(out, []byte(" 0 notes, 0 damaged, 0 unread\n")) {
		s.Errorf("verify: %v\n%s", err, out)
	}
	if _, err := os.Lstat(filepath.Join(s.out(name), ".sweep")); err == nil {
		s.Error("the sweep has left its server's files")
	}
	s.Logf("%d files are the same", compared)
}

// TestSweepKilled kills workers and servers of sweeps with SIGKILL at random instants: no cell is lost and none is made
// twice, and table, metrics and results are those of one worker, to the bit.
func TestSweepKilled(t *testing.T) {
	if testing.Short() && !*sweepFull {
		t.Skip("takes processes and seconds")
	}
	size := sweepSize()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d, %+v", seed, size)
	r := rand.New(rand.NewPCG(seed, 0))
	for task, text := range sweepFiles(size.seeds, *sweepFull) {
		t.Run(task, func(t *testing.T) {
			s := newSweeping(t, text)
			begin := time.Now()
			s.alone()
			alone := time.Since(begin)
			t.Logf("one worker: %s", alone)
			s.kill("killed", r, size, alone)
			s.same("killed")
			if t.Failed() {
				t.Log(s.said())
			}
		})
	}
}

// kill makes the sweep with several workers and kills them, and its server, again and again. Trainings with the last
// seed wait for the last kill.
func (s *sweeping) kill(name string, r *rand.Rand, size sweepSizes, alone time.Duration) {
	gate := closedGate(s.T, s.dir, fmt.Sprint(size.seeds-1))
	limit, cancel := context.WithTimeout(s.Context(), max(5*time.Minute, 20*alone))
	defer cancel()
	server := s.server(name)
	ended := waitOf(server)
	workers := make([]*exec.Cmd, size.workers)
	for i := range workers {
		workers[i] = s.worker()
	}
	mean := alone / time.Duration(3*(size.kills+size.serverKills)) // so that most kills meet trainings that do not wait
	s.wait(name, "nobody works", func(now snapshot) bool { return now.Cells.Running > 0 })
	kills, serverKills := 0, 0
	for begin := time.Now(); ; {
		var next <-chan time.Time
		if kills < size.kills || serverKills < size.serverKills {
			next = time.After(time.Duration(r.Int64N(int64(2*mean)) + 1))
		} else {
			gate.open(s.T)
		}
		select {
		case err := <-ended:
			if err != nil {
				s.Fatalf("the sweep: %v\n%s", err, s.said())
			}
			s.Logf("%d kills of workers, %d of the server, %s", kills, serverKills, time.Since(begin))
			if kills < size.kills || serverKills < size.serverKills {
				s.Error("the sweep is over before the last kill")
			}
			return
		case <-limit.Done():
			s.Fatalf("the sweep does not end\n%s", s.said())
		case <-next:
		}
		if left := size.kills - kills; r.IntN(left+size.serverKills-serverKills) < left {
			i := r.IntN(len(workers))
			workers[i].Process.Kill()
			workers[i].Wait()
			workers[i] = s.worker()
			kills++
		} else {
			server.Process.Kill()
			<-ended
			server = s.server(name)
			ended = waitOf(server)
			serverKills++
		}
		if kills+serverKills == size.kills+size.serverKills {
			s.Logf("at the last kill: %+v", s.status(name).Cells)
		}
	}
}

func waitOf(cmd *exec.Cmd) <-chan error {
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	return ended
}

// plainSweep makes the cells of a sweep's file in a plain loop, without workers: what a sweep is compared with.
func plainSweep(file, dir string) error {
	plan, err := sweep.Load(file, gfnem.Tasks)
	if err != nil {
		return err
	}
	b, err := backend.Open("simd")
	if err != nil {
		return err
	}
	g := run.Grid{Dir: dir, Task: plan.Task, Backend: b, Name: backend.Describe(b), Workers: 1, Every: 30 * time.Second}
	_, err = plan.Run(context.Background(), g)
	return err
}

// TestSweepOverhead compares what a sweep with one worker costs with a plain loop over the same 200 trainings: 100 of
// mixtures, of a third of a second each, and 100 of tiny grammars, of a second each. Loop and sweep are processes of
// their own, which take turns, and the least processor time of each counts. It is no test but of the figure that the
// documentation gives, for a machine that does nothing else.
func TestSweepOverhead(t *testing.T) {
	if !*sweepFull {
		t.Skip("measures for minutes: give -sweep.full")
	}
	const seeds, times = 100, 3
	grammars := strings.Replace(sweepFiles(seeds/2, true)["grammar"], "updates = 40", "updates = 4000", 1)
	for task, text := range map[string]string{
		"mixture": fmt.Sprintf("task = \"mixture\"\npreset = \"quick\"\nseeds = %d\n", seeds),
		"grammar": grammars,
	} {
		t.Run(task, func(t *testing.T) {
			s := newSweeping(t, text)
			var least, cpu [2]time.Duration // of the loop and of the sweep
			for k := range times {
				for kind, cmd := range []*exec.Cmd{
					programNamed(t, "gfnem-plain", s.file, s.out("plain")),
					program(t, "sweep", s.file, "--out", s.out("sweep"), "--workers", "1"),
				} {
					begin := time.Now()
					if out, err := cmd.CombinedOutput(); err != nil {
						t.Fatalf("%v\n%s", err, out)
					}
					took, used := time.Since(begin), cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime()
					t.Logf("turn %d, %s: %.2f s, of which the processor %.2f s", k, []string{"loop", "sweep"}[kind], took.Seconds(),
						used.Seconds())
					if least[kind] == 0 || took < least[kind] {
						least[kind] = took
					}
					if cpu[kind] == 0 || used < cpu[kind] {
						cpu[kind] = used
					}
				}
				if err := errors.Join(os.RemoveAll(s.out("plain")), os.RemoveAll(s.out("sweep"))); err != nil {
					t.Fatal(err)
				}
			}
			more := func(d [2]time.Duration) float64 { return 100 * (float64(d[1])/float64(d[0]) - 1) }
			t.Logf("a sweep takes %+.1f %% of time, and %+.1f %% of the processor's, %+.1f ms for each training", more(least),
				more(cpu), (cpu[1]-cpu[0]).Seconds()*1000/seeds)
			if more(cpu) > 3 {
				t.Errorf("a sweep costs %.1f %% more than a plain loop", more(cpu))
			}
		})
	}
}

// TestSweepDocs reads the files that docs/sweep.md shows.
func TestSweepDocs(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "sweep.md"))
	if err != nil {
		t.Fatal(err)
	}
	var cells []int
	for i, block := range strings.Split(string(text), "```toml\n")[1:] {
		file, _, _ := strings.Cut(block, "```")
		path := filepath.Join(t.TempDir(), fmt.Sprintf("%d.toml", i))
		if err := os.WriteFile(path, []byte(file), 0o666); err != nil {
			t.Fatal(err)
		}
		plan, err := sweep.Load(path, gfnem.Tasks)
		if err != nil {
			t.Fatal(err)
		}
		cells = append(cells, len(plan.Cells()))
	}
	if want := []int{30, 27}; !slices.Equal(cells, want) {
		t.Errorf("%d cells, want %d", cells, want)
	}
}
