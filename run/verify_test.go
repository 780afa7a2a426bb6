package run

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gfnem/gfnem/internal/disk"
	"github.com/gfnem/gfnem/internal/disk/disktest"
	"github.com/gfnem/gfnem/internal/testkit"
)

// findings are those of Verify, by path below the folder.
type findings map[string][]Finding

func verify(t testing.TB, dir string) findings {
	t.Helper()
	all := findings{}
	if err := Verify(dir, func(f Finding) {
		path, err := filepath.Rel(dir, f.Path)
		if err != nil {
			t.Fatal(err)
		}
		all[path] = append(all[path], f)
	}); err != nil {
		t.Fatal(err)
	}
	return all
}

// bad are the findings that are neither ok nor notes.
func (f findings) bad() (out []Finding) {
	for _, all := range f {
		for _, one := range all {
			if one.Status != Intact && one.Status != Note {
				out = append(out, one)
			}
		}
	}
	return out
}

// expect checks that something was said of a path.
func (f findings) expect(t testing.TB, path string, status Status, text string) {
	t.Helper()
	for _, one := range f[path] {
		if one.Status == status && strings.Contains(one.Text, text) {
			return
		}
	}
	t.Errorf("of %s it is said %v, want %s with %q", path, f[path], status, text)
}

// finished is a grid of one cell with four checkpoints, whose run and whose grid show something.
func finished(t testing.TB) (dir string) {
	t.Helper()
	dir = disktest.MemoryDir(t)
	g := Grid{Dir: dir, Task: countTask{}, Workers: 1, Every: 0}
	r, err := Create(filepath.Join(dir, "row", "0"), testOptions())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	s := countSession{counting{total: 10}, 3}
	if err := r.Drive(t.Context(), &s, 0, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := r.writeResult(countResult{s.Sum}, 0); err != nil {
		t.Fatal(err)
	}
	write := func(dir string) error {
		return WriteFile(filepath.Join(dir, "report.html"), disk.Content([]byte("<html>"+strings.Repeat("text", 20))))
	}
	if err := errors.Join(r.Publish(write), g.Publish(write)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// files lists those below a folder.
func files(t testing.TB, dir string) (paths []string) {
	t.Helper()
	if err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			path, err = filepath.Rel(dir, path)
			paths = append(paths, path)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return paths
}

// Every kind of change to every file that has a hash is found; nothing is changed by looking.
func TestVerifyFindsEveryChange(t *testing.T) {
	seed := testkit.Seed(t)
	r := rand.New(rand.NewPCG(seed, 0))
	dir := finished(t)
	all := verify(t, dir)
	if bad := all.bad(); bad != nil {
		t.Fatalf("an intact grid: %v", bad)
	}
	const cell = "row/0/"
	for path, text := range map[string]string{
		"report.html": "86 bytes", cell + "run.json": "made by gfnem train mixture", cell + "run.toml": "9 bytes",
		cell + "state/000000000010": "0 arrays, all finite", cell + "state/000000000008": "finite", cell + metricsName: "agree with the checkpoints",
		cell + eventsName: "agree with the checkpoints", cell + resultName: "made from checkpoint 10", cell + outputsName: "made from checkpoint 10",
		cell + "report.html": "86 bytes",
	} {
		all.expect(t, path, Intact, text)
	}
	changes := map[string]func(data []byte) []byte{
		"bit":      func(data []byte) []byte { data[r.IntN(len(data))] ^= 1 << r.IntN(8); return data },
		"cut":      func(data []byte) []byte { return data[:r.IntN(len(data))] },
		"longer":   func(data []byte) []byte { return append(data, byte(r.IntN(256))) },
		"nothing":  func([]byte) []byte { return nil },
		"object":   func([]byte) []byte { return []byte("{}") },
		"removed":  nil,
		"a folder": nil,
		"a link":   nil,
	}
	checked := 0
	for _, path := range files(t, dir) {
		name := filepath.Base(path)
		if name == lockName { // advice
			continue
		}
		whole := filepath.Join(dir, path)
		data := []byte(readFile(t, whole))
		for change, of := range changes {
			if err := os.Remove(whole); err != nil {
				t.Fatal(err)
			}
			var err error
			switch {
			case of != nil:
				writeString(t, whole, string(of([]byte(string(data)))))
			case change == "a folder":
				err = os.Mkdir(whole, 0o777)
			case change == "a link":
				err = os.Symlink(filepath.Join(dir, "elsewhere"), whole)
			}
			if err != nil {
				t.Fatal(err)
			}
			found := verify(t, dir)
			journal := name == metricsName || name == eventsName
			harmless := change == "longer" && journal || change == "removed" && slices.Contains([]string{outputsName, resultName, summaryName}, name)
			if bad := found.bad(); (bad == nil) != harmless {
				t.Errorf("%s, %s: found %v", path, change, bad)
			}
			checked++
			if err := os.RemoveAll(whole); err != nil {
				t.Fatal(err)
			}
			writeString(t, whole, string(data))
		}
	}
	if bad := verify(t, dir).bad(); bad != nil || checked < 8*18 {
		t.Errorf("after %d changes were undone: %v", checked, bad)
	}
}

// What is looked at is left as it is, to the modification time.
func TestVerifyWritesNothing(t *testing.T) {
	dir := finished(t)
	writeString(t, filepath.Join(dir, "row", "0", "state", "000000000011.tmp"), "half")
	snapshot := func() (all string) {
		t.Helper()
		if err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := e.Info()
			all += fmt.Sprintln(path, info.Mode(), info.ModTime().UnixNano(), info.Size())
			return err
		}); err != nil {
			t.Fatal(err)
		}
		return all
	}
	r, err := Open(filepath.Join(dir, "row", "0")) // that another process holds the lock does not matter
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	before := snapshot()
	verify(t, dir)
	if after := snapshot(); after != before {
		t.Errorf("the folder was\n%sand is\n%s", before, after)
	}
}

// slowly is a job that takes a while.
type slowly struct{ countSession }

func (s *slowly) Step() (Tick, error) {
	time.Sleep(200 * time.Microsecond)
	return s.countSession.Step()
}

// A run that is trained, and then published again and again, is never found to be damaged.
func TestVerifyWhileTraining(t *testing.T) {
	dir := filepath.Join(disktest.MemoryDir(t), "run")
	r, err := Create(dir, testOptions())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		err := r.Drive(ctx, &slowly{countSession{counting{total: 1 << 40}, 0}}, 0, nil)
		if errors.Is(err, ErrInterrupted) {
			err = nil
		}
		for version := range 300 {
			err = errors.Join(err, r.Publish(func(dir string) error {
				return WriteFile(filepath.Join(dir, "report.html"), disk.Content(fmt.Append(nil, version)))
			}))
		}
		ended <- err
	}()
	looked, newest := 0, 0
	for begin := time.Now(); ; looked++ {
		if time.Since(begin) > 500*time.Millisecond {
			cancel()
		}
		found := verify(t, dir)
		if bad := found.bad(); bad != nil {
			t.Fatalf("look %d: %v", looked, bad)
		}
		newest = max(newest, len(found))
		select {
		case err := <-ended:
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d looks", looked)
			if looked < 5 || newest < 6 {
				t.Errorf("%d looks saw %d things at most: the test shows too little", looked, newest)
			}
			return
		default:
		}
	}
}

