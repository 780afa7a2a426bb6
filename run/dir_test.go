package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gfnem/gfnem/badinput"
	"github.com/gfnem/gfnem/internal/disk"
	"github.com/gfnem/gfnem/internal/disk/disktest"
	"github.com/gfnem/gfnem/internal/testkit"
)

func TestCreate(t *testing.T) {
	r := newRun(t)
	want := []string{eventsName, lockName, metricsName, infoName, configName, stateName}
	if d := diff(want, listDir(t, r.dir)); d != "" {
		t.Errorf("the folder differs: %s", d)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := Read(r.dir)
	if err != nil {
		t.Fatal(err)
	}
	if d := diff(r.Info(), again.Info()); d != "" {
		t.Errorf("provenance differs: %s", d)
	}
	if again.Config() != "seed = 7\n" || again.Dir() != r.dir {
		t.Errorf("read back config %q, folder %s", again.Config(), again.Dir())
	}
	info := again.Info()
	if info.Task != "mixture" || info.Seed != 7 || info.Backend != "simd" || info.Data["digits"] != "abc" ||
		info.Format != formatVersion || info.Go != runtime.Version() || info.OS != runtime.GOOS {
		t.Errorf("provenance is %+v", info)
	}
	if !info.Created.Equal(now()) {
		t.Errorf("created at %v", info.Created)
	}
}

func TestCreateRefuses(t *testing.T) {
	t.Run("run", func(t *testing.T) {
		r := newRun(t)
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		_, err := Create(r.dir, testOptions())
		testkit.BadInput(t, err, fmt.Sprintf(
			`%[1]s already holds a run: continue it with "gfnem resume %[1]s", or choose another --out`, r.dir))
	})
	t.Run("foreign", func(t *testing.T) {
		dir := t.TempDir()
		writeString(t, filepath.Join(dir, "thesis.tex"), "precious")
		_, err := Create(dir, testOptions())
		testkit.BadInput(t, err, dir+" is not empty (it has thesis.tex) and is no run: choose another --out")
		if names := listDir(t, dir); len(names) != 1 {
			t.Errorf("Create left %v", names)
		}
	})
	t.Run("metrics", func(t *testing.T) {
		dir := t.TempDir()
		writeString(t, filepath.Join(dir, metricsName), "{}\n")
		_, err := Create(dir, testOptions())
		testkit.BadInput(t, err, dir+" is not empty (it has metrics.jsonl) and is no run: choose another --out")
	})
	t.Run("checkpoint", func(t *testing.T) {
		dir := t.TempDir()
		if err := os.MkdirAll(filepath.Join(dir, stateName, checkpointName(3)), 0o777); err != nil {
			t.Fatal(err)
		}
		_, err := Create(dir, testOptions())
		testkit.BadInput(t, err, dir+" is not empty (it has state) and is no run: choose another --out")
	})
	t.Run("file", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "file")
		writeString(t, path, "")
		if _, err := Create(path, testOptions()); !errors.Is(err, syscall.ENOTDIR) {
			t.Errorf("Create on a file returned %v", err)
		}
	})
}

func TestCreateOnDebris(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{lockName, configName, infoName + disk.TmpSuffix} {
		writeString(t, filepath.Join(dir, name), "half of someth")
	}
	writeString(t, filepath.Join(dir, metricsName), "")
	if err := os.Mkdir(filepath.Join(dir, stateName), 0o777); err != nil {
		t.Fatal(err)
	}
	r, err := Create(dir, testOptions())
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if got := readFile(t, filepath.Join(dir, configName)); got != "seed = 7\n" {
		t.Errorf("config is %q", got)
	}
}

