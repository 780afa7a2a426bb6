package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gomlx/compute"

	"github.com/gfnem/gfnem/backend"
	"github.com/gfnem/gfnem/config"
	"github.com/gfnem/gfnem/internal/disk"
	"github.com/gfnem/gfnem/internal/disk/disktest"
	"github.com/gfnem/gfnem/run"
)

// world is folders of the program's files that were made without any disturbance. A change is made to a folder in its
// place, which is then made anew from a copy.
type world struct {
	*testing.T
	root   string // of the folders
	kept   string // of their copies
	stdin  string // sentences
	data   string // a data set that nobody changes
	images string
	copies []string // files of the copies of all folders
}

// fixture is a folder of a world. In its commands, DIR stands for the folder.
type fixture struct {
	*world
	name     string
	make     func(dir string) error
	commands []string
	under    string // only files below this folder are changed

	sync.Mutex                     // held while the folder is in use
	files      []string            // below the folder, sorted
	answers    map[string][]answer // to a command when 0, 1, ... of the newest checkpoints are missing
}

// answer is what a command says and does.
type answer struct {
	code     int
	out, err string
	hung     bool
	files    map[string]string // hashes of the files that commands write, where they write any
}

// newWorld makes what all fixtures need.
func newWorld(t *testing.T) *world {
	t.Helper()
	base := disktest.MemoryDir(t)
	w := &world{T: t, root: filepath.Join(base, "w"), kept: filepath.Join(base, "kept"), stdin: filepath.Join(base, "stdin"),
		data: filepath.Join(base, "data"), images: images(t)}
	err := errors.Join(os.Mkdir(w.root, 0o777), os.Mkdir(w.kept, 0o777),
		os.WriteFile(w.stdin, []byte("the dog slept\na man met the dog\n"), 0o666))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.makeData(w.data); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) makeData(dir string) error {
	return w.must("data", "treebank", "testdata/tiny/sentences.trees", "--valid-fraction", "0.2", "--test-fraction", "0.1",
		"--out", dir)
}

// run runs the program in a process of its own, so that nothing it does can end the test.
func (w *world) run(args ...string) answer {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := program(w.T, args...)
	in, err := os.Open(w.stdin)
	if err != nil {
		w.Fatal(err)
	}
	defer in.Close()
	var out, errOut bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, &out, &errOut
	if err := cmd.Start(); err != nil {
		w.Fatal(err)
	}
	stop := context.AfterFunc(ctx, func() { cmd.Process.Kill() })
	defer stop()
	cmd.Wait()
	return answer{code: cmd.ProcessState.ExitCode(), out: out.String(), err: errOut.String(), hung: ctx.Err() != nil}
}

func (w *world) must(args ...string) error {
	if a := w.run(args...); a.code != exitOK {
		return errors.New(strings.Join(args, " ") + ": " + a.err)
	}
	return nil
}

// training is a task with settings that take a moment.
type training struct {
	task string
	set  []string
	stop int // steps after which a run is interrupted
}

func (t training) config() string { return filepath.Join("testdata", "tiny", t.task+".toml") }

// flags are those of train.
func (t training) flags() []string {
	out := []string{"--config", t.config()}
	for _, s := range t.set {
		out = append(out, "--set", s)
	}
	return out
}

// finished trains a run to its end, with a checkpoint after every step.
func (w *world) finished(t training) func(string) error {
	return func(dir string) error {
		return w.must(slices.Concat([]string{"train", t.task, "--out", dir, "--save-every", "1ns"}, t.flags())...)
	}
}

// unfinished interrupts one.
func (w *world) unfinished(t training) func(string) error {
	return func(dir string) error {
		task := taskNamed(t.task)
		chosen := task.Config(task.Presets()[0])
		if err := config.Resolve(chosen, config.File(t.config()), config.Set(t.set)); err != nil {
			return err
		}
		ctx, stop := context.WithCancel(context.Background())
		defer stop()
		b, err := backend.Open("")
		if err != nil {
			return err
		}
		s, err := interrupted{task, &t.stop, stop}.Start(b, chosen)
		if err != nil {
			return err
		}
		defer s.Close()
		text, err := config.Encode(chosen)
		if err != nil {
			return err
		}
		r, err := run.Create(dir, run.Options{
			Task: t.task, Config: text, Command: []string{"gfnem", "train", t.task}, Seed: s.Seed(), Backend: backend.Describe(b), Data: s.Data(),
		})
		if err != nil {
			return err
		}
		defer r.Close()
		return wasInterrupted(r.Drive(ctx, s, 0, nil))
	}
}

// taskNamed returns a task of the program.
func taskNamed(name string) run.Task {
	return gfnem.Tasks[slices.IndexFunc(gfnem.Tasks, func(t run.Task) bool { return t.Name() == name })]
}

