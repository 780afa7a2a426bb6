package main

import (
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"github.com/gomlx/compute"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/gfnem/gfnem/cli"
	"github.com/gfnem/gfnem/internal/crash"
	"github.com/gfnem/gfnem/mixture"
	"github.com/gfnem/gfnem/run"
)

// Exit codes.
const (
	exitOK          = cli.ExitOK
	exitFailed      = cli.ExitFailed
	exitBadInput    = cli.ExitBadInput
	exitInterrupted = cli.ExitInterrupted
)

// execute runs the program and returns its exit code.
func execute(args []string, out, errOut io.Writer) int { return gfnem.Execute(args, out, errOut) }

// TestMain lets the test binary stand in for the program: scripts call it as gfnem, or as gfnem-set FILE where a
// command has no --config, or as gfnem-fake, which also knows the fake task and has little patience.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"gfnem": main, "gfnem-set": func() {
		args, err := withKeys(os.Args[1], os.Args[2:])
		if err != nil {
			panic(err)
		}
		os.Exit(execute(args, os.Stdout, os.Stderr))
	}, "gfnem-small": mainSmall, "gfnem-gated": mainGated, "gfnem-fake": func() {
		gfnem.Tasks, run.Grace = append(gfnem.Tasks, fakeTask{}), 200*time.Millisecond
		main()
	}, "gfnem-plain": func() {
		if err := plainSweep(os.Args[1], os.Args[2]); err != nil {
			panic(err)
		}
	}, "gfnem-broken": func() {
		gfnem.Tasks = append(gfnem.Tasks, broken{})
		main()
	}})
}

// broken is a task with mistakes.
type broken struct{ mixture.Task }

// Name implements run.Task.
func (broken) Name() string { return "broken" }

// Start implements run.Task.
func (b broken) Start(_ compute.Backend, config any) (run.Session, error) {
	if config.(*mixture.Config).Points != 7 {
		return []run.Session(nil)[3], nil
	}
	var g crash.Group
	g.Go(b.fall)
	g.Wait()
	return nil, nil
}

func (broken) fall() { panic("in another goroutine") }

// tiny holds configurations of trainings that take a moment, and trees.
var tiny = os.DirFS("testdata/tiny")

// TestScripts runs testdata/script: what a user types and what comes back. Beside
// each script lie the files of testdata/tiny.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			// exit CODE COMMAND... runs a command that must end with the code.
			"exit": func(ts *testscript.TestScript, neg bool, args []string) {
				if neg || len(args) < 2 {
					ts.Fatalf("usage: exit CODE COMMAND...")
				}
				err := ts.Exec(args[1], args[2:]...)
				code := "0"
				if err != nil {
					code = exitCode(err)
				}
				if code != args[0] {
					ts.Fatalf("exit code %s, want %s", code, args[0])
				}
			},
			// waitfor FILE waits until a file has content.
			"waitfor": func(ts *testscript.TestScript, neg bool, args []string) {
				waitFor(ts, ts.MkAbs(args[0]))
			},
			// pictures DIR COUNT WIDTH HEIGHT makes PNG files, each with a bright bar on noise that is dark.
			"pictures": func(ts *testscript.TestScript, neg bool, args []string) {
				ts.Check(pictures(ts.MkAbs(args[0]), args[1:]))
			},
			// damage DIR flips a byte of the newest checkpoint below it.
			"damage": func(ts *testscript.TestScript, neg bool, args []string) {
				ts.Check(damage(ts.MkAbs(args[0])))
			},
			// datahashes RUN FILE writes the hashes of a run's data into a file.
			"datahashes": func(ts *testscript.TestScript, neg bool, args []string) {
				r, err := run.Read(ts.MkAbs(args[0]))
				ts.Check(err)
				if len(r.Info().Data) == 0 {
					ts.Fatalf("%s has no data", args[0])
				}
				ts.Check(os.WriteFile(ts.MkAbs(args[1]), fmt.Appendln(nil, r.Info().Data), 0o666))
			},
			// lines FILE N checks that a file has N lines.
			"lines": func(ts *testscript.TestScript, neg bool, args []string) {
				if n := countLines(ts.ReadFile(args[0])); n != args[1] {
					ts.Fatalf("%s has %s lines, want %s", args[0], n, args[1])
				}
			},
		},
		Setup: func(e *testscript.Env) error {
			e.Setenv("HOME", e.WorkDir)
			return os.CopyFS(e.WorkDir, tiny)
		},
	})
}

func TestHelpNamesEveryCommand(t *testing.T) {
	out, err := os.CreateTemp(t.TempDir(), "help")
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	if code := execute([]string{"--help"}, out, out); code != exitOK {
		t.Fatalf("exit code %d", code)
	}
}
