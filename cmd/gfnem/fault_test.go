package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/gfnem/gfnem/internal/faults"
)

var faultsFlag = flag.String("faults", "56", "how many faults TestFaults makes: a number, or all (which takes hours)")

// scenario is a command that is to be disturbed, in a folder of its own.
type scenario struct {
	name  string
	setup func(t *testing.T, dir string) // makes what is there before; may be nil
	args  []string
	holds string // folder of what it makes or reads
	reads string // path of a folder elsewhere that it reads; may be empty
	// again is the command that a user gives after a fault; nil means the same one.
	again func(dir string) []string
}

// faultKinds are made at each call, the last one at those that need space.
var faultKinds = []faults.Kind{
	{Errno: syscall.EIO}, {Errno: syscall.ENOSPC}, {Errno: syscall.EACCES}, {},
	{Errno: syscall.EIO, Extent: faults.SamePath}, {Errno: syscall.EACCES, Extent: faults.SamePath},
	{Errno: syscall.ENOSPC, Extent: faults.Full},
}

// TestFaults lets calls on files fail, one in each life of a command, or kills it there. Afterwards every file is the
// old or the new one, the program has said what happened, and the next command ends as if nothing had.
//
//	go test ./cmd/gfnem -run TestFaults -faults all -timeout 5h
//	go test ./cmd/gfnem -run TestFaults/resume/EIO_at_call_57$ -faults all
func TestFaults(t *testing.T) {
	t.Parallel()
	seed, err := strconv.ParseUint(os.Getenv("GFNEM_SEED"), 10, 64)
	if err != nil {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d (GFNEM_SEED), faults %s (-faults)", seed, *faultsFlag)
	scenarios := faultScenarios(t)
	var total atomic.Int64
	t.Cleanup(func() { t.Logf("%d faults", total.Load()) })
	for i, s := range scenarios {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			w := undisturbed(t, s)
			var all []faults.Fault
			for n, call := range w.calls {
				for _, kind := range faultKinds {
					if kind.Extent != faults.Full || call.Grows() {
						all = append(all, faults.Fault{At: n + 1, Kind: kind})
					}
				}
			}
			if *faultsFlag != "all" {
				n, err := strconv.Atoi(*faultsFlag)
				if err != nil {
					t.Fatalf("-faults %s: want a number, or all", *faultsFlag)
				}
				r := rand.New(rand.NewPCG(seed, uint64(i)))
				r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
				all = all[:min(len(all), (n+i)/len(scenarios))]
			}
			var mu sync.Mutex
			made := map[string]int{}
			t.Cleanup(func() { t.Logf("%s: %d calls, faults %v", s.name, len(w.calls), made) })
			for _, f := range all {
				t.Run(f.String(), func(t *testing.T) {
					t.Parallel()
					name := f.Kind.String()
					if w.disturb(t, f) {
						total.Add(1)
					} else {
						name += " not reached"
					}
					mu.Lock()
					defer mu.Unlock()
					made[name]++
				})
			}
		})
	}
}

// whole is what a command does when nothing fails.
type whole struct {
	scenario
	prepared      string // folder of what is there before
	before, after tree
	seen          map[string]map[string]bool // contents that a path has had when something was published
	calls         []faults.Call
	out, errOut   string
}

// undisturbed prepares a scenario and runs its command.
func undisturbed(t *testing.T, s scenario) *whole {
	t.Helper()
	w := &whole{scenario: s, prepared: realDir(t), seen: map[string]map[string]bool{}}
	if s.setup != nil {
		s.setup(t, w.prepared)
	}
	w.before = readTree(t, w.prepared)
	dir := realDir(t)
	copyTree(t, w.prepared, dir)
	note := func() {
		for path, content := range readTree(t, dir) {
			if w.seen[path] == nil {
				w.seen[path] = map[string]bool{}
			}
			w.seen[path][content] = true
		}
	}
	end := w.life(t, dir, s.args, faults.Fault{}, func(c faults.Call) {
		if strings.HasPrefix(c.Name, "rename") || strings.HasPrefix(c.Name, "unlink") {
			note()
		}
	})
	if end.Exit != exitOK {
		t.Fatalf("undisturbed, gfnem %v exits with %d: %s", s.args, end.Exit, end.stderr)
	}
	note()
	w.calls, w.out, w.errOut, w.after = end.Calls, end.stdout, end.stderr, readTree(t, dir)
	if leftovers := w.after.temporary(); len(leftovers) > 0 {
		t.Errorf("undisturbed, gfnem %v leaves %q", s.args, leftovers)
	}
	return w
}

