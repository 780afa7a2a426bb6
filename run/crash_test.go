package run

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gfnem/gfnem/internal/disk"
	"github.com/gfnem/gfnem/internal/disk/disktest"
	"pgregory.net/rapid"
)

func init() { now = func() time.Time { return time.Unix(1000, 0) } }

// A toy training: the state is a number that each step mixes, so that every step depends on all before it.
const (
	lastStep  = 10
	saveEvery = 2
)

func mix(x, step uint64) uint64 { return x*6364136223846793005 + step }

func toyState(step uint64) State {
	var x uint64
	for i := uint64(1); i <= step; i++ {
		x = mix(x, i)
	}
	return stateOf(step, x)
}

func stateOf(step, x uint64) State {
	return State{
		Step:   step,
		Arrays: map[string]Array{"x": {DType: "U64", Data: binary.LittleEndian.AppendUint64(nil, x)}},
		Extra:  json.RawMessage(fmt.Sprintf(`{"cursor":%d}`, step*3)),
	}
}

// train begins or resumes the toy training in a folder and reports the last step that Save acknowledged, or that it
// resumed from. Wall time stands still, so that events can be compared too.
func train(d disk.Disk, dir string) (acknowledged uint64, err error) {
	return trainTo(d, dir, lastStep)
}

// trainTo is train that ends after a step.
func trainTo(d disk.Disk, dir string, last uint64) (acknowledged uint64, err error) {
	s := stateOf(0, 0)
	r, err := open(d, dir)
	fresh := errors.Is(err, ErrNotRun)
	if fresh {
		o := testOptions()
		o.Files = map[string][]byte{"train.txt": []byte("a dog\na cat\n"), "manifest.json": []byte("{}\n")}
		r, err = create(d, dir, o)
	}
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	if !fresh {
		saved, skipped, err := r.Load()
		if lines := append(skipped, r.JournalNotes()...); len(lines) > 0 {
			return 0, fmt.Errorf("a crash damaged a checkpoint or a journal: %v", lines)
		}
		if err == nil {
			s = saved
		} else if !errors.Is(err, ErrNoCheckpoint) {
			return 0, err
		}
	}
	acknowledged = s.Step
	x := binary.LittleEndian.Uint64(s.Arrays["x"].Data)
	for step := s.Step + 1; step <= last; step++ {
		x = mix(x, step)
		if err := r.Log(step, map[string]float64{"x": float64(x), "half": float64(x) / 2}); err != nil {
			return acknowledged, err
		}
		if step%saveEvery == 0 {
			if err := r.Save(stateOf(step, x)); err != nil {
				return acknowledged, err
			}
			acknowledged = step
		}
	}
	return acknowledged, nil
}

// outcome is all that must not depend on whether a run was killed.
func outcome(dir string) (map[string]string, error) {
	result := make(map[string]string)
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || e.Name() == infoName || e.Name() == lockName {
			return err
		}
		data, err := os.ReadFile(path)
		result[strings.TrimPrefix(path, dir)] = string(data)
		return err
	})
	return result, err
}

// unkilled trains without a crash and returns the outcome and the number of disk operations.
func unkilled(t *testing.T) (map[string]string, int) {
	t.Helper()
	s := disktest.New(disktest.MemoryDir(t))
	if _, err := train(s, filepath.Join(s.Root, "run")); err != nil {
		t.Fatal(err)
	}
	want, err := outcome(filepath.Join(s.Root, "run"))
	if err != nil {
		t.Fatal(err)
	}
	if len(want) != 5+3*keep { // run.toml, two journals, two files that it keeps, and those of the checkpoints
		t.Fatalf("the run left %d files: %v", len(want), want)
	}
	return want, s.Ops
}

