package main

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestTrainingsAtOnce: those of one second do not get in each other's way.
func TestTrainingsAtOnce(t *testing.T) {
	t.Parallel()
	const several = 8
	dir := t.TempDir()
	var all [several]*exec.Cmd
	var out [several]bytes.Buffer
	for i := range all {
		all[i] = programNamed(t, "gfnem-fake", "train", "fake")
		all[i].Dir, all[i].Stdout, all[i].Stderr = dir, &out[i], &out[i]
		if err := all[i].Start(); err != nil {
			t.Fatal(err)
		}
	}
	for i, cmd := range all {
		if err := cmd.Wait(); err != nil {
			t.Errorf("training %d: %v, says %q", i, err, out[i].String())
		}
	}
	if found, _ := filepath.Glob(filepath.Join(dir, "runs", "fake-*", "report.html")); len(found) != several {
		t.Errorf("%d trainings made %q", several, found)
	}
}

// TestSignalAtOnce tells programs to end while they prepare a training, or are in a step, for a minute.
func TestSignalAtOnce(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "run")
	early := "gfnem: interrupted before anything was trained: give the same command again\n"
	long := "gfnem: interrupted in the middle of a step; the last checkpoint is step 4 of 10: continue with \"gfnem resume " + dir + "\"\n"
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"train", "fake", "--out", dir, "--set", "start=true"}, early},
		{[]string{"train", "fake", "--out", dir, "--set", "slow=5", "--save-every", "0s"}, long},
		{[]string{"resume", dir}, long},
		{[]string{"reproduce", "fake-table", "--out", dir}, "gfnem: interrupted: give the same command again to go on\n"},
	} {
		for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
			cmd := programNamed(t, "gfnem-fake", c.args...)
			var besides strings.Builder
			cmd.Stderr = &besides
			out, err := cmd.StdoutPipe()
			if err == nil {
				err = cmd.Start()
			}
			if err != nil {
				t.Fatal(err)
			}
			limit := time.AfterFunc(40*time.Second, func() { cmd.Process.Kill() })
			if line, err := bufio.NewReader(out).ReadString('\n'); line != "pause\n" {
				t.Errorf("%v: %q, %v", c.args, line, err)
			}
			begin := time.Now()
			if err := cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			cmd.Wait()
			limit.Stop()
			said := besides.String()
			if i := strings.Index(said, "gfnem: "); i > 0 {
				said = said[i:] // after the progress
			}
			if code := cmd.ProcessState.ExitCode(); code != exitInterrupted || said != c.want || time.Since(begin) > 20*time.Second {
				t.Errorf("%v, %v: exit code %d after %v, says %q", c.args, sig, code, time.Since(begin), besides.String())
			}
			if c.want == early {
				if _, err := os.Stat(dir); err == nil {
					t.Errorf("%v, %v: there is a folder", c.args, sig)
				}
			}
			if c.args[0] == "train" && sig == syscall.SIGTERM {
				os.RemoveAll(dir) // to be made again
			}
		}
	}
}
