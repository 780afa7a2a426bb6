package main

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/gfnem/gfnem/internal/testkit"
)

var (
	changes    = flag.Int("changes", 40, "changes that TestCorrupted makes; from 1000 on, to every kind of folder")
	onlyChange = flag.Int("change", -1, "the only change that TestCorrupted makes, by its number")
	changePart = flag.String("changes.part", "1/1", "which part of the changes TestCorrupted makes: 3/8 is the third of eight")
)

// TestCorrupted changes one thing in a folder of the program and runs a command on it: the change is named in one line
// with exit code 2, or the numbers are those of the undisturbed folder. An older checkpoint may be used if the command
// says so. The command verify finds what was changed in every file that has a hash.
//
//	go test ./cmd/gfnem -run TestCorrupted -changes 2000 -timeout 1h
func TestCorrupted(t *testing.T) {
	t.Parallel()
	seed := testkit.Seed(t)
	w := newWorld(t)
	var part, parts int
	if _, err := fmt.Sscanf(*changePart, "%d/%d", &part, &parts); err != nil || part < 1 || part > parts {
		t.Fatalf("-changes.part %s: want a part, such as 3/8", *changePart)
	}
	fixtures := w.fixtures()
	if *changes < 1000 {
		fixtures = fixtures[:4]
	}
	tally := newTally()
	inParallel(len(fixtures), func(i int) {
		if err := fixtures[i].prepare(); err != nil {
			t.Errorf("%s: %v", fixtures[i].name, err)
		}
	})
	if t.Failed() {
		return
	}
	for _, f := range fixtures {
		w.copies = append(w.copies, f.below()...)
	}
	var made atomic.Int64
	inParallel(*changes, func(i int) {
		f, n := fixtures[i%len(fixtures)], i/len(fixtures)
		if *onlyChange >= 0 && i != *onlyChange || n%parts != part-1 {
			return
		}
		f.Lock()
		defer f.Unlock()
		if err := f.corrupt(seed, i, n, tally); err != nil {
			t.Errorf("change %d: %v", i, err)
		}
		made.Add(1)
	})
	t.Logf("%d changes\n%s", made.Load(), tally)
	if *onlyChange < 0 && parts == 1 {
		for _, f := range fixtures {
			all := *changes/len(fixtures)/2 >= len(f.files) // as many changes take the next file
			for _, name := range f.files {
				if all && !tally.hit[f.name+"/"+name] {
					t.Errorf("%s/%s was never changed", f.name, name)
				}
			}
		}
	}
}

// inParallel calls do with all numbers below n.
func inParallel(n int, do func(i int)) {
	numbers := make(chan int)
	var wg sync.WaitGroup
	for range max(2, runtime.GOMAXPROCS(0)) {
		wg.Go(func() {
			for i := range numbers {
				do(i)
			}
		})
	}
	for i := range n {
		numbers <- i
	}
	close(numbers)
	wg.Wait()
}

// corrupt makes change i, which is number n of this folder, and asks two commands.
func (f *fixture) corrupt(seed uint64, i, n int, tally *tally) error {
	r := rand.New(rand.NewPCG(seed, uint64(i)))
	// Every other change takes the next file, the others one that is more than a figure.
	file := f.order(seed)[n/2%len(f.files)]
	if stored := f.stored(); n%2 == 1 {
		file = stored[r.IntN(len(stored))]
	}
	if err := f.reset(); err != nil {
		return err
	}
	c, different, err := f.disturb(r, file)
	if err != nil {
		return fmt.Errorf("%s, %v: %w", f.name, c, err)
	}
	asked := []string{f.commands[r.IntN(len(f.commands))]}
	if asked[0] != verify {
		asked = append([]string{verify}, asked...) // it changes nothing
	}
	for _, command := range asked {
		got := f.ask(command)
		outcome, problem := f.judge(c, different, command, got)
		if problem == "" && got.code == exitOK && strings.HasPrefix(command, "resume") {
			// What was mended stays mended.
			again := f.ask("eval DIR --json")
			if want := f.undisturbed(command, 0); again.code != exitOK || again.state() != want.state() {
				got, outcome, problem = again, failure, "measured after that, the folder is not that of the finished run"
			}
		}
		if problem == "" && c.wroteAway() {
			outcome, problem = failure, "it wrote where a link points"
		}
		tally.add(f, file, c, outcome)
		if problem != "" {
			f.Errorf("%s/%s; then %s: %s\nexit code %d\n%s%s(again with GFNEM_SEED=%d -changes %d -change %d)",
				f.name, c, clip(command, 70), problem, got.code, clip(got.out, 600), clip(got.err, 600), seed, *changes, i)
		}
	}
	return nil
}

const verify = "verify DIR"

// Outcomes.
const (
	detected = "detected"
	harmless = "harmless"
	warned   = "harmless, with a warning"
	older    = "older checkpoint"
	failure  = "FAILED"
)