// ended is how a life of the program ended.
type ended struct {
	faults.Result
	stdout, stderr string
}

// life runs the program in a folder.
func (w *whole) life(t *testing.T, dir string, args []string, f faults.Fault, before func(faults.Call)) ended {
	t.Helper()
	cmd := faultProgram(t, dir, args)
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	below := []string{dir}
	if w.reads != "" {
		below = append(below, w.reads)
	}
	res := followed(t, cmd, faults.Options{Below: below, Fault: f, Before: before})
	return ended{res, stdout.String(), stderr.String()}
}

// disturb makes a fault in a life of its own, looks at what is left, and ends it as a user would. It reports whether
// the fault was reached.
func (w *whole) disturb(t *testing.T, f faults.Fault) bool {
	dir := realDir(t)
	copyTree(t, w.prepared, dir)
	end := w.life(t, dir, w.args, f, nil)
	if end.Failed == 0 {
		t.Logf("made %d calls only", len(end.Calls))
		return false
	}
	call := end.Calls[f.At-1]
	problems := w.misbehaved(dir, f, call, end)
	left := readTree(t, dir)
	problems = append(problems, w.torn(left)...)
	if end.Exit == exitOK {
		for _, p := range differences(left.lasting(), w.after) {
			problems = append(problems, "exit code 0, but "+p)
		}
	}
	if w.begun(left) {
		problems = append(problems, w.verified(dir, `"verdict":"intact"`)...)
	}
	problems = append(problems, w.goOn(t, dir)...)
	if len(problems) > 0 {
		what := strings.NewReplacer(dir+"/", "", dir, "the folder").Replace(fmt.Sprintf("%v, %v", f, call))
		t.Errorf("%s:\n\t%s\nstderr: %s", what, strings.Join(problems, "\n\t"), end.stderr)
	}
	return true
}

// beginsAnew is what a command says that continues a run without checkpoints.
var beginsAnew = regexp.MustCompile(`warning: \S+ has no checkpoint: the training begins anew, [^\n]*\n`)

// goOn gives the command that a user gives next, which must end as if nothing had failed.
func (w *whole) goOn(t *testing.T, dir string) (problems []string) {
	args := w.args
	if w.again != nil {
		args = w.again(dir)
	}
	add := func(format string, more ...any) {
		problems = append(problems, fmt.Sprintf("then gfnem "+args[0]+" "+format, more...))
	}
	saved, _ := filepath.Glob(filepath.Join(dir, w.holds, "state", "*[0-9]", "manifest.json"))
	cmd := faultProgram(t, dir, args)
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	watchdog := time.AfterFunc(time.Minute, func() { cmd.Process.Kill() })
	defer watchdog.Stop()
	if err := cmd.Wait(); err != nil {
		add("ends with %v: %s", err, stderr.String())
		return problems
	}
	if stdout.String() != w.out {
		add("prints %q, not %q", stdout.String(), w.out)
	}
	message := stderr.String()
	if saved == nil {
		message = beginsAnew.ReplaceAllString(message, "") // as it must
	}
	if said := w.alarms(message); len(said) > 0 {
		add("says %q: %s", said, stderr.String())
	}
	for _, p := range differences(readTree(t, dir), w.after) {
		add("is done, but %s", p)
	}
	for _, p := range w.verified(dir, `"notes":0,"damaged":0,"unread":0}`) {
		add("is done, but %s", p)
	}
	return problems
}
