package cli

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/gomlx/compute"

	"github.com/gfnem/gfnem/bench"
	"github.com/gfnem/gfnem/cli/command"
	"github.com/gfnem/gfnem/grammar/grammarcmd"
	"github.com/gfnem/gfnem/mixture"
	"github.com/gfnem/gfnem/run"
	"github.com/gfnem/gfnem/vae/vaecmd"
)

// adding is a task that adds up numbers, with commands and flags.
type adding struct{ name string }

type addingConfig struct {
	Total int `toml:"total" range:"0,100" help:"numbers"`
}

func (a adding) Name() string      { return a.name }
func (a adding) Presets() []string { return []string{"short", "long"} }

func (a adding) Config(preset string) any {
	switch preset {
	case "short":
		return &addingConfig{3}
	case "long":
		return &addingConfig{10}
	}
	return nil
}

func (a adding) Start(_ compute.Backend, c any) (run.Session, error) {
	return &sum{total: uint64(c.(*addingConfig).Total)}, nil
}

// sum is a session.
type sum struct{ n, sum, total uint64 }

func (s *sum) Done() bool                     { return s.n == s.total }
func (s *sum) Progress() (step, total uint64) { return s.n, s.total }
func (s *sum) Seed() uint64                   { return 0 }
func (s *sum) Data() map[string]string        { return nil }
func (s *sum) Parameters() (map[string]run.Array, error) {
	return map[string]run.Array{"sum": {DType: "U64", Data: binary.LittleEndian.AppendUint64(nil, s.sum)}}, nil
}
func (s *sum) Evaluate() (run.Result, error) { return added{s.sum}, nil }
func (s *sum) Close()                        {}

func (s *sum) Report(_ *run.Run, dir string, _ run.Result) error {
	return os.WriteFile(filepath.Join(dir, "report.html"), nil, 0o666)
}

func (s *sum) Step() (run.Tick, error) {
	s.n++
	s.sum += s.n
	return run.Tick{Step: s.n, Total: s.total}, nil
}

func (s *sum) State() (run.State, error) {
	extra, err := json.Marshal([]uint64{s.n, s.sum})
	return run.State{Extra: extra}, err
}

func (s *sum) Restore(from run.State) error {
	return json.Unmarshal(from.Extra, &[]*uint64{&s.n, &s.sum})
}

type added struct {
	Sum uint64 `json:"sum"`
}

func (a added) Print(w io.Writer) error { return command.PrintJSON(w, a) }

// greeting is an adding with all that a task can add to a program.
type greeting struct {
	adding
	key string // of its flag
}

var (
	_ command.Commander  = greeting{}
	_ command.Documented = greeting{}
	_ command.Shortener  = greeting{}
	_ command.Evaluator  = greeting{}
	_ command.Verifier   = greeting{}
)

type greetCmd struct {
	Whom string `arg:"" help:"Who is greeted by gfnem."`
}

func (c greetCmd) Run(con command.Console) error {
	_, err := io.WriteString(con.Out, "hello "+c.Whom+" from "+strings.Join(con.Args, " ")+"\n")
	return err
}

func (greeting) Commands() any {
	return &struct {
		Greet greetCmd `cmd:"" help:"Greet."`
	}{}
}

func (g greeting) Examples(of string) []string {
	if of == "train" {
		return []string{"gfnem train " + g.name + " --count 5"}
	}
	return nil
}

func (greeting) Notes(of string) string {
	if of == "eval" {
		return "Sums are exact."
	}
	return ""
}

func (g greeting) Shortcuts() []command.Shortcut {
	return []command.Shortcut{
		{Flag: "count", Key: g.key, Placeholder: "N", Help: "how \"many\" numbers"},
		{Flag: "seven", Key: g.key, On: "7", Help: "that many"},
	}
}

type greetingFlags struct {
	Twice bool `help:"Twice as many."`
}

func (f *greetingFlags) Settings(run.Task) ([]string, error) {
	if f.Twice {
		return []string{"total=20"}, nil
	}
	return nil, nil
}

func (greeting) EvalFlags() command.EvalFlags { return &greetingFlags{} }

func (greeting) Verify(dir string, say func(run.Finding)) (bool, error) {
	path := filepath.Join(dir, "greeting")
	if _, err := os.Stat(path); err != nil {
		return false, nil
	}
	say(run.Finding{Status: run.Intact, Path: path, Text: "a greeting"})
	return true, nil
}

// says runs a program, which must end with a code, and returns its output and what it says besides.
func says(t *testing.T, p Program, code int, args ...string) (out, besides string) {
	t.Helper()
	var o, e bytes.Buffer
	if got := p.Execute(args, &o, &e); got != code {
		t.Fatalf("%v: exit code %d, want %d\n%s%s", args, got, code, o.String(), e.String())
	}
	return o.String(), e.String()
}

func contains(t *testing.T, text, want string) {
	t.Helper()
	if !strings.Contains(text, want) {
		t.Errorf("%q lacks %q", text, want)
	}
}