// judge compares what a command did with what it does on the undisturbed folder.
func (f *fixture) judge(c change, different bool, command string, got answer) (outcome, problem string) {
	switch {
	case got.hung:
		return failure, "it hangs"
	case internals.MatchString(got.err), command == verify && internals.MatchString(got.out):
		return failure, "it speaks of its inside"
	case got.code == exitBadInput:
		if problem := f.unclear(c, got); problem != "" {
			return failure, problem
		}
		return detected, ""
	case got.code != exitOK:
		return failure, "the exit code is neither 0 nor 2"
	case command == verify:
		if different && f.hashed(c) {
			return failure, "the change is not found"
		}
		return harmless, ""
	}
	_, fallback := got.fields()
	said := fallback || strings.Contains(got.err, "warning:")
	for missing := range len(f.checkpoints(command)) + 1 {
		want := f.undisturbed(command, missing)
		if !same(want, got) {
			continue
		}
		switch {
		case !said && c.kind != "checkpoint deleted" && !reflect.DeepEqual(want.files, got.files):
			return failure, "it wrote other files without a word"
		case missing == 0 && said:
			return warned, ""
		case missing == 0:
			return harmless, ""
		case c.kind == "checkpoint deleted":
			return older, ""
		case strings.HasPrefix(command, "eval") && !fallback, !said:
			return failure, "an older checkpoint is used without a word"
		}
		return older, ""
	}
	return failure, "other numbers: undisturbed it says\n" + clip(f.undisturbed(command, 0).out, 600)
}

// same compares what is printed.
func same(a, b answer) bool {
	if a.code != b.code {
		return false
	}
	one, _ := a.fields()
	other, _ := b.fields()
	if one == nil || other == nil {
		return untimed(a.out) == untimed(b.out)
	}
	return reflect.DeepEqual(one, other)
}

func untimed(text string) string {
	return regexp.MustCompile(`Trained in \S+`).ReplaceAllString(text, "")
}

// internals are words that are none of a user's.
var internals = regexp.MustCompile(`goroutine|panic|runtime error|<nil>|%!|0x[0-9a-f]{6}|interface conversion|out of range|` +
	`reflect|Go struct|Go value|\bmain\.|\.go:[0-9]`)

// unclear says why a complaint is not one clear line that names the file, its checkpoint or its data set.
func (f *fixture) unclear(c change, got answer) string {
	lines := strings.Split(strings.TrimSpace(got.err), "\n")
	said := lines[len(lines)-1]
	switch {
	case !strings.HasPrefix(said, "gfnem: ") || strings.Count("\n"+got.err, "\ngfnem: ") != 1:
		return "it does not end in one line"
	}
	for _, file := range append(c.also, c.file) {
		name := filepath.Base(file)
		if strings.Contains(got.err+got.out, name) {
			return ""
		}
		if step := strings.TrimLeft(filepath.Base(filepath.Dir(file)), "0"); strings.Contains(file, "state") && step != "" &&
			regexp.MustCompile(`\b0*`+step+`\b`).MatchString(got.err+got.out) {
			return ""
		}
	}
	if c.kind == "checkpoint deleted" && strings.Contains(got.err, f.dir()) {
		return ""
	}
	return "it does not name the file"
}

// hashed reports whether a change is to what has a hash.
func (f *fixture) hashed(c change) bool {
	name := filepath.Base(c.file)
	switch {
	case c.kind == "checkpoint deleted": // as if it had not been saved
		return false
	case name == "lock":
		return slices.ContainsFunc(c.also, func(other string) bool { return f.hashed(change{kind: c.kind, file: other}) })
	case c.kind == "deleted" && slices.Contains([]string{"result.json", "outputs.json", "summary.json"}, name): // as if not yet written
		return false
	case name == "metrics.jsonl" || strings.HasPrefix(name, "events."): // what follows the checkpoint is cut off some day
		before, _ := os.ReadFile(filepath.Join(f.copy(), c.file))
		now, err := os.ReadFile(filepath.Join(f.dir(), c.file))
		return err != nil || !strings.HasPrefix(string(now), string(before))
	}
	return true
}

// order is all files in an order of their own for every seed.
func (f *fixture) order(seed uint64) []string {
	out := slices.Clone(f.files)
	rand.New(rand.NewPCG(seed, 0)).Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

// stored are the files that are no figures.
func (f *fixture) stored() []string {
	return slices.DeleteFunc(slices.Clone(f.files), func(name string) bool {
		return slices.Contains([]string{".png", ".svg", ".html"}, filepath.Ext(name))
	})
}

// below lists the files of the copy, which nobody changes.
func (f *fixture) below() []string {
	out := slices.Clone(f.files)
	for i, name := range out {
		out[i] = filepath.Join(f.copy(), name)
	}
	return out
}

func clip(text string, most int) string {
	if len(text) > most {
		text = text[:most] + "..."
	}
	return text
}

// tally counts outcomes for each kind of file.
type tally struct {
	sync.Mutex
	count map[string]map[string]int
	hit   map[string]bool
}

func newTally() *tally { return &tally{count: map[string]map[string]int{}, hit: map[string]bool{}} }

func (t *tally) add(f *fixture, file string, c change, outcome string) {
	t.Lock()
	defer t.Unlock()
	t.hit[f.name+"/"+file] = true
	kind := filepath.Base(c.file)
	switch ext := filepath.Ext(kind); {
	case c.kind == "checkpoint deleted":
		kind = "a checkpoint"
	case ext == ".png" || ext == ".svg":
		kind = "*" + ext
	case f.under != "":
		kind = f.under + "/" + kind
	}
	if t.count[kind] == nil {
		t.count[kind] = map[string]int{}
	}
	t.count[kind][outcome]++
}

// String is a table.
func (t *tally) String() string {
	outcomes := []string{detected, harmless, warned, older, failure}
	text := fmt.Sprintf("%-28s", "commands after a change of")
	for _, o := range outcomes {
		text += fmt.Sprintf(" %*s", max(len(o), 6), o)
	}
	for _, kind := range slices.Sorted(maps.Keys(t.count)) {
		text += fmt.Sprintf("\n%-28s", kind)
		for _, o := range outcomes {
			text += fmt.Sprintf(" %*d", max(len(o), 6), t.count[kind][o])
		}
	}
	return text
}