func TestVerifyFindsWhatHashesHide(t *testing.T) {
	save := func(t *testing.T, states ...State) *Run {
		t.Helper()
		r, err := Create(filepath.Join(disktest.MemoryDir(t), "run"), testOptions())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { r.Close() })
		for _, s := range states {
			if err := errors.Join(r.Log(s.Step, map[string]float64{"x": 1}), r.Save(s)); err != nil {
				t.Fatal(err)
			}
		}
		return r
	}
	t.Run("not finite", func(t *testing.T) {
		r := save(t, State{Step: 1, Arrays: map[string]Array{
			"/a": {DType: "F32", Shape: []int{2}, Data: binary.LittleEndian.AppendUint64(nil, uint64(math.Float32bits(float32(math.NaN()))))},
			"/b": {DType: "F64", Data: binary.LittleEndian.AppendUint64(nil, math.Float64bits(math.Inf(-1)))},
			"/c": {DType: "U64", Data: binary.LittleEndian.AppendUint64(nil, math.MaxUint64)},
		}})
		verify(t, r.dir).expect(t, "state/000000000001", Damaged, "is not finite in /a (1 of its numbers), /b (1 of its numbers)")
	})
	t.Run("older checkpoint", func(t *testing.T) {
		r := save(t, toyState(1), toyState(2), toyState(3))
		writeString(t, filepath.Join(r.checkpointPath(1), stateFileName), "{}")
		all := verify(t, r.dir)
		all.expect(t, "state/000000000001", Damaged, "state.json: does not match the hash in the manifest")
		all.expect(t, "state/000000000003", Intact, "")
	})
	t.Run("another run's", func(t *testing.T) {
		r, o := save(t, toyState(1), toyState(2)), testOptions()
		o.Command = append(o.Command, "--save-every", "1s")
		other, err := Create(filepath.Join(disktest.MemoryDir(t), "run"), o)
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		writeString(t, r.path(infoName), readFile(t, other.path(infoName)))
		verify(t, r.dir).expect(t, "state/000000000001", Damaged, "are of different runs")
		read, err := Read(r.dir)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := read.Load(); err == nil || !strings.Contains(err.Error(), "are of different runs") {
			t.Errorf("loaded with the run.json of another run: %v", err)
		}
	})
	t.Run("another run's summary and result", func(t *testing.T) {
		r, o := save(t, toyState(1), toyState(2)), testOptions()
		o.Config += "more = 1\n"
		other, err := Create(filepath.Join(disktest.MemoryDir(t), "run"), o)
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		err = errors.Join(other.Save(toyState(1)), other.summarize(func(s *Summary) { s.Step = 1 }))
		if _, more := other.writeResult(countResult{}, 0); err != nil || more != nil {
			t.Fatal(err, more)
		}
		for _, name := range []string{summaryName, resultName} {
			writeString(t, r.path(name), readFile(t, other.path(name)))
			verify(t, r.dir).expect(t, name, Damaged, "belongs to another run")
			verify(t, other.dir).expect(t, name, Intact, "")
		}
		if _, err := r.Summary(); err == nil {
			t.Error("the summary of another run is read")
		}
	})
	t.Run("advice about a result", func(t *testing.T) {
		r := save(t, toyState(1))
		c := cellResult{Format: resultFormat + 1, Result: []byte("{}")}
		newer, err := disk.Seal(&c, &c.SHA256)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			finished bool
			text     string
			status   Status
			want     string // where the text ends
		}{
			{true, "{", Damaged, " makes it again"},
			{false, "{", Damaged, "remove it"},
			{true, string(newer), Unread, ErrNewer.Error()},
		} {
			if err := r.summarize(func(s *Summary) { s.Step, s.Finished = 1, c.finished }); err != nil {
				t.Fatal(err)
			}
			writeString(t, r.path(resultName), c.text)
			found := verify(t, r.dir)
			found.expect(t, resultName, c.status, c.want)
			if text := found[resultName][0].Text; !strings.HasSuffix(text, c.want) {
				t.Errorf("finished %v: %s", c.finished, text)
			}
		}
	})
	t.Run("unread checkpoint", func(t *testing.T) {
		r := save(t, toyState(1))
		_, err := r.writeResult(countResult{}, 0)
		err = errors.Join(err, r.summarize(func(s *Summary) { s.Step = 1 }), r.Publish(func(string) error { return nil }))
		if err != nil {
			t.Fatal(err)
		}
		d := disktest.New(r.dir)
		d.ReadErr = syscall.EIO
		for d.FailReadAt = 0; d.FailReadAt < d.Reads || d.Reads == 0; d.FailReadAt++ {
			d.Reads = 0
			unread := 0
			verifier{func(f Finding) {
				switch f.Status {
				case Unread:
					unread++
				case Damaged:
					t.Errorf("read %d fails: %v", d.FailReadAt, f)
				}
			}}.run(&Run{dir: r.dir, disk: d})
			if d.FailReadAt < d.Reads && unread == 0 {
				t.Errorf("read %d fails, and nobody says so", d.FailReadAt)
			}
		}
	})
	t.Run("steps", func(t *testing.T) {
		r := save(t)
		err := errors.Join(r.Log(7, nil), r.Save(toyState(3)))
		if err != nil {
			t.Fatal(err)
		}
		verify(t, r.dir).expect(t, metricsName, Damaged, "line 1 is of step 7, after step 0 and before checkpoint 3")
	})
	t.Run("report of an older state", func(t *testing.T) {
		r := save(t, toyState(1))
		publish := func() {
			if err := r.Publish(func(string) error { return nil }); err != nil {
				t.Fatal(err)
			}
		}
		publish()
		if err := r.Save(toyState(2)); err != nil {
			t.Fatal(err)
		}
		verify(t, r.dir).expect(t, outputsName, Note, "made at step 1, before the newest checkpoint: \"gfnem report")
		publish()
		if err := os.RemoveAll(r.checkpointPath(2)); err != nil {
			t.Fatal(err)
		}
		verify(t, r.dir).expect(t, outputsName, Damaged, "made from checkpoint 2, which is missing or damaged")
		if err := r.Save(stateOf(2, 1)); err != nil {
			t.Fatal(err)
		}
		verify(t, r.dir).expect(t, outputsName, Damaged, "made from another checkpoint 2")
	})
	t.Run("unfinished report", func(t *testing.T) {
		r := save(t, toyState(1))
		writeString(t, r.path("report.html"), "old")
		writeString(t, r.path(outputsName+".tmp"), "half")
		all := verify(t, r.dir)
		all.expect(t, outputsName, Note, "is missing: the report is being written, or that was interrupted, and is not verified")
		all.expect(t, outputsName+".tmp", Note, "interrupted")
		if bad := all.bad(); bad != nil {
			t.Error(bad)
		}
	})
	t.Run("unsaved metrics", func(t *testing.T) {
		r := save(t, toyState(1))
		if err := r.Log(2, map[string]float64{"x": 1}); err != nil {
			t.Fatal(err)
		}
		verify(t, r.dir).expect(t, metricsName, Note, "17 more bytes were logged after the newest checkpoint")
	})
	t.Run("begun and killed", func(t *testing.T) {
		r := save(t)
		verify(t, r.dir).expect(t, "state", Note, "has no checkpoint yet")
		if err := os.Remove(r.path(infoName)); err != nil {
			t.Fatal(err)
		}
		all := verify(t, filepath.Dir(r.dir))
		all.expect(t, "run", Note, "a training that was killed as it began")
		if bad := all.bad(); bad != nil {
			t.Error(bad)
		}
	})
	t.Run("links", func(t *testing.T) {
		r := save(t, toyState(1))
		link := filepath.Join(t.TempDir(), "link")
		if err := os.Symlink(r.dir, link); err != nil {
			t.Skip(err)
		}
		if bad := verify(t, link).bad(); bad != nil { // the folder that somebody names may be one
			t.Error(bad)
		}
		err := errors.Join(os.Remove(r.path(lockName)), os.Symlink("elsewhere", r.path(lockName)))
		if err != nil {
			t.Fatal(err)
		}
		verify(t, r.dir).expect(t, lockName, Damaged, "is not a regular file (it is a symbolic link)")
	})
	t.Run("newer", func(t *testing.T) {
		r := save(t, toyState(1))
		o := outputs{Format: outputsFormat + 1}
		sealed, err := disk.Seal(&o, &o.SHA256)
		if err != nil {
			t.Fatal(err)
		}
		writeString(t, r.path(outputsName), string(sealed))
		verify(t, r.dir).expect(t, outputsName, Unread, "newer version")
	})
	t.Run("nothing", func(t *testing.T) {
		dir := t.TempDir()
		err := Verify(dir, nil)
		testkit.BadInput(t, err, dir+" is not a run folder, and none is below it")
		if !errors.Is(err, ErrNotRun) {
			t.Error("not ErrNotRun")
		}
		if err := Verify(filepath.Join(dir, "none"), nil); !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
	})
}

// Records are read as they are written.
func TestRecordsFault(t *testing.T) {
	whole := appendRecord(appendRecord(nil, []byte("first")), []byte("second record"))
	if fault := recordsFault(whole); fault != "" {
		t.Error(fault)
	}
	first := len(appendRecord(nil, []byte("first")))
	for cut := range whole {
		if fault := recordsFault(whole[:cut]); (fault == "") != (cut == 0 || cut == first) {
			t.Errorf("cut at %d: %q", cut, fault)
		}
		bad := []byte(string(whole))
		bad[cut] ^= 4
		if recordsFault(bad) == "" {
			t.Errorf("byte %d changed: no fault", cut)
		}
	}
}