func wasInterrupted(err error) error {
	if errors.Is(err, run.ErrInterrupted) || errors.Is(err, context.Canceled) {
		return nil
	}
	return errors.Join(err, errors.New("the training was not interrupted"))
}

// interrupted is a task whose sessions call stop after so many steps in all.
type interrupted struct {
	run.Task
	left *int
	stop func()
}

func (i interrupted) Start(b compute.Backend, c any) (run.Session, error) {
	s, err := i.Task.Start(b, c)
	return &interruptedSession{s, i}, err
}

// Prepare implements run.Preparer.
func (i interrupted) Prepare(c any) ([]string, error) { return run.Prepare(i.Task, c) }

type interruptedSession struct {
	run.Session
	interrupted
}

func (s *interruptedSession) Step() (run.Tick, error) {
	if *s.left--; *s.left == 0 {
		s.stop()
	}
	return s.Session.Step()
}

// gridCmd is a command that makes three cells.
type gridCmd struct{ run.Study }

func (w *world) grid(t training, dir string) gridCmd {
	set, err := withKeys(t.config(), []string{"reproduce"})
	if err != nil {
		w.Fatal(err)
	}
	c := gridCmd{run.Study{Table: "grammar", Rows: []string{"marginal"}, Runs: 3}}
	c.Dir = dir
	for _, s := range set {
		if s != "reproduce" && s != "--set" {
			c.Set = append(c.Set, s)
		}
	}
	c.Set = append(append(c.Set, t.set...), "data="+w.data)
	return c
}

// reproduce spells the command.
func (c gridCmd) spelled() string {
	out := []string{"reproduce", c.Table, "--rows", strings.Join(c.Rows, ","), "--seeds", fmt.Sprint(c.Runs),
		"--workers", "1", "--save-every", "1ns", "--out", c.Dir, "--json"}
	for _, s := range c.Set {
		out = append(out, "--set", s)
	}
	return strings.Join(out, " ")
}

// halfGrid is interrupted in its second cell.
func (w *world) halfGrid(t training) func(string) error {
	return func(dir string) error {
		c := w.grid(t, dir)
		b, err := backend.Open("")
		if err != nil {
			return err
		}
		ctx, stop := context.WithCancel(context.Background())
		defer stop()
		task := taskNamed(t.task).(run.Reproducer)
		c.Task, c.Backend, c.Name, c.Workers = interrupted{task, &t.stop, stop}, b, "test", 1
		_, err = task.Reproduce(ctx, c.Study)
		return wasInterrupted(err)
	}
}

// bestEarlier are settings of tiny grammars whose state is best after the first update; it counts, and not the last one.
var bestEarlier = []string{"eval.every=1", "optim.theta.rate=0.15", "optim.theta.end=1", "optim.warmup=0"}

// fixtures lists the folders of a world; quick ones come first.
func (w *world) fixtures() []*fixture {
	mixture := training{task: "mixture", stop: 250}
	marginal := training{"grammar", append([]string{"data=" + w.data, "method=marginal", "updates=8"}, bestEarlier...), 5}
	gfn := training{"grammar", []string{"data=" + w.data, "method=gfn", "prior.on=true", "updates=6", "eval.every=2", "restarts=2", "restart_updates=2"}, 6}
	coder := training{"vae", []string{"data=" + w.images, "method=gfn-gd-prior", "epochs=2"}, 6}
	vq := training{"vae", []string{"data=" + w.images, "method=vq", "epochs=2"}, 6}
	cells := training{"grammar", append([]string{"updates=4"}, bestEarlier...), 7}
	measure := []string{"eval DIR --json", "resume DIR --json", "report DIR"}
	grammars := slices.Concat(measure, []string{"parse DIR", "inside DIR", "grammar export DIR", "parse DIR --decode mbr --json"})
	walks := slices.Concat(grammars, []string{"parse DIR --decode gfn --json", "parse DIR --decode gfn-mbr"})
	codes := slices.Concat(measure, []string{"encode DIR " + w.images, "encode DIR --draw " + w.images, "sample DIR --count 5"})
	var out []*fixture
	add := func(name string, make func(string) error, commands ...string) *fixture {
		f := &fixture{world: w, name: name, make: make, commands: slices.Concat(commands, []string{verify}), answers: map[string][]answer{}}
		out = append(out, f)
		return f
	}
	runs := func(name string, t training, commands []string) {
		add(name+"-done", w.finished(t), commands...)
		add(name+"-part", w.unfinished(t), commands...)
	}
	runs("mixture", mixture, measure)
	tables := []string{w.grid(cells, "DIR").spelled(), "eval DIR/marginal/0 --json"}
	add("grid-part", w.halfGrid(cells), tables...)
	set := add("data", func(dir string) error {
		return errors.Join(w.makeData(filepath.Join(dir, "data")), w.finished(training{
			task: "grammar", set: []string{"data=" + filepath.Join(dir, "data"), "method=marginal"},
		})(filepath.Join(dir, "run")))
	}, "data show DIR/data --json", "eval DIR/run --json",
		"train grammar --config testdata/tiny/grammar.toml --data DIR/data --method marginal --out DIR/new --json")
	set.under = "data"
	runs("marginal", marginal, grammars)
	add("grid-done", func(dir string) error { return w.must(strings.Fields(w.grid(cells, dir).spelled())...) }, tables...)
	runs("gfn", gfn, walks)
	runs("vae", coder, codes)
	runs("vq", vq, codes)
	return out
}