// After a power cut before any operation, nothing that Save acknowledged is lost, and the resumed run ends with the
// bytes of one never killed.
func TestPowerCut(t *testing.T) {
	want, ops := unkilled(t)
	root := disktest.MemoryDir(t)
	for cut := range ops {
		s := disktest.New(filepath.Join(root, fmt.Sprint(cut)))
		if err := os.Mkdir(s.Root, 0o777); err != nil {
			t.Fatal(err)
		}
		s.CutAt = cut
		acknowledged, err := train(s, filepath.Join(s.Root, "run"))
		if !errors.Is(err, disktest.ErrCut) {
			t.Fatalf("cut %d: %v", cut, err)
		}
		for left, pick := range map[string]func(int) int{"durable": disktest.DurableOnly, "everything": disktest.Everything} {
			after, err := s.Restore(filepath.Join(root, fmt.Sprint(cut, left)), pick)
			if err != nil {
				t.Fatal(err)
			}
			dir := filepath.Join(after.Root, "run")
			checkSurvivors(t, dir, acknowledged)
			if _, err := train(after, dir); err != nil {
				t.Fatalf("cut %d, %s left: resume: %v", cut, left, err)
			}
			got, err := outcome(dir)
			if err != nil {
				t.Fatal(err)
			}
			if d := diff(want, got); d != "" {
				t.Fatalf("cut %d, %s left: outcome differs (-unkilled +resumed):\n%s", cut, left, d)
			}
		}
	}
}

// checkSurvivors looks at what a power cut left, before anyone resumes.
func checkSurvivors(t *testing.T, dir string, acknowledged uint64) {
	t.Helper()
	r, err := Read(dir)
	if err != nil {
		if acknowledged > 0 || !errors.Is(err, ErrNotRun) {
			t.Fatalf("step %d was saved, but then: %v", acknowledged, err)
		}
		return
	}
	s, warnings, err := r.Load()
	if errors.Is(err, ErrNoCheckpoint) && acknowledged == 0 {
		return
	}
	if warnings = append(warnings, r.JournalNotes()...); err != nil || len(warnings) > 0 {
		t.Fatalf("step %d was saved, but then: %v %v", acknowledged, err, warnings)
	}
	if s.Step < acknowledged {
		t.Fatalf("step %d was saved, but %d came back", acknowledged, s.Step)
	}
	if d := diff(toyState(s.Step), s); d != "" {
		t.Fatalf("step %d came back changed:\n%s", s.Step, d)
	}
}

// The same with several cuts, also while resuming, each leaving any mixture of old and new.
func TestPowerCutsAtRandom(t *testing.T) {
	want, ops := unkilled(t)
	base := disktest.MemoryDir(t)
	rapid.Check(t, func(t *rapid.T) {
		root, err := os.MkdirTemp(base, "")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(root)
		s := disktest.New(filepath.Join(root, "0"))
		if err := os.Mkdir(s.Root, 0o777); err != nil {
			t.Fatal(err)
		}
		pick := func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "version") }
		for i := range rapid.IntRange(1, 4).Draw(t, "cuts") {
			s.CutAt = rapid.IntRange(0, ops).Draw(t, "cut")
			if _, err := train(s, filepath.Join(s.Root, "run")); err != nil && !errors.Is(err, disktest.ErrCut) {
				t.Fatal(err)
			}
			if s, err = s.Restore(filepath.Join(root, fmt.Sprint(i+1)), pick); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := train(s, filepath.Join(s.Root, "run")); err != nil {
			t.Fatal(err)
		}
		got, err := outcome(filepath.Join(s.Root, "run"))
		if err != nil {
			t.Fatal(err)
		}
		if d := diff(want, got); d != "" {
			t.Fatalf("outcome differs (-unkilled +resumed):\n%s", d)
		}
	})
}