func TestOpenErrors(t *testing.T) {
	t.Run("missing", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "no")
		_, err := Open(dir)
		testkit.BadInput(t, err, dir+" is not a run folder: it has no run.json")
		if !errors.Is(err, ErrNotRun) {
			t.Error("not ErrNotRun")
		}
		if _, err := os.Stat(dir); err == nil {
			t.Error("Open made the folder")
		}
	})
	t.Run("newer", func(t *testing.T) {
		dir := t.TempDir()
		next := struct {
			Format int    `json:"format"`
			Seed   string `json:"seed"`
			SHA256 string `json:"sha256"`
		}{Format: 9, Seed: "no longer a number"}
		sealed, err := disk.Seal(&next, &next.SHA256)
		if err != nil {
			t.Fatal(err)
		}
		writeString(t, filepath.Join(dir, infoName), string(sealed))
		_, err = Open(dir)
		testkit.BadInput(t, err,
			dir+" was written by a newer version of the program: it has format 9, this one reads up to 2")
		if !errors.Is(err, ErrNewer) {
			t.Error("not ErrNewer")
		}
	})
	for name, text := range map[string]string{"torn": `{"form`, "nameless": `{}`, "changed": `{"format": 9}`, "no table": `[]`, "mistyped": `{"format":1,"seed":"x"}`} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			writeString(t, filepath.Join(dir, infoName), text)
			if _, err := Open(dir); err == nil {
				t.Error("opened")
			}
		})
	}
}

func TestLock(t *testing.T) {
	r := newRun(t)
	_, err := Open(r.dir)
	testkit.BadInput(t, err, fmt.Sprintf("open run: %s is in use by process %d", r.dir, os.Getpid()))
	if !errors.Is(err, ErrLocked) {
		t.Error("not ErrLocked")
	}
	if _, err := Read(r.dir); err != nil {
		t.Errorf("Read needs the lock: %v", err)
	}
	if err := errors.Join(r.Close(), r.Close()); err != nil {
		t.Fatal(err)
	}
	r, err = Open(r.dir)
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
}

// Deleting the file that says who holds the lock, or writing into it, lets no second writer in.
func TestLockOutlivesItsNote(t *testing.T) {
	r := newRun(t)
	for _, change := range []func(path string) error{os.Remove, func(path string) error {
		return os.WriteFile(path, []byte("anyone\n"), 0o666)
	}} {
		if err := change(r.path(lockName)); err != nil {
			t.Fatal(err)
		}
		_, err := Open(r.dir)
		testkit.BadInput(t, err, fmt.Sprintf("open run: %s is in use by another process", r.dir))
	}
	if _, err := Create(r.dir, testOptions()); !errors.As(err, new(*badinput.Error)) {
		t.Errorf("another Create: %v", err)
	}
	if err := errors.Join(r.Save(toyState(1)), r.Close()); err != nil {
		t.Fatal(err)
	}
	if r, err := Open(r.dir); err != nil {
		t.Error(err)
	} else {
		r.Close()
	}
}

// A writer whose run was deleted or replaced writes nothing more into the folder, which may hold another run now.
func TestSaveIntoAnothersRun(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, r *Run){
		"run.json deleted": func(t *testing.T, r *Run) {
			if err := os.Remove(r.path(infoName)); err != nil {
				t.Fatal(err)
			}
		},
		"run.json replaced": func(t *testing.T, r *Run) {
			text := readFile(t, r.path(infoName))
			if err := os.Rename(r.path(infoName), r.path("old")); err != nil {
				t.Fatal(err)
			}
			writeString(t, r.path(infoName), text)
		},
		"another run": func(t *testing.T, r *Run) {
			if err := os.RemoveAll(r.dir); err != nil {
				t.Fatal(err)
			}
			other, err := Create(r.dir, testOptions())
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(other.Log(1, nil), other.Save(toyState(1)), other.Close()); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRun(t)
			if err := errors.Join(r.Log(1, nil), r.Save(toyState(1)), r.Log(2, nil)); err != nil {
				t.Fatal(err)
			}
			change(t, r)
			before, err := outcome(r.dir)
			if err != nil {
				t.Fatal(err)
			}
			want := fmt.Sprintf("save checkpoint 2: %s was deleted or replaced: nothing more is written, since the folder may "+
				"be another run's now", r.path(infoName))
			err = r.Save(toyState(2))
			testkit.BadInput(t, errors.Unwrap(err), strings.TrimPrefix(want, "save checkpoint 2: "))
			if err == nil || err.Error() != want {
				t.Errorf("got  %v\nwant %s", err, want)
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
			after, err := outcome(r.dir)
			if err != nil {
				t.Fatal(err)
			}
			if d := diff(before, after); d != "" {
				t.Errorf("the folder has changed: %s", d)
			}
		})
	}
}

