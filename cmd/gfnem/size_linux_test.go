package main

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gfnem/gfnem/config"
)

var (
	sizes     = flag.Int("sizes", 8, "how many configurations TestSizes draws")
	sizesSeed = flag.Uint64("sizes.seed", 0, "seed of TestSizes; 0 means another one each time")
	sizesTime = flag.Duration("sizes.time", 2*time.Second, "after which TestSizes ends a training")
)

// brief are keys that say how long a training takes, not how large it is.
var brief = map[string][]string{
	"mixture": {"iterations=2", "gate.e_steps=2", "gate.first_e_steps=0", "gate.m_steps=1", "moves.count=1"},
	"grammar": {
		"data=synthetic", "updates=2", "horizon=0", "max_iterations=3", "prior.updates=2", "chain=5", "eval.every=1", "pool=1",
		"moves.count=1", "moves.e_count=1", "gate.threshold=1e9", "gate.threshold_end=1e9", "fixed=",
	},
	"vae": {
		"epochs=1", "optim.drop_on=0", "gate.turn=0", "moves.count=1", "eval.fit_updates=2", "eval.extra_e_updates=1",
		"eval.every=1", "eval.images=4",
	},
}

// drawSettings draws some keys of a task within their ranges, often at an end of them, and leaves the others as they are.
// Learning rates and other numbers that are no sizes stay.
func drawSettings(r *rand.Rand, task string, c any) (settings []string) {
	share := []float64{0.1, 0.3, 1}[r.IntN(3)]
	fields, _ := config.Fields(c)
	for _, f := range fields {
		if f.Name == "seed" || f.Name == "run" || strings.HasPrefix(f.Name, "optim.") || r.Float64() > share {
			continue
		}
		value := ""
		switch {
		case f.Choices != nil:
			value = f.Choices[r.IntN(len(f.Choices))]
		case f.Type == "a boolean":
			value = fmt.Sprint(r.IntN(2) == 0)
		case f.Range == nil:
			continue
		case strings.HasPrefix(f.Type, "an integer"):
			value = logUniform(r, f.Range.Low, f.Range.High)
		case f.Range.Low == 0 && f.Range.High == 1:
			value = fmt.Sprint(r.IntN(2)) // a probability
		default:
			continue
		}
		settings = append(settings, f.Name+"="+value)
	}
	return append(settings, brief[task]...)
}

// logUniform draws an integer of a range, often an end of it.
func logUniform(r *rand.Rand, low, high float64) string {
	x := math.Floor(math.Exp(r.Float64()*math.Log(high-low+2)) - 1 + low)
	switch r.IntN(5) {
	case 0:
		x = low
	case 1:
		x = high
	}
	return fmt.Sprintf("%.0f", min(x, high))
}

// drawCommand draws a training whose settings go with each other, or sometimes a workload.
func drawCommand(r *rand.Rand, images, out string) (args []string) {
	if r.IntN(10) == 0 {
		args = []string{"bench", []string{"inside", "inside-grad", "grammar"}[r.IntN(3)], "--for", "0s", "--preset", "quick"}
		for _, f := range []struct {
			flag string
			high float64
		}{{"--nt", 1 << 20}, {"--pt", 1 << 20}, {"--n", 1000}, {"--batch", 1 << 30}, {"--words", 1e7}} {
			if r.IntN(2) == 0 {
				args = append(args, f.flag, logUniform(r, 2, f.high))
			}
		}
		return args
	}
	for {
		k := gfnem.Tasks[r.IntN(len(gfnem.Tasks))]
		settings := drawSettings(r, k.Name(), k.Config(k.Presets()[0]))
		if k.Name() == "vae" {
			settings = append(settings, "data="+images)
		}
		if config.Resolve(k.Config(k.Presets()[0]), config.Set(settings)) != nil {
			continue
		}
		args = []string{"train", k.Name(), "--out", out, "--save-every", "1s"}
		for _, s := range settings {
			args = append(args, "--set", s)
		}
		return args
	}
}

var progressLine = regexp.MustCompile(`^(mixture|grammar|vae|warning:|likelihood|fit)\b`)

// outcome runs a command within 2 GiB for some time and says how that ended, in words; or what must not be.
func outcome(t *testing.T, args []string) (good string, bad string) {
	cmd := exec.Command("sh", append([]string{"-c", `ulimit -d 2097152; exec "$@"`, "sh", program(t).Path}, args...)...)
	var errOut bytes.Buffer
	cmd.Stderr = &errOut
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(*sizesTime, func() { cmd.Process.Signal(syscall.SIGTERM) })
	later := time.AfterFunc(*sizesTime+3*time.Second, func() { cmd.Process.Kill() })
	err := cmd.Wait()
	ended := late.Stop()
	later.Stop()
	progress, lines := false, []string{}
	for line := range strings.SplitSeq(strings.TrimSpace(errOut.String()), "\n") {
		if progressLine.MatchString(line) {
			progress = true
		} else if line != "" {
			lines = append(lines, line)
		}
	}
	code := cmd.ProcessState.ExitCode()
	if testing.Verbose() && code == exitBadInput && len(lines) > 0 {
		t.Logf("%.300s", lines[len(lines)-1])
	}
	one := len(lines) == 1 && strings.HasPrefix(lines[0], "gfnem: ")
	signal := cmd.ProcessState.Sys().(syscall.WaitStatus).Signal()
	killed := (signal == syscall.SIGKILL || signal == syscall.SIGTERM) && len(lines) == 0
	stopped := !ended && (code == exitInterrupted && one || killed)
	switch {
	case err == nil:
		return "trained", ""
	case code == exitBadInput && one && strings.Contains(lines[0], " of memory, and ulimit -d leaves 1.84 GiB: lower "):
		return "refused for memory", ""
	case code == exitBadInput && one && !strings.Contains(lines[0], " of memory"):
		return "refused for another reason", ""
	case stopped && progress:
		return "trains, for longer than the test", ""
	case stopped:
		return "begins, for longer than the test", ""
	}
	return "", fmt.Sprintf("%v, after progress: %t\n%.3000s", err, progress, strings.Join(lines, "\n"))
}

// TestSizes trains with sizes from the smallest to the largest in 2 GiB of memory: each training begins, or is refused
// with one line. Hundreds of them take an hour:
//
//	go test ./cmd/gfnem -run TestSizes -sizes 300 -sizes.time 20s -timeout 3h
func TestSizes(t *testing.T) {
	t.Parallel()
	seed := *sizesSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d, %d configurations", seed, *sizes)
	counts := map[string]int{}
	images, dir := imagesOf(t, 64, 2000), t.TempDir()
	for i := range *sizes {
		out := filepath.Join(dir, fmt.Sprint(i))
		args := drawCommand(rand.New(rand.NewPCG(seed, uint64(i))), images, out)
		good, bad := outcome(t, args)
		if bad != "" {
			t.Errorf("configuration %d: gfnem %s: %s", i, strings.Join(args, " "), bad)
			continue
		}
		counts[good]++
		if testing.Verbose() {
			t.Logf("%d %s: %s", i, strings.Join(args[:2], " "), good)
		}
		if err := os.RemoveAll(out); err != nil {
			t.Error(err)
		}
	}
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		t.Logf("%3d %s", counts[what], what)
	}
}
