package run

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gfnem/gfnem/internal/disk/disktest"
)

const changedConfig = "seed = 7\nupdates = 20\n"

// changeAt changes the configuration of a run at its newest checkpoint.
func changeAt(d *disktest.Shadow, dir string) error {
	r, err := open(d, dir)
	if err != nil {
		return err
	}
	s, _, err := r.Load()
	if err == nil {
		err = r.Change(changedConfig, Changed{Step: s.Step, Total: 20, Set: []string{"updates=20"}, Command: []string{"gfnem", "resume"}})
	}
	return errors.Join(err, r.Close())
}

// After a power cut before any operation of a change, the run has the old configuration or the new one with its record, can
// be opened, and verifies.
func TestPowerCutWhileChanging(t *testing.T) {
	root := disktest.MemoryDir(t)
	begin := func(name string) (*disktest.Shadow, string) {
		s := disktest.New(filepath.Join(root, name))
		dir := filepath.Join(s.Root, "run")
		if err := os.Mkdir(s.Root, 0o777); err != nil {
			t.Fatal(err)
		}
		if _, err := trainTo(s, dir, 4); err != nil {
			t.Fatal(err)
		}
		return s, dir
	}
	whole, dir := begin("whole")
	before := whole.Ops
	if err := changeAt(whole, dir); err != nil {
		t.Fatal(err)
	}
	ops, old, changed := whole.Ops-before, 0, 0
	for cut := range ops {
		s, dir := begin(fmt.Sprint(cut))
		s.CutAt = s.Ops + cut
		if err := changeAt(s, dir); !errors.Is(err, disktest.ErrCut) {
			t.Fatalf("cut %d: %v", cut, err)
		}
		for left, pick := range map[string]func(int) int{"durable": disktest.DurableOnly, "everything": disktest.Everything} {
			after, err := s.Restore(filepath.Join(root, fmt.Sprint(cut, left)), pick)
			if err != nil {
				t.Fatal(err)
			}
			dir := filepath.Join(after.Root, "run")
			looked, err := Read(dir)
			if err != nil {
				t.Fatalf("cut %d, %s: %v", cut, left, err)
			}
			r, err := Open(dir)
			if err != nil {
				t.Fatalf("cut %d, %s: %v", cut, left, err)
			}
			if r.Config() != looked.Config() || readFile(t, r.path(configName)) != r.Config() {
				t.Errorf("cut %d, %s: run.toml is not the configuration that counts", cut, left)
			}
			switch {
			case r.Config() == changedConfig && len(r.Changes()) == 1 && r.Changes()[0].Step == 4:
				changed++
			case r.Config() == testOptions().Config && r.Changes() == nil:
				old++
			default:
				t.Errorf("cut %d, %s: %q with %d changes", cut, left, r.Config(), len(r.Changes()))
			}
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
			if err := Verify(dir, func(f Finding) {
				if f.Status != Intact && f.Status != Note {
					t.Errorf("cut %d, %s: %v", cut, left, f)
				}
			}); err != nil {
				t.Error(err)
			}
		}
	}
	if old == 0 || changed == 0 {
		t.Errorf("of %d cuts %d left the old configuration and %d the new one", ops, old, changed)
	}
}

// A record that was edited, comes from another run or has no configuration beside it is refused, by Read and by Verify.
func TestChangesAreSealed(t *testing.T) {
	make := func() (string, *disktest.Shadow) {
		s := disktest.New(disktest.MemoryDir(t))
		dir := filepath.Join(s.Root, "run")
		if _, err := trainTo(s, dir, 4); err != nil {
			t.Fatal(err)
		}
		if err := changeAt(s, dir); err != nil {
			t.Fatal(err)
		}
		return dir, s
	}
	for name, spoil := range map[string]func(dir string){
		"edited":  func(dir string) { edit(t, filepath.Join(dir, changesName), "updates = 20", "updates = 30") },
		"emptied": func(dir string) { writeString(t, filepath.Join(dir, changesName), "") },
		"config":  func(dir string) { edit(t, filepath.Join(dir, configName), "updates = 20", "updates = 30") },
	} {
		dir, _ := make()
		if _, err := Read(dir); err != nil {
			t.Fatal(err)
		}
		spoil(dir)
		if _, err := Read(dir); err == nil {
			t.Errorf("%s: it is read", name)
		}
		damaged := 0
		if err := Verify(dir, func(f Finding) {
			if f.Status == Damaged {
				damaged++
			}
		}); err != nil || damaged != 1 {
			t.Errorf("%s: %d findings of damage, error %v", name, damaged, err)
		}
	}
}

func edit(t *testing.T, path, from, to string) {
	t.Helper()
	text := readFile(t, path)
	if !strings.Contains(text, from) {
		t.Fatalf("%s lacks %q", path, from)
	}
	writeString(t, path, strings.Replace(text, from, to, 1))
}

// A run that was changed and then killed ends as one that was changed and not killed.
func TestChangedRunResumes(t *testing.T) {
	var ends []map[string]string
	for _, stops := range [][]uint64{{20}, {13, 20}} {
		s := disktest.New(disktest.MemoryDir(t))
		dir := filepath.Join(s.Root, "run")
		if _, err := trainTo(s, dir, 8); err != nil {
			t.Fatal(err)
		}
		if err := changeAt(s, dir); err != nil {
			t.Fatal(err)
		}
		for _, stop := range stops {
			if _, err := trainTo(s, dir, stop); err != nil {
				t.Fatal(err)
			}
		}
		end, err := outcome(dir)
		if err != nil {
			t.Fatal(err)
		}
		delete(end, "/"+changesName) // it has the hash of run.json, with other times
		ends = append(ends, end)
	}
	if d := diff(ends[0], ends[1]); d != "" {
		t.Error(d)
	}
}