// A program with tasks that are a run.Task and nothing more has all commands that need no more, under its own name.
func TestPlainTasks(t *testing.T) {
	p := Program{Name: "adder", Tasks: []run.Task{adding{"plain"}, adding{"other"}}}
	dir := filepath.Join(t.TempDir(), "run")
	out, _ := says(t, p, ExitOK, "train", "plain", "--out", dir, "--json")
	contains(t, out, `"sum":6`)
	for _, args := range [][]string{{"eval", dir, "--json"}, {"resume", dir, "--json"}} {
		if again, _ := says(t, p, ExitOK, args...); again != out {
			t.Errorf("%v says %s, train %s", args, again, out)
		}
	}
	says(t, p, ExitOK, "report", dir)
	out, _ = says(t, p, ExitOK, "verify", dir)
	contains(t, out, "made by adder train plain")
	out, _ = says(t, p, ExitOK, "version")
	contains(t, out, "adder ")
	long := filepath.Join(t.TempDir(), "long")
	out, _ = says(t, p, ExitOK, "train", "other", "--preset", "long", "--set", "total=11", "--out", long, "--json")
	contains(t, out, `"sum":66`)

	for _, c := range []struct {
		want string
		args []string
	}{
		{`adder: unknown task "plian"; did you mean "plain"?`, []string{"train", "plian"}},
		{`adder: unknown preset "lang"; did you mean "long"?`, []string{"train", "plain", "--preset", "lang"}},
		{`adder: --seed: the task plain has no such setting`, []string{"train", "plain", "--seed", "3"}},
		{`already holds a run: continue it with "adder resume ` + dir + `"`, []string{"train", "plain", "--out", dir}},
		{`<task> is missing. What to train: plain or other`, []string{"train"}},
		{`(see adder train --help)`, []string{"train"}},
		{`unknown command reproduce`, []string{"reproduce", "plain"}}, // no task has tables
		{`unknown flag --count`, []string{"train", "plain", "--count", "3"}},
	} {
		_, besides := says(t, p, ExitBadInput, c.args...)
		contains(t, besides, c.want)
	}
	p.Tasks = p.Tasks[1:]
	_, besides := says(t, p, ExitBadInput, "eval", dir)
	contains(t, besides, `is a run of the task "plain", which adder does not know`)
	out, _ = says(t, p, ExitOK, "train", "--out", filepath.Join(t.TempDir(), "only"), "--json") // the only one
	contains(t, out, `"sum":6`)
}

// Commands, flags, help and data sets of a task are those of the program.
func TestTaskAddsToProgram(t *testing.T) {
	p := Program{Name: "greeter", Tasks: []run.Task{greeting{adding{"first"}, "total"}, adding{"plain"}, greeting2{}}}
	out, _ := says(t, p, ExitOK, "greet", "you")
	contains(t, out, "hello you from greeter greet you\n")
	dir := filepath.Join(t.TempDir(), "run")
	out, _ = says(t, p, ExitOK, "train", "first", "--count", "5", "--out", dir, "--json")
	contains(t, out, `"sum":15`)
	out, _ = says(t, p, ExitOK, "eval", dir, "--json")
	contains(t, out, `"total":5`)
	out, _ = says(t, p, ExitOK, "eval", dir, "--twice", "--json")
	contains(t, out, `"total":20`)
	out, _ = says(t, p, ExitOK, "train", "second", "--seven", "--out", filepath.Join(t.TempDir(), "run"), "--json")
	contains(t, out, `"sum":28`)
	_, besides := says(t, p, ExitBadInput, "train", "third", "--count", "5")
	contains(t, besides, `unknown task "third"`)

	if err := os.WriteFile(filepath.Join(dir, "greeting"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	out, _ = says(t, p, ExitOK, "verify", dir)
	contains(t, out, "greeting: a greeting\n")

	help, _ := says(t, p, ExitOK, "train", "--help")
	help = strings.Join(strings.Fields(help), " ")
	for _, want := range []string{
		"greeter train first --count 5 ", "greeter train plain ", "by \"greeter resume\"",
		"--count=N The same as --set total=N. first: how \"many\" numbers; second: how \"many\" numbers.",
	} {
		contains(t, help, want)
	}
	help, _ = says(t, p, ExitOK, "eval", "--help")
	contains(t, help, "Sums are exact.")
	help, _ = says(t, p, ExitOK, "greet", "--help")
	contains(t, help, "Who is greeted by greeter.")
}

// greeting2 has the flags of greeting, and no commands.
type greeting2 struct{ adding }

func (greeting2) Name() string { return "second" }

func (greeting2) Shortcuts() []command.Shortcut { return greeting{key: "total"}.Shortcuts() }

// Two tasks whose flags of one name set different keys cannot be in one program.
func TestFlagsThatContradict(t *testing.T) {
	p := Program{Tasks: []run.Task{greeting{adding{"first"}, "total"}, greeting{adding{"second"}, "other"}}}
	var c line
	if _, err := p.parser(&c); err == nil || !strings.Contains(err.Error(), "--count of the task second sets other, and that of another task total") {
		t.Errorf("error %v", err)
	}
}

// With all that there is under another name, no help says ours.
func TestHelpHasTheNameOfTheProgram(t *testing.T) {
	p := Program{
		Name: "mine", Tasks: []run.Task{mixture.Task{}, grammarcmd.Task{}, vaecmd.Task{}}, Commands: []any{&bench.Commands{}},
	}
	var c line
	parser, err := p.parser(&c)
	if err != nil {
		t.Fatal(err)
	}
	help, _ := says(t, p, ExitOK)
	if strings.Contains(help, "gfnem") || !strings.Contains(help, "mine train mixture") {
		t.Errorf("help says %s", help)
	}
	commands := 0
	err = kong.Visit(parser.Model, func(node kong.Visitable, next kong.Next) error {
		n, ok := node.(*kong.Node)
		if !ok {
			return next(nil)
		}
		help, _ := says(t, p, ExitOK, append(strings.Fields(strings.TrimPrefix(n.Path(), "mine")), "--help")...)
		if strings.Contains(help, "gfnem") || !strings.Contains(help, "mine") {
			t.Errorf("%s --help says %s", n.Path(), help)
		}
		commands++
		return next(nil)
	})
	if err != nil || commands < 20 { // every one of them was visited
		t.Errorf("%d commands, error %v", commands, err)
	}
}