func (f *fixture) dir() string  { return filepath.Join(f.root, f.name) }
func (f *fixture) copy() string { return filepath.Join(f.kept, f.name) }

// prepare makes the folder and its copy, and asks the commands.
func (f *fixture) prepare() error {
	if err := f.make(f.dir()); err != nil {
		return err
	}
	if err := os.CopyFS(f.copy(), os.DirFS(f.dir())); err != nil {
		return err
	}
	var err error
	f.files, err = filesBelow(f.dir(), f.under)
	for _, command := range f.commands {
		if a := f.undisturbed(command, 0); a.code != exitOK {
			err = errors.Join(err, fmt.Errorf("%s: %s", command, a.err))
		}
	}
	return err
}

// reset makes the folder anew from its copy.
func (f *fixture) reset() error {
	return errors.Join(os.RemoveAll(f.dir()), os.CopyFS(f.dir(), os.DirFS(f.copy())))
}

// filesBelow lists the files of a folder that are below one of its folders.
func filesBelow(dir, under string) ([]string, error) {
	var out []string
	err := filepath.WalkDir(filepath.Join(dir, under), func(path string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			path, err = filepath.Rel(dir, path)
			out = append(out, path)
		}
		return err
	})
	return out, err
}

// checkpoints lists the folders of checkpoints of the run that a command is about, newest first.
func (f *fixture) checkpoints(command string) []string {
	_, below, _ := strings.Cut(command, "DIR")
	below, _, _ = strings.Cut(strings.TrimPrefix(below, "/"), " ")
	seen := make(map[string]bool)
	for _, name := range f.files {
		if dir := filepath.Dir(name); filepath.Dir(dir) == filepath.Join(below, "state") {
			seen[dir] = true
		}
	}
	out := slices.Sorted(maps.Keys(seen))
	slices.Reverse(out)
	return out
}

const events = "events.out.tfevents.gfnem"

// ask runs a command on the folder as it is.
func (f *fixture) ask(command string) answer {
	a := f.run(strings.Fields(strings.ReplaceAll(command, "DIR", f.dir()))...)
	writes := strings.HasPrefix(command, "resume") || strings.HasPrefix(command, "report") || strings.HasPrefix(command, "reproduce")
	if a.code != exitOK || !writes {
		return a
	}
	a.files = make(map[string]string)
	for _, name := range []string{"report.html", "metrics.jsonl", events, "parameters.safetensors"} {
		data, err := os.ReadFile(filepath.Join(f.dir(), name))
		if err != nil {
			continue
		}
		a.files[name] = disk.DigestOf(trained.ReplaceAll(data, nil)).SHA256
		if name == events { // it tells the time: only what was there before is the same
			before, _ := os.ReadFile(filepath.Join(f.copy(), name))
			a.files[name] = fmt.Sprint(len(data), bytes.HasPrefix(data, before))
		}
	}
	return a
}

// undisturbed returns the answer to a command when so many of the newest checkpoints are missing. The folder stays as
// it is.
func (f *fixture) undisturbed(command string, missing int) answer {
	if known := f.answers[command]; len(known) > missing {
		return known[missing]
	}
	aside := f.dir() + "-aside"
	err := errors.Join(os.Rename(f.dir(), aside), f.reset())
	for _, dir := range f.checkpoints(command)[:missing] {
		err = errors.Join(err, os.RemoveAll(filepath.Join(f.dir(), dir)))
	}
	a := f.ask(command)
	if err := errors.Join(err, os.RemoveAll(f.dir()), os.Rename(aside, f.dir())); err != nil {
		f.Fatal(err)
	}
	f.answers[command] = append(f.answers[command], a)
	return a
}

// fields decodes what a command printed with --json, without what says that a checkpoint was skipped.
func (a answer) fields() (fields map[string]any, fallback bool) {
	if json.Unmarshal([]byte(a.out), &fields) == nil {
		_, fallback = fields["fallback"]
		delete(fields, "fallback")
	}
	return fields, fallback
}

// state is the hash of the state that a command speaks of.
func (a answer) state() any {
	fields, _ := a.fields()
	return fields["state_sha256"]
}
