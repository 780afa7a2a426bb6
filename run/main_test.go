package run

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/goleak"

	"github.com/gfnem/gfnem/internal/disk/disktest"
	"github.com/gfnem/gfnem/internal/self"
)

// helperVar names what the test binary does, instead of testing, when a test starts it as another process.
const helperVar = "RUN_TEST_HELPER"

func TestMain(m *testing.M) {
	self.SetName("gfnem")
	switch os.Getenv(helperVar) {
	case "hold":
		os.Exit(helperHold(os.Args[1]))
	case "long":
		os.Exit(helperLong(os.Args[1]))
	case "signals":
		os.Exit(helperSignals())
	}
	goleak.VerifyTestMain(m)
}

// helperHold opens a run and holds it until its input ends.
func helperHold(dir string) int {
	if _, err := Open(dir); err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("ready")
	io.Copy(io.Discard, os.Stdin)
	return 0
}

// helperSignals says how its context ended, then waits for the second signal.
func helperSignals() int {
	ctx, stop := WithSignals(context.Background())
	defer stop()
	fmt.Println("ready")
	<-ctx.Done()
	fmt.Println(context.Cause(ctx))
	io.Copy(io.Discard, os.Stdin)
	return 0
}

// startHelper starts the test binary as a helper and returns it with its input and output.
func startHelper(t *testing.T, mode string, args ...string) (*exec.Cmd, io.WriteCloser, io.Reader) {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), helperVar+"="+mode)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	deadline := time.AfterFunc(40*time.Second, func() { cmd.Process.Kill() })
	t.Cleanup(func() {
		deadline.Stop()
		cmd.Process.Kill()
		cmd.Wait()
	})
	return cmd, in, out
}

func expectLine(t *testing.T, r io.Reader, want string) {
	t.Helper()
	buf := make([]byte, len(want)+1)
	if _, err := io.ReadFull(r, buf); err != nil || string(buf) != want+"\n" {
		t.Fatalf("helper said %q (%v), want %q", buf, err, want)
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func writeString(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

func listDir(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// diff compares up to nil and empty.
func diff(want, got any) string {
	return cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.EquateNaNs())
}

func testOptions() Options {
	return Options{
		Task:    "mixture",
		Config:  "seed = 7\n",
		Command: []string{"gfnem", "train", "mixture"},
		Seed:    7,
		Backend: "simd",
		Data:    map[string]string{"digits": "abc"},
	}
}

// newRun creates a run that is closed when the test ends.
func newRun(t *testing.T) *Run {
	t.Helper()
	r, err := Create(filepath.Join(disktest.MemoryDir(t), "runs", "a"), testOptions())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}
