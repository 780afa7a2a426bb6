package main

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
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
	sizes     = flag.Int("sizes", 6, "how many configurations TestSizes draws")
	sizesSeed = flag.Uint64("sizes.seed", 0, "seed of TestSizes; 0 means another one each time")
	sizesTime = flag.Duration("sizes.time", 4*time.Second, "after which TestSizes ends a training")
)

// brief are keys that say how long a training takes, not how large it is.
var brief = map[string][]string{
	"mixture": {"iterations=2", "gate.e_steps=2", "gate.first_e_steps=0", "gate.m_steps=1", "moves.count=1"},
	"grammar": {
		"data=synthetic", "updates=2", "horizon=0", "max_iterations=3", "prior.updates=2", "chain=5", "eval.every=1", "pool=1", "moves.count=1",
		"moves.e_count=1", "gate.threshold=1e9", "gate.threshold_end=1e9", "fixed=",
	},
	"vae": {
		"epochs=1", "optim.drop_on=0", "gate.turn=0", "moves.count=1", "eval.fit_updates=2", "eval.extra_e_updates=1", "eval.every=1", "eval.images=4",
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
			low, high := f.Range.Low, f.Range.High
			switch r.IntN(5) {
			case 0:
				value = fmt.Sprintf("%.0f", low)
			case 1:
				value = fmt.Sprintf("%.0f", high)
			default:
				value = fmt.Sprintf("%.0f", math.Floor(math.Exp(r.Float64()*math.Log(high-low+2))-1+low))
			}
		case f.Range.Low == 0 && f.Range.High == 1:
			value = fmt.Sprint(r.IntN(2)) // a probability
		default:
			continue
		}
		settings = append(settings, f.Name+"="+value)
	}
	return append(settings, brief[task]...)
}

// valid draws settings that go with each other.
func valid(t *testing.T, r *rand.Rand) (task string, settings []string) {
	for {
		k := tasks[r.IntN(len(tasks))]
		settings = drawSettings(r, k.Name(), k.Config(k.Presets()[0]))
		if config.Resolve(k.Config(k.Presets()[0]), config.Set(settings)) == nil {
			return k.Name(), settings
		}
	}
}

var progressLine = regexp.MustCompile(`^(mixture|grammar|vae|warning:|likelihood|fit)\b`)

// outcome trains within 2 GiB for some time and says how that ended, in words; or what must not be.
func outcome(t *testing.T, task string, settings []string, dir string) (good string, bad string) {
	args := []string{"-c", `ulimit -d 2097152; exec "$@"`, "sh", program(t).Path, "train", task, "--out", dir, "--save-every", "1s"}
	for _, s := range settings {
		args = append(args, "--set", s)
	}
	cmd := exec.Command("sh", args...)
	var errOut bytes.Buffer
	cmd.Stderr = &errOut
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(*sizesTime, func() { cmd.Process.Signal(syscall.SIGTERM) })
	later := time.AfterFunc(*sizesTime+5*time.Second, func() { cmd.Process.Kill() })
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
	one := len(lines) == 1 && strings.HasPrefix(lines[0], "gfnem: ")
	signal := cmd.ProcessState.Sys().(syscall.WaitStatus).Signal()
	stopped := !ended && (code == exitInterrupted && one || (signal == syscall.SIGKILL || signal == syscall.SIGTERM) && len(lines) == 0)
	switch {
	case err == nil:
		return "trained", ""
	case code == exitBadInput && one && strings.Contains(lines[0], " of memory, and ulimit -d has 2.0 GiB: lower "):
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
	seed := *sizesSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d, %d configurations", seed, *sizes)
	counts := map[string]int{}
	images := imagesOf(t, 64)
	for i := range *sizes {
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		task, settings := valid(t, r)
		if task == "vae" {
			settings = append(settings, "data="+images)
		}
		good, bad := outcome(t, task, settings, filepath.Join(t.TempDir(), "run"))
		if bad != "" {
			t.Errorf("configuration %d: gfnem train %s --set %s: %s", i, task, strings.Join(settings, " --set "), bad)
			continue
		}
		counts[good]++
		if testing.Verbose() {
			t.Logf("%d %s: %s", i, task, good)
		}
	}
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		t.Logf("%3d %s", counts[what], what)
	}
}