// A full disk at any operation is an error at once, leaves nothing behind, and costs nothing that was saved.
func TestSaveOnFullDisk(t *testing.T) {
	prepare := func() (*disktest.Shadow, *Run) {
		s := disktest.New(disktest.MemoryDir(t))
		r, err := create(s, filepath.Join(s.Root, "run"), testOptions())
		if err != nil {
			t.Fatal(err)
		}
		for step := uint64(1); step <= 3; step++ {
			if err := errors.Join(r.Log(step, map[string]float64{"x": 1}), r.Save(toyState(step))); err != nil {
				t.Fatal(err)
			}
		}
		return s, r
	}
	s, r := prepare()
	before := s.Ops
	if err := r.Save(toyState(4)); err != nil {
		t.Fatal(err)
	}
	ops := s.Ops - before
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	for fail := range ops {
		s, r := prepare()
		s.FailAt = s.Ops + fail
		err := r.Save(toyState(4))
		if !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("operation %d: Save returned %v", fail, err)
		}
		removing := strings.Contains(err.Error(), "remove an old checkpoint")
		for _, name := range listDir(t, r.path(stateName)) {
			if strings.HasSuffix(name, disk.TmpSuffix) && !removing {
				t.Errorf("operation %d: Save left %s", fail, name)
			}
		}
		// After a failed sync nobody knows what the disk holds of a journal: no later one may claim success.
		broken := strings.Contains(err.Error(), "sync "+r.path(metricsName)) ||
			strings.Contains(err.Error(), "sync "+r.path(eventsName))
		again := r.Save(toyState(4))
		if (again != nil) != broken {
			t.Errorf("operation %d: with room again, Save returned %v", fail, again)
		}
		r.Close()
		if r, err = open(s, r.dir); err != nil {
			t.Fatal(err)
		}
		got, warnings, err := r.Load()
		if err != nil || len(warnings) > 0 {
			t.Fatalf("operation %d: %v %v", fail, err, warnings)
		}
		if again == nil && got.Step != 4 || got.Step < 3 {
			t.Errorf("operation %d: loaded step %d", fail, got.Step)
		}
		if d := diff(toyState(got.Step), got); d != "" {
			t.Errorf("operation %d: %s", fail, d)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestLogOnFullDisk(t *testing.T) {
	long := strings.Repeat("long", 20)
	for fail := range 2 { // the writes of metrics and of events
		s := disktest.New(disktest.MemoryDir(t))
		r, err := create(s, filepath.Join(s.Root, "run"), testOptions())
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Log(1, map[string]float64{"a": 1}); err != nil {
			t.Fatal(err)
		}
		s.FailAt = s.Ops + fail
		if err := r.Log(2, map[string]float64{long: 2}); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("Log returned %v", err)
		}
		if err := errors.Join(r.Log(3, map[string]float64{"b": 3}), r.Close()); err != nil {
			t.Error(err)
		}
		want := "{\"step\":1,\"a\":1}\n{\"step\":2,\"" + long + "\":2}\n{\"step\":3,\"b\":3}\n"
		if fail == 0 {
			want = "{\"step\":1,\"a\":1}\n{\"step\":3,\"b\":3}\n"
		}
		if got := readFile(t, r.path(metricsName)); got != want {
			t.Errorf("metrics are\n%swant\n%s", got, want)
		}
		var steps []uint64
		for _, e := range decodeEvents(t, readFile(t, r.path(eventsName)))[1:] {
			steps = append(steps, e.step)
		}
		if d := diff([]uint64{1, 3}, steps); d != "" {
			t.Errorf("events: %s", d)
		}
	}
}

// A journal that begins anew is as durable as one from Create.
func TestPowerCutAfterLostJournal(t *testing.T) {
	s := disktest.New(disktest.MemoryDir(t))
	dir := filepath.Join(s.Root, "run")
	r, err := create(s, dir, testOptions())
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(r.Log(1, nil), r.Save(toyState(1)), r.Close(), s.RemoveAll(r.path(metricsName)), s.SyncDir(dir))
	if err != nil {
		t.Fatal(err)
	}
	if r, err = open(s, dir); err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, _, err := r.Load(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(r.Log(2, nil), r.Save(toyState(2))); err != nil {
		t.Fatal(err)
	}
	after, err := s.Restore(disktest.MemoryDir(t), disktest.DurableOnly)
	if err != nil {
		t.Fatal(err)
	}
	points, err := ReadMetrics(filepath.Join(after.Root, "run"))
	if err != nil || len(points) != 1 || points[0].Step != 2 {
		t.Errorf("the metrics left are %v: %v", points, err)
	}
}