// Of many that create a run in one folder, one does; the others are told why not, and leave nothing.
func TestCreateAtOnce(t *testing.T) {
	for range 20 {
		dir := filepath.Join(disktest.MemoryDir(t), "run")
		runs, errs := make([]*Run, 8), make([]error, 8)
		var wg sync.WaitGroup
		for i := range runs {
			wg.Go(func() { runs[i], errs[i] = Create(dir, testOptions()) })
		}
		wg.Wait()
		made := 0
		for i, r := range runs {
			if errs[i] == nil {
				made++
				if err := errors.Join(r.Log(1, nil), r.Save(toyState(1)), r.Close()); err != nil {
					t.Error(err)
				}
			} else if !errors.As(errs[i], new(*badinput.Error)) {
				t.Errorf("no bad input: %v", errs[i])
			}
		}
		if made != 1 {
			t.Errorf("%d runs were made: %v", made, errs)
		}
		want := []string{eventsName, lockName, metricsName, infoName, configName, stateName}
		if got := listDir(t, dir); !slices.Equal(got, want) {
			t.Errorf("there are %v, want %v", got, want)
		}
	}
}

// A process that is killed releases its lock.
func TestLockOfAnotherProcess(t *testing.T) {
	r := newRun(t)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	cmd, _, out := startHelper(t, "hold", r.dir)
	expectLine(t, out, "ready")
	_, err := Open(r.dir)
	testkit.BadInput(t, err, fmt.Sprintf("open run: %s is in use by process %d", r.dir, cmd.Process.Pid))
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	r, err = Open(r.dir)
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
}

func TestReadOnly(t *testing.T) {
	r := newRun(t)
	if err := errors.Join(r.Log(1, nil), r.Save(toyState(1)), r.Log(2, nil)); err != nil {
		t.Fatal(err)
	}
	reader, err := Read(r.dir)
	if err != nil {
		t.Fatal(err)
	}
	s, _, err := reader.Load()
	if err != nil || s.Step != 1 {
		t.Errorf("loaded step %d: %v", s.Step, err)
	}
	if points, err := ReadMetrics(r.dir); err != nil || len(points) != 2 {
		t.Errorf("a reader's Load changed the metrics: %v, %v", points, err)
	}
	if reader.Log(3, nil) == nil || reader.Save(toyState(3)) == nil {
		t.Error("a reader could write")
	}
}

func TestLoadComesFirst(t *testing.T) {
	r := newRun(t)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if r.Log(1, nil) == nil || r.Save(toyState(1)) == nil {
		t.Error("a closed run could be written")
	}
	r, err := Open(r.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if r.Log(1, nil) == nil || r.Save(toyState(1)) == nil {
		t.Error("could write before Load")
	}
	if _, _, err := r.Load(); !errors.Is(err, ErrNoCheckpoint) {
		t.Error(err)
	}
	if err := errors.Join(r.Log(1, nil), r.Save(toyState(1))); err != nil {
		t.Error(err)
	}
}

func TestInfoIsReadable(t *testing.T) {
	r := newRun(t)
	var fields map[string]any
	if err := json.Unmarshal([]byte(readFile(t, r.path(infoName))), &fields); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"format", "task", "command", "seed", "backend", "data", "created", "version",
		"revision", "go", "os", "arch", "modules"} {
		if _, ok := fields[name]; !ok {
			t.Errorf("run.json has no %q", name)
		}
	}
}

func TestInfoOfBuild(t *testing.T) {
	build := &debug.BuildInfo{
		Main: debug.Module{Path: "example.com/program", Version: "v1.2.3"},
		Deps: []*debug.Module{
			{Path: "example.com/a", Version: "v1.0.0", Sum: "h1:a"},
			{Path: "example.com/b", Version: "v2.0.0", Replace: &debug.Module{Path: "example.com/c", Version: "v3.0.0", Sum: "h1:c"}},
		},
		Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.modified", Value: "true"}},
	}
	info := newInfo(testOptions(), time.Now(), build)
	if info.Version != "v1.2.3" || info.Revision != "abc" || !info.Modified {
		t.Errorf("provenance is %+v", info)
	}
	want := map[string]string{"example.com/a@v1.0.0": "h1:a", "example.com/c@v3.0.0": "h1:c"}
	if d := diff(want, info.Modules); d != "" {
		t.Error(d)
	}
}
